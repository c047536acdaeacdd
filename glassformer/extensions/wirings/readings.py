"""Batches of ids from pairs as training code makes them, with mistakes (`Reading`: shift, marks, pads); losses.

    source   marks and tokens of the source, padded
    read     what the decoder reads: the start mark and the target but for its last token
    wanted   what it has to predict there: the target and its end mark

Shapes: B pairs, S source tokens, T target tokens.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from transformer.analysis.losses import Loss, Samples, bare, text_ids
from transformer.errors import QueryError
from transformer.model.config import ModelConfig
from transformer.model.taps import Tap
from transformer.model.transformer import Transformer
from transformer.runs.distribution import logits_of
from transformer.runs.query import Scorable
from transformer.runs.reading import padded

Ids = tuple[int, ...]
Edit = Callable[[Ids], Ids]
ROWS: Final = 16  # pairs of one pass


@dataclass(frozen=True)
class PairIds:
    """A pair as ids, without marks; of a model of one stack, a text may have no target."""

    source: Ids
    target: Ids = ()
    # The same texts by the tokenizer of the other side; None where there is one for both, or it cannot read them.
    other: tuple[Ids, Ids] | None = None


def pairs_of(one: Scorable, samples: Samples) -> list[PairIds]:
    """Texts as a model's pairs, without marks; errors as of `text_ids`."""
    reads, found = one.model.anatomy.reads, []
    for i, source in enumerate(samples.sources):
        ids = text_ids(source, one.src_tokenizer, one.model.config.normalisation)
        if samples.targets:
            found.append(PairIds(ids, bare(text_ids(samples.targets[i], one.tgt_tokenizer), one)))
        else:
            found.append(PairIds(ids if reads else bare(ids, one)))
    return found


def _as_it_is(ids: Ids) -> Ids:
    return ids


@dataclass(frozen=True)
class Reading:
    """One way; the fields as they stand are right."""

    shift: int = 1  # places from what is read to what is predicted
    start: int | None = -1  # what the decoder reads first: -1 its own start mark, None the target's first token
    end_counts: bool = True  # whether the end mark is to be predicted
    constant: bool = False  # whether the decoder reads nothing but its start mark
    source: Edit = _as_it_is  # a change of the source's tokens
    target: Edit = _as_it_is
    source_end: bool | None = None  # whether the end mark follows the source; None: as the config says
    source_start: bool | None = None
    tokenizers_exchanged: bool = False  # whether each side is cut by the tokenizer of the other
    exchanged: bool = False  # whether the target is read and the source to be written
    # Whether each row loses its last token before it is padded; else the batch loses its last column, and a shorter row
    # keeps its end mark: only a decoder that sees later tokens reads it.
    cut: bool = False
    width: float = 1.0  # of a padded batch, in lengths of the longest row; 0: each row alone


RIGHT: Final = Reading()


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Pairs that are read together."""

    places: tuple[int, ...]  # of the pairs
    source: Tensor | None  # [B, S]; None without an encoder
    read: Tensor  # [B, T]
    wanted: Tensor  # [B, T]
    counts: Tensor  # bool [B, T]: what is to be predicted


def batches(
    config: ModelConfig, pairs: Sequence[PairIds], reading: Reading = RIGHT, *, first: int | None = None
) -> list[PairBatch]:
    """The first pairs as a model reads them, padded to the longest of all, as in a large batch of a training.

    Raises:
        QueryError: Something does not fit into the model.
    """
    every = [_row(config, one, reading) for one in pairs]
    rows = every[:first]
    longest = max(len(row[0]) for row in every), max(len(row[1]) for row in every)
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i][0]), len(rows[i][1])))
    alone = not reading.width or config.pad_id is None
    groups = groupby(order, key=lambda i: (len(rows[i][0]), len(rows[i][1])) if alone else 0)
    found = []
    for _, group in groups:
        places = list(group)
        for i in range(0, len(places), ROWS):
            some = tuple(places[i : i + ROWS])
            found.append(_batch(config, some, [rows[n] for n in some], reading, (0, 0) if alone else longest))
    return found


def _row(config: ModelConfig, pair: PairIds, reading: Reading) -> tuple[Ids, Ids, int]:
    """What the encoder reads, the decoder's whole text, and how many tokens of it are given."""
    source, target = pair.source, pair.target
    if reading.tokenizers_exchanged:
        if pair.other is None:
            raise QueryError("A text cannot be read with the tokenizer of the other side.")
        source, target = pair.other
    source, target = (target, source) if reading.exchanged else (source, target)
    source, target = reading.source(source), reading.target(target)
    end = (config.eos_id,)
    if not config.n_encoder_layers:
        before = (*config.source_start, *source)
        start = before if target else before[: len(config.source_start) + 1]
        start = start if reading.start == -1 else start[len(config.source_start) :]
        whole = (*start, *target) if target else (*start, *before[len(config.source_start) + 1 :])
        return (), (*whole, *(end if target else ())), len(start)
    first, last = config.source_start, config.source_end
    if reading.source_end is not None:
        last = end if reading.source_end else ()
    if reading.source_start is not None:
        first = (config.decoder_start_id if config.bos_id is None else config.bos_id,) if reading.source_start else ()
    start = (config.decoder_start_id,) if reading.start == -1 else () if reading.start is None else (reading.start,)
    given = (*start, *config.forced_ids) if start else target[:1]
    rest = target if start else target[1:]
    return (*first, *source, *last), (*given, *rest, *end), len(given)


