"""Teacher forcing of a given text: loss, rank, perplexity; where outputs diverge; one pass over a whole output.

The decoder reads the right pieces, whatever it would have written itself, and predicts the next one at each place.
Under a causal mask one pass does this for all places. With a tap that is not causal each prefix is read alone, as in
`transformer.runs.recording_pass`.

    loss          -ln p of the right piece, in nats
    rank          its rank among all pieces, 1 for the most probable; ties go by id
    own choice    what greedy decoding would write after the pieces before, by the rules of the model's config
    perplexity    e to the power of the mean loss: as unsure as between this many equally probable pieces

**A whole output at once** (`read_at_once`), as in training: the decoder gets all of it, and only the mask hides the
piece that a row has to predict. A run writes piece by piece, and no row ever meets what comes after it. So a changed
mask has an effect here, and a different one, or none, on a written output.

Source: Williams and Zipser, "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks" (1989),
for teacher forcing; Jelinek et al., "Perplexity" (1977).

Shapes: N pieces that are judged, T target tokens, D d_model, V target vocabulary, K candidates that are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.taps import NO_TAP, Recorder, Tap, both
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_for
from transformer.runs.array_records import ArrayRecord
from transformer.runs.distribution import ROWS, Rules, logits_of, ranks_of
from transformer.runs.inputs import PreparedReference, Reference, read_given, read_source
from transformer.runs.query import Query, Runnable
from transformer.runs.recording_pass import alone, check_recorded
from transformer.runs.running import run

if TYPE_CHECKING:
    import pandas as pd


N_BEST = 10
_LAST = "decoder.output"


@dataclass(frozen=True)
class Parting:
    """Where two rows of ids agree."""

    # The first place, from 0, where they differ, or where only one of them continues; None if they are equal.
    first: int | None
    tail: int  # how many pieces after that place both end with; 0 if they are equal


@dataclass(frozen=True, eq=False)
class Score(ArrayRecord):
    """How probable a model finds each piece of a reference. Its arrays are read-only, with one entry per piece."""

    # The source, and the changes inside the model. The way of decoding affects only `written`.
    query: Query
    checkpoint: str  # name of the checkpoint
    notes: tuple[str, ...]  # what a reader should know: text that was converted, unknown pieces
    # What the decoder reads before the first of these pieces: the start piece or the prompt, and what the model
    # forces at the beginning of every output.
    before: tuple[str, ...]
    ids: tuple[int, ...]  # what is judged, the end piece included if it counts
    pieces: tuple[str, ...]  # what is judged, the end piece included if it counts
    text: str  # the same as text
    losses: np.ndarray  # in nats, float64 [N]
    ranks: np.ndarray  # from 1 [N]
    own_ids: np.ndarray  # the piece that the model would write there [N]
    own_probabilities: np.ndarray  # the probability of that piece, 0 to 1 [N]
    best_ids: np.ndarray  # the most probable pieces, best first [N, K]
    best_probabilities: np.ndarray  # the most probable pieces, best first [N, K]
    vocabulary: tuple[str, ...]  # the target's pieces by id
    causal: bool = True  # False if a change could let a place depend on later ones
    # Ids of the model's own output; None if nothing was written, or there is nothing to compare with.
    written: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def probabilities(self) -> np.ndarray:
        """Probabilities of the right pieces, 0 to 1 [N]."""
        return np.exp(-self.losses)

    @property
    def reads(self) -> tuple[str, ...]:
        """The last piece that the decoder reads at each place: the right pieces, shifted by one."""
        return (self.before[-1], *self.pieces[:-1])

    @property
    def own_pieces(self) -> tuple[str, ...]:
        """The piece that the model would write at each place."""
        return tuple(self.vocabulary[i] for i in self.own_ids)

    @property
    def log_prob(self) -> float:
        """Log-probability of the whole reference under the model, in nats."""
        return -float(self.losses.sum())

    @property
    def mean_loss(self) -> float:
        """Mean loss per piece, in nats."""
        return float(self.losses.mean())

    @property
    def perplexity(self) -> float:
        """e to the power of the mean loss: 1 is certain, V is guessing among all pieces."""
        return float(np.exp(self.mean_loss))

    @property
    def running_perplexity(self) -> np.ndarray:
        """Perplexity of each piece with all before it: e to the power of their mean loss [N]."""
        return np.exp(np.cumsum(self.losses) / np.arange(1, len(self.losses) + 1))

    @property
    def guessing(self) -> float:
        """The loss of guessing among all pieces: ln V, in nats."""
        return float(np.log(len(self.vocabulary)))

    @property
    def hits(self) -> np.ndarray:
        """Whether the model would have written the right piece itself, bool [N]."""
        return self.own_ids == np.array(self.ids)

    @cached_property
    def parting(self) -> Parting | None:
        """Where the reference and the model's own output diverge; None if nothing was written."""
        return None if self.written is None else parting(self.ids, self.written)

    @property
    def first_divergence(self) -> int | None:
        """The first place, from 0, where they differ; None if they are equal, or nothing was written."""
        return None if self.parting is None else self.parting.first

    def to_frame(self) -> pd.DataFrame:
        """One row per piece."""
        import pandas as pd  # here, as in `Trace.to_frame`

        return pd.DataFrame(
            {
                "place": np.arange(1, len(self) + 1),
                "reads": self.reads,
                "piece": self.pieces,
                "id": self.ids,
                "loss": self.losses,
                "probability": self.probabilities,
                "rank": self.ranks,
                "own_piece": self.own_pieces,
                "own_probability": self.own_probabilities,
                "perplexity": np.exp(self.losses),
                "running_perplexity": self.running_perplexity,
            }
        )


