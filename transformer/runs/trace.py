"""A trace: everything that one run did, as plain arrays and labels; and labelled maps without a model.

The output is decoded at full speed with a KV cache; nothing is recorded. Then one teacher-forced pass reads the
finished output with a recording tap. Because of the causal mask, each row of a decoder map is what its step saw (see
`transformer.runs.recording_pass`, also for runs where this does not hold).

Row labels. Step t (from 0) predicts target piece t. Its decoder row, `row_of(t)`, reads the piece before: target
piece t - 1, or at step 0 the start piece, so it is row t. A decoder-only model reads its prompt first, so step 0 is
the row of the prompt's last piece. A row's label names what it reads and predicts.

An encoder-only model writes nothing: its trace has maps, but no steps.

A `LabelledMaps` can replace a `Trace` wherever only weights and labels are needed: `kinds`, `maps` and `mask` are the
same. Nothing is checked there. Each attention has its own labels, because maps may be cut differently.

Axes: maps are [layer, head, query, key].
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np
import torch

from transformer.errors import GlassformerError, QueryError
from transformer.extensions import imported, provided
from transformer.i18n import say
from transformer.model.anatomy import Kind as Kind
from transformer.model.anatomy import StackName
from transformer.runs.array_records import ArrayRecord, MapTables
from transformer.runs.distribution import RuleChange, Rules, best, change, drawn_from, entropy
from transformer.runs.query import Query

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

_Found = TypeVar("_Found")
StopReason = Literal["end of sentence", "length limit", "no decoder"]
BY_STEPS = say(
    "While the model writes, each row is computed at its own step, before any later token exists. Read in one pass, "
    "as in training, the rows would be different."
)
ROWS_BY_STEPS = say("each decoder row was computed at its own step")


@dataclass(frozen=True)
class RowLabel:
    """What a decoder row reads and what it predicts; None for padding, and where the next piece was given."""

    reads: str
    predicts: str | None

    def __str__(self) -> str:
        return f"{self.reads} → {self.predicts}" if self.predicts is not None else self.reads


@dataclass(frozen=True)
class Candidate:
    """A piece that a step could have chosen."""

    id: int  # which piece
    piece: str  # which piece
    probability: float  # under the model, 0 to 1
    log_probability: float  # under the model, in nats
    sampling_probability: float | None  # in the distribution that sampling drew from; None unless the query samples
    # What the rules of the model's config do to it at this step: "closed", it could not be chosen; "lowered" or
    # "raised", its score changed; None: nothing.
    rule: RuleChange | None
    chosen: bool  # whether it is in the output

    @property
    def token(self) -> str:
        """Its text, with SentencePiece's ▁ for a space."""
        return self.piece


@dataclass(frozen=True, eq=False)
class Step:
    """One decoding step."""

    index: int  # the step, from 0: it predicts target piece `index`
    label: RowLabel  # what its row reads and predicts
    candidates: tuple[Candidate, ...]  # the most probable pieces, best first; the chosen one is always among them
    entropy: float  # of the whole distribution, in bits
    rank: int  # rank of the chosen piece, 1 for the most probable
    forced: bool  # whether the choice was forced, by the query or by the model
    # Weights over the decoder's tokens so far [layer, head, token]; [0, 0, 0] if no maps are kept.
    decoder_rows: np.ndarray
    cross_rows: np.ndarray  # weights over the source [layer, head, source]; [0, 0, 0] also for a decoder-only model

    @property
    def chosen(self) -> Candidate:
        """The candidate that is in the output."""
        return next(c for c in self.candidates if c.chosen)


@dataclass(frozen=True)
class Ranked:
    """One result of beam search."""

    text: str
    ids: tuple[int, ...]
    log_prob: float
    score: float
    stop_reason: StopReason


class NotebookDisplay(Protocol):
    """What a notebook draws if it is the last line of a cell."""

    def _repr_html_(self) -> str: ...