def _batch(
    config: ModelConfig, places: Ids, rows: Sequence[tuple[Ids, Ids, int]], reading: Reading, longest: tuple[int, int]
) -> PairBatch:
    fill = config.fill_id
    source = _filled(padded([row[0] for row in rows], fill), longest[0], reading.width, config)
    whole = _filled(padded([row[1] for row in rows], fill), longest[1], reading.width, config, more=1)
    if max(source.size(1), whole.size(1) - 1) > config.max_len or any(not row[1][row[2] :] for row in rows):
        raise QueryError("A pair does not fit into the model.")
    at = torch.arange(whole.size(1))
    first = torch.tensor([[row[2]] for row in rows])
    last = torch.tensor([[len(row[1]) - (not reading.end_counts)] for row in rows])
    counts = (at >= first) & (at < last)
    wanted, counts = whole[:, max(reading.shift, 1) :], counts[:, max(reading.shift, 1) :]
    read = whole[:, 1:] if not reading.shift else whole[:, : whole.size(1) - reading.shift]
    if reading.cut:
        read = read.where(torch.arange(read.size(1)) < torch.tensor([[len(row[1]) - 1] for row in rows]), fill)
    if reading.constant:
        read = whole[:, :1].expand_as(read)
    return PairBatch(places, source if config.n_encoder_layers else None, read, wanted, counts)


def _filled(ids: Tensor, longest: int, width: float, config: ModelConfig, *, more: int = 0) -> Tensor:
    """Rows filled up to so many times the longest; `more` tokens of them are not read."""
    n = max(math.ceil((longest - more) * max(width, 1.0)), ids.size(1) - more)
    return pad(ids, (0, max(0, min(n, config.max_len) + more - ids.size(1))), value=config.fill_id)


@torch.inference_mode()
def vectors_of(model: Transformer, source: Tensor | None, read: Tensor, tap: Tap) -> Tensor:
    """The last vectors [B, T, D] of what the decoder reads."""
    if source is None:
        return model.decode(read, tap=tap)
    return model.decode(read, model.encode(source, tap=tap), model.source_mask(source), tap=tap)


SHARPNESS: Final = (1.0, 1.5, 2.5, 4.0, 0.6, 0.3)
"""What logits are multiplied by: a mistake that only makes a model surer, or less sure, explains nothing."""


@torch.inference_mode()
def losses_of_batches(
    model: Transformer, found: Sequence[PairBatch], n_pairs: int, tap: Callable[[], Tap], pause: Callable[[], None]
) -> list[Loss]:
    """The loss of each pair at each sharpness, under a tap, which is made anew for each pass."""
    totals = [[0.0] * n_pairs for _ in SHARPNESS]
    counts = [0] * n_pairs
    for one in found:
        pause()
        made = tap()
        hidden = vectors_of(model, one.source, one.read, made)
        here = one.counts.to(hidden.device)
        wanted = one.wanted.to(hidden.device)[here]
        logits = torch.cat(list(logits_of(model, hidden[here], tap=made)))  # [N, V]
        sizes = one.counts.sum(1).tolist()
        for place, n in zip(one.places, sizes, strict=True):
            counts[place] = n
        for row, by in zip(totals, SHARPNESS, strict=True):
            losses = -(logits * by).log_softmax(-1).gather(1, wanted[:, None])[:, 0]
            for place, some in zip(one.places, losses.cpu().split(sizes), strict=True):
                row[place] = float(some.sum())
    return [Loss(tuple(row), tuple(counts)) for row in totals]