def score(
    checkpoint: Runnable, source: str | Query, reference: Reference = None, *, with_end: bool | None = None
) -> Score:
    """How probable a model finds a reference, and what the model writes itself.

    `source` is a sentence, which is decoded greedily, or a query for this checkpoint; `reference` is the right output,
    as text or ids. For a decoder-only model it continues the source; None: the source's own pieces are judged.
    `with_end`: the end piece after it is judged, too; None: only if the model has an encoder. Errors as of `judge`, or
    the query's.
    """
    query = Query(checkpoint=checkpoint.content_hash, source=source) if isinstance(source, str) else source
    found = judge(checkpoint, query, reference, with_end=with_end)
    return found if reference is None else replace(found, written=run(checkpoint, query).tgt_ids)


@torch.inference_mode()
def judge(
    checkpoint: Runnable, query: Query, reference: Reference, *, with_end: bool | None = None, tap: Tap = NO_TAP
) -> Score:
    """The same without the model's own output: one pass, with the changes of the query and the tap.

    A QueryError says the same as in `transformer.runs.inputs.read_given`, that the model lacks what an intervention
    names, or that the model computes a value that is not finite.
    """
    given = read_given(checkpoint, query, reference, with_end=with_end)
    tap = both(tap_for(query.interventions, checkpoint), tap)
    read_ids, first = (*given.before, *given.ids[:-1]), len(given.before) - 1
    model, src_ids, target = checkpoint.model, torch.tensor([given.source.ids]), torch.tensor([read_ids])
    memory, _ = recording_pass.read_source(model, src_ids, (), tap=tap)
    src_mask = model.source_mask(src_ids) if memory is not None else None
    # The last vectors of the decoder, each as the step saw it that had read no more.
    read = recording_pass.read_target(model, target, memory, src_mask, (_LAST,), tap=tap)
    hidden = read[_LAST][0, first:]  # [N, D]
    parts = [*_judged(checkpoint, hidden, given, tap)]
    check_recorded((part[0] for part in parts), lambda seen: [*logits_of(model, hidden, tap=seen)], tap=tap)
    losses, ranks, own, own_probs, best, best_probs = (
        torch.cat(part).numpy(force=True) for part in zip(*parts, strict=True)
    )
    vocabulary = checkpoint.tgt_tokenizer.pieces
    return Score(
        query=query,
        checkpoint=checkpoint.name,
        notes=given.notes,
        before=tuple(vocabulary[i] for i in given.before),
        ids=given.ids,
        pieces=tuple(vocabulary[i] for i in given.ids),
        text=checkpoint.tgt_tokenizer.decode(given.ids),
        losses=losses.astype(np.float64),
        ranks=ranks,
        own_ids=own,
        own_probabilities=own_probs,
        best_ids=best,
        best_probabilities=best_probs,
        vocabulary=vocabulary,
        causal=tap.causal,
    )