@dataclass(frozen=True, eq=False, repr=False)
class Trace(MapTables, ArrayRecord):
    """One run. Its arrays are read-only."""

    query: Query  # the query
    checkpoint: str  # name of the checkpoint
    notes: tuple[str, ...]  # what a reader should know: converted text, unknown pieces
    source_text: str  # the source after the checkpoint's normalisation
    # What the encoder read, with special pieces and (in a batch) padding; the prompt of a decoder-only model.
    src_ids: tuple[int, ...]
    src_tokens: tuple[str, ...]
    tgt_ids: tuple[int, ...]  # the output, the end piece included if it ended
    tgt_tokens: tuple[str, ...]  # the output, the end piece included if it ended
    # What the decoder read: the start piece or the prompt, the output without its last piece, and (in a batch)
    # padding; empty without a decoder.
    read_ids: tuple[int, ...]
    read_tokens: tuple[str, ...]
    first_row: int  # the decoder's row that predicts the first piece
    texts: tuple[str, ...]  # the output as text after each step
    stop_reason: StopReason  # why decoding stopped
    log_prob: float  # log-probability of the output under the model, in nats
    # The model's own log-probabilities [step, tgt_vocab], in nats, float32; `scores` has them after the rules.
    log_probs: np.ndarray
    log_sums: np.ndarray  # logits minus log-probabilities [step], float32
    # The weights of each attention [layer, head, query, key], float32; [layer, head, 0, 0] if the run kept none. A
    # decoder's row is as its step computed it, even if a change makes one pass over the whole output differ; a note
    # then says so. See `maps`.
    weights: Mapping[Kind, np.ndarray]
    # The mask of each attention, bool [query, key] as in the first layer, or [layer, query, key] if layers have
    # windows; True = may attend. See `mask`.
    masks: Mapping[Kind, np.ndarray]
    hypotheses: tuple[Ranked, ...]  # beam search's results, best first; empty for the other ways of decoding
    vocabulary: tuple[str, ...]  # the target's pieces by id
    pad_id: int | None  # the padding piece; None if the model has none
    rules: Rules  # the rules of decoding in the model's config
    seconds: float  # how long the run took; not part of equality

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        names = (field.name for field in fields(self) if field.name != "seconds")
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """A one-line summary, because the arrays would fill a screen."""
        return f"<Trace of {self.checkpoint}: {self.query.source!r} -> {self.output_text!r}, {self.n_steps} steps>"

    def show(self, picture: str = "step", **view: object) -> NotebookDisplay:
        """The run with its stepper and its pictures, for the last line of a notebook's cell.

        Args:
            picture: A page of the app, a part of a page, or a picture: "step", "masks.checks", "attention.head_map".
            **view: What to look at, as in `glassformer.state.view.View`; steps, layers, heads and tokens count from
            0.

        Raises:
            GlassformerError: The picture or what to look at does not exist, the checkpoint is no longer open, or the
                app is not installed.
        """
        return _displayed(self, picture, view)

    def _repr_html_(self) -> str:
        """What a notebook shows for a run in the last line of a cell; a sentence if it cannot show the run."""
        try:
            return self.show("step" if self.n_steps else "attention")._repr_html_()
        except GlassformerError as error:
            return f"<p>{escape(str(error))}</p>"

    @property
    def n_steps(self) -> int:
        """Number of steps, one per target piece."""
        return len(self.tgt_ids)

    @property
    def never_written(self) -> tuple[int, ...]:
        """Pieces that decoding may never choose, padding included."""
        return self.rules.config.never_written

    @property
    def forced_ids(self) -> tuple[int, ...]:
        """The ids that every output of this model begins with, unless the query forces others there."""
        return self.rules.config.forced_ids

    @property
    def n_forced(self) -> int:
        """How many of the output's first pieces were forced, by the query or by the model."""
        return min(max(len(self.query.forced), len(self.forced_ids)), self.n_steps)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The attentions that the model has, in the order of the computation."""
        return tuple(self.weights)

    @property
    def output_text(self) -> str:
        """The whole output as text; for a decoder-only model, what it added to the prompt."""
        return self.texts[-1] if self.texts else ""

    def rows_note(self, kind: Kind | None = None) -> str:
        """The note for a figure or table whose rows (of a kind, or of any) differ from one pass over the output."""
        return ROWS_BY_STEPS if BY_STEPS in self.notes and kind != "encoder" else ""

    @property
    def keeps_maps(self) -> bool:
        """Whether it keeps its maps; if not, `transformer.runs.running` computes them again, one layer at a time."""
        return all(maps.shape[2:] == self.masks[kind].shape[-2:] for kind, maps in self.weights.items())

    def maps(self, kind: Kind) -> np.ndarray:
        """Attention weights of one of `kinds`, [layer, head, query, key]; [layer, head, 0, 0] if the run keeps none."""
        return _of(kind, self.weights)

    def mask(self, kind: Kind, layer: int | None = None) -> np.ndarray:
        """The mask of one of `kinds` as used, bool [query, key]; True = may attend.

        Masks of layers, from 0, differ only if they have windows; None: open if any layer is.
        """
        mask = _of(kind, self.masks)
        if mask.ndim == 2:
            return mask
        return np.asarray(mask.any(axis=0) if layer is None else mask[layer])

    # The same by name, as notebooks use them.
    encoder_self = property(lambda self: self.maps("encoder"))
    decoder_self = property(lambda self: self.maps("decoder"))
    cross = property(lambda self: self.maps("cross"))
    encoder_mask = property(lambda self: self.mask("encoder"))
    decoder_mask = property(lambda self: self.mask("decoder"))
    cross_mask = property(lambda self: self.mask("cross"))

    def n_tokens(self, stack: StackName) -> int:
        """Number of tokens that a stack read, without a batch's padding; 0 if the model has no such stack."""
        if stack == "decoder":
            return self.first_row + self.n_steps
        if "encoder" not in self.weights:
            return 0
        if self.pad_id is None:
            return len(self.src_ids)
        return int(np.flatnonzero(np.array(self.src_ids) != self.pad_id)[-1]) + 1  # pads are at the end

    # The names of before.
    src_pieces = property(lambda self: self.src_tokens)
    tgt_pieces = property(lambda self: self.tgt_tokens)
    read_pieces = property(lambda self: self.read_tokens)

    def row_of(self, step: int) -> int:
        """The decoder row that a step's prediction comes from."""
        return self.first_row + step

    def row_label(self, row: int) -> RowLabel:
        """What a decoder row reads and predicts; rows inside a prompt and padding predict nothing."""
        step = row - self.first_row
        return RowLabel(self.read_tokens[row], self.tgt_tokens[step] if 0 <= step < self.n_steps else None)

    def row_labels(self) -> tuple[RowLabel, ...]:
        """The labels of all decoder rows, in order."""
        return tuple(self.row_label(row) for row in range(len(self.read_tokens)))

    def scores(self) -> np.ndarray:
        """The scores behind the choices [step, tgt_vocab]: `log_probs` after the rules, -inf for closed pieces."""
        return self.all_scores().numpy()

    def all_scores(self) -> torch.Tensor:
        """The same as a tensor."""
        log_sums = torch.tensor(self.log_sums)
        return self.rules.all_scores(torch.tensor(self.log_probs), self.read_ids[: self.row_of(self.n_steps)], log_sums)

    def scores_at(self, step: int) -> np.ndarray:
        """The scores behind the choice of one step [tgt_vocab]; a forced piece was not chosen by them."""
        text = self.read_ids[: self.row_of(step) + 1]
        scores = self.rules.scores(torch.tensor(self.log_probs[step]), text, float(self.log_sums[step]))
        return scores.numpy()

    def entropies(self) -> np.ndarray:
        """Entropy of the next piece at every step, in bits, [step]."""
        return self._entropies

    @cached_property
    def _entropies(self) -> np.ndarray:
        entropies = np.array([entropy(row) for row in self.log_probs])
        entropies.flags.writeable = False
        return entropies

    def step(self, index: int, *, top_k: int = 10) -> Step:
        """One step, from 0, with its best `top_k` candidates and the chosen piece; a QueryError if there is none."""
        if not self.n_steps:
            raise QueryError("this model generates no output, so its run has no steps; look at its maps instead.")
        if not 0 <= index < self.n_steps:
            raise QueryError(
                "step {index} does not exist; this run has steps 0 to {last}.", index=index, last=self.n_steps - 1
            )
        chosen = self.tgt_ids[index]
        rank = self.rank_of(chosen, step=index)
        listed = best(self.log_probs[index], top_k)
        if rank > top_k:
            listed.append(chosen)
        row = self.row_of(index)
        none = np.zeros((0, 0, 0), dtype=np.float32)
        return Step(
            index=index,
            label=self.row_label(row),
            candidates=self._candidates(index, listed),
            entropy=float(self._entropies[index]),
            rank=rank,
            forced=index < self.n_forced or chosen == self.rules.only_at(index),
            decoder_rows=self.maps("decoder")[:, :, row, : row + 1] if self.keeps_maps else none,
            cross_rows=self.maps("cross")[:, :, row] if self.keeps_maps and "cross" in self.kinds else none,
        )

    def rank_of(self, piece_id: int, *, step: int) -> int:
        """The rank of a piece among the candidates of a step, 1 for the most probable; ties go by id."""
        row = self.log_probs[step]
        return int((row > row[piece_id]).sum() + (row[:piece_id] == row[piece_id]).sum()) + 1

    def to_frame(self) -> "pd.DataFrame":
        """One row per step: what it read and predicted, how probable that was, and how sure the model was."""
        import pandas as pd  # here, because it takes 70 MB and half a second, and most runs need no table

        steps = [self.step(t, top_k=1) for t in range(self.n_steps)]
        return pd.DataFrame(
            {
                "step": [s.index for s in steps],
                "reads": [s.label.reads for s in steps],
                "predicts": [s.label.predicts for s in steps],
                "id": list(self.tgt_ids),
                "probability": [s.chosen.probability for s in steps],
                "log_probability": [s.chosen.log_probability for s in steps],
                "rank": [s.rank for s in steps],
                "entropy_bits": [s.entropy for s in steps],
                "forced": [s.forced for s in steps],
                "text": list(self.texts),
            }
        )

    def labels(self, kind: Kind) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tokens of an attention's rows and columns."""
        decoder, encoder = self.read_tokens, self.src_tokens
        return encoder if kind == "encoder" else decoder, decoder if kind == "decoder" else encoder

    def save(self, path: "Path | str") -> None:
        """Write a file, such as `run.glass`, that `transformer.load_run` and the app open; OSError: nothing changed."""
        imported("transformer.runs.run_file:save_run")(self, path)  # which reads traces, too

    def _candidates(self, index: int, ids: Sequence[int]) -> tuple[Candidate, ...]:
        row, scores = self.log_probs[index], self.scores_at(index)
        drawn = drawn_from(scores, self.query.decoding)
        return tuple(
            Candidate(
                id=i,
                piece=self.vocabulary[i],
                probability=float(np.exp(row[i])),
                log_probability=float(row[i]),
                sampling_probability=None if drawn is None else float(drawn[i]),
                rule=change(float(row[i]), float(scores[i])),
                chosen=i == self.tgt_ids[index],
            )
            for i in ids
        )