def _judged(checkpoint: Runnable, hidden: Tensor, given: PreparedReference, tap: Tap) -> Iterator[tuple[Tensor, ...]]:
    """Of a few pieces at a time: losses, ranks, own choices with their probabilities, and the best with theirs."""
    wanted = torch.tensor(given.ids, device=checkpoint.model.device)
    n_best = min(N_BEST, checkpoint.config.tgt_vocab_size)
    most = len(given.before) + len(given.ids) + 1  # no end is forced
    rules = Rules(checkpoint.config, given.n_prompt, most, given.source.insisted)
    text = (*given.before, *given.ids)
    for start, logits in zip(range(0, len(wanted), ROWS), logits_of(checkpoint.model, hidden, tap=tap), strict=True):
        log_probs, ids = logits.log_softmax(dim=-1), wanted[start : start + ROWS]  # [n, V] and [n]
        sums = logits.logsumexp(dim=-1).tolist()
        n_read = range(len(given.before) + start, len(text))
        rows = zip(log_probs, sums, n_read, strict=False)
        own = torch.stack([rules.scores(row, text[:n], total).argmax() for row, total, n in rows])  # [n]
        best = log_probs.topk(n_best, dim=-1)
        losses = -log_probs.gather(1, ids[:, None])[:, 0]
        own_probs = log_probs.gather(1, own[:, None])[:, 0].exp()
        yield losses, ranks_of(log_probs, ids), own, own_probs, best.indices, best.values.exp()


def parting(one: Sequence[int], other: Sequence[int]) -> Parting:
    """Compare two rows of ids: where they diverge, and how many pieces at the end are the same.

    Pieces are compared place by place up to the first difference; after it, only the pieces that both end with count.
    """
    head = _alike(one, other)
    if head == len(one) == len(other):
        return Parting(None, 0)
    return Parting(head, _alike(one[head:][::-1], other[head:][::-1]))


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """How many pieces both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


@dataclass(frozen=True, eq=False)
class TeacherForcedPass(ArrayRecord):
    """One pass over a whole output."""

    losses: np.ndarray  # -log p of each piece of the output, in nats [T]
    best: np.ndarray  # the likeliest piece of each row [T]
    first_row: int  # the decoder's row that predicts the first piece
    src_ids: tuple[int, ...]  # what was read, special pieces included
    # Each requested site, without the batch axis; rows before `first_row` included.
    values: Mapping[str, np.ndarray]

    @property
    def mean_loss(self) -> float:
        """In nats per piece."""
        return float(self.losses.mean())


@torch.inference_mode()
def read_at_once(
    checkpoint: Runnable, query: Query, written: Sequence[int], sites: Iterable[str] = (), *, finite: bool = True
) -> TeacherForcedPass:
    """Let a model read a whole output, including its end piece, with the source and the changes of a query.

    Values that are not finite are refused, or returned unchanged if so asked. A QueryError also says that the model
    writes nothing, or that the query does not fit it.
    """
    model = checkpoint.model
    if not model.anatomy.writes or not written:
        raise QueryError("There is no output to read: this model does not generate text, or it generated none.")
    source, tap = read_source(checkpoint, query), tap_for(query.interventions, checkpoint)
    src, tgt = torch.tensor([source.ids]), torch.tensor([[*source.prompt_ids, *written[:-1]]])
    recorder, first_row = Recorder(sites), len(source.prompt_ids) - 1

    def read(seen: Tap) -> Tensor:
        return model(src, tgt, tap=seen)  # [1, first_row + T, V]

    logits = read(tap.also(recorder))
    if finite:
        check_recorded((logits, *recorder.values.values()), read, tap=tap)
    log_probs = logits[0, first_row:].cpu().float().log_softmax(dim=-1)  # [T, V]
    return TeacherForcedPass(
        losses=-log_probs.gather(1, torch.tensor(written)[:, None])[:, 0].numpy(),
        best=log_probs.argmax(dim=-1).numpy(),
        first_row=first_row,
        src_ids=source.ids,
        values={site: alone(site, value) for site, value in recorder.values.items()},
    )