def _of(kind: Kind, found: Mapping[Kind, _Found]) -> _Found:
    if kind not in found:
        raise QueryError(
            "there is no {kind} attention in these maps, only these kinds: {kinds}.",
            kind=repr(kind),
            kinds=", ".join(found),
        )
    return found[kind]


def _same(a: object, b: object) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


@dataclass(frozen=True, eq=False)
class LabelledAttention:
    """The maps of one attention."""

    kind: Kind  # which attention
    weights: np.ndarray  # float32 [layer, head, query, key], 0 to 1
    queries: Sequence[str]  # A label for each row and column
    keys: Sequence[str]  # A label for each row and column
    # Bool [query, key], True = may attend. By default all may; if decoder self-attention has no weight on later keys,
    # these are closed.
    allowed: np.ndarray | None = None
    # Whether every row must sum to 1; False if rows are known not to, such as after dropout or a cut.
    sums_to_one: bool = True
    signed: bool = False  # whether the numbers are attributions, on both sides of 0, and no weights

    @property
    def mask(self) -> np.ndarray:
        """Bool [query, key], True = may attend."""
        assert self.allowed is not None  # since it was made
        return self.allowed


@dataclass(frozen=True, eq=False)
class LabelledMaps(MapTables):
    """The maps of one sentence."""

    attentions: tuple[LabelledAttention, ...]  # one or more, of different kinds
    checkpoint: str = ""  # name of their model; empty if not said
    sentence: str = ""  # what it read; empty if not said
    special: tuple[str, ...] = ()  # labels that are not text, such as "[CLS]"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The attentions that it has."""
        return tuple(one.kind for one in self.attentions)

    def of(self, kind: Kind) -> LabelledAttention:
        """One attention with its labels; a QueryError if it was not given."""
        return _of(kind, {one.kind: one for one in self.attentions})

    def maps(self, kind: Kind) -> np.ndarray:
        """Attention weights of one kind, [layer, head, query, key]."""
        return self.of(kind).weights

    def mask(self, kind: Kind, layer: int | None = None) -> np.ndarray:
        """The mask of one kind, bool [query, key]; True = may attend. All layers have the same."""
        return self.of(kind).mask

    def labels(self, kind: Kind) -> tuple[Sequence[str], Sequence[str]]:
        """The labels of an attention's rows and columns."""
        return self.of(kind).queries, self.of(kind).keys

    def show(self, picture: str = "attention.overview", **view: object) -> NotebookDisplay:
        """The maps in a notebook; `picture` may be "attention.head" too, with a layer and a head; as `Trace.show`."""
        return _displayed(self, picture, view)

    def _repr_html_(self) -> str:
        try:
            return self.show()._repr_html_()
        except GlassformerError as error:
            return f"<p>{escape(str(error))}</p>"

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all contents, in hexadecimal digits: equal maps have equal hashes."""
        digest = hashlib.sha256(repr((self.checkpoint, self.sentence, self.special)).encode())
        for one in self.attentions:
            digest.update(repr((one.kind, one.weights.shape, one.queries, one.keys, one.sums_to_one)).encode())
            digest.update(b"signed" * one.signed)
            digest.update(np.ascontiguousarray(one.weights).data)
            digest.update(one.mask.tobytes())
        return digest.hexdigest()


def _displayed(shown: Trace | LabelledMaps, picture: str, view: Mapping[str, object]) -> NotebookDisplay:
    """What a notebook draws, by the extension that draws."""
    for show in provided("shows"):
        found: NotebookDisplay = show(shown, picture, view)
        return found
    raise GlassformerError(
        "pictures of a run are drawn by the app, but its module {name} is missing; `pip install "
        "glassformer` brings it.",
        name="glassformer",
    )
