"""Losses of a model on sample texts, in nats; the samples' file format; variants with other config values.

    encoder-decoder              the target's pieces, each read before the next is guessed (teacher forcing)
    the same without targets     the pieces that the model itself writes, greedily; what would be as likely if
                                 the model read another text does not count for it
    decoder-only                 the pieces of the text after the first, or of the target after the source
    an encoder with an MLM head  pieces of the text, each hidden alone

A loss is minus the logarithm of the probability that a piece was given; lower is better. Padding has no part in it.

Shapes: B texts, S source tokens, T target tokens, N pieces that count, D d_model, V target vocabulary.
"""

import copy
import math
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.analysis.hidden_pieces import MASK_PIECES, hide, mask_id
from transformer.errors import ConfigError, DataError, QueryError, shown
from transformer.files import untrusted_folder
from transformer.i18n import say
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.config_fields import Ids
from transformer.model.positions import FixedPositions
from transformer.model.transformer import Transformer
from transformer.runs.decoding import Prefix, greedy
from transformer.runs.distribution import losses_of
from transformer.runs.query import Scorable
from transformer.runs.reading import padded, read_before
from transformer.text.tokenizer import AnyTokenizer, RawIds, normalise

MOST_SAMPLES = 32
"""More lines are not read: those that are make a difference of 0.1 nats plain, and each costs time."""
MAX_BYTES, MAX_LINE = 1_000_000, 5_000


@dataclass(frozen=True)
class Samples:
    """What a model is tried with."""

    sources: tuple[str, ...]  # texts
    targets: tuple[str, ...] = ()  # what should come out, one for each source; empty if unknown

    def __len__(self) -> int:
        return len(self.sources)

    def only(self, places: range | list[int]) -> "Samples":
        """Some of them."""
        targets = tuple(self.targets[i] for i in places) if self.targets else ()
        return replace(self, sources=tuple(self.sources[i] for i in places), targets=targets)


def read_samples(path: Path) -> Samples:
    """Read the first lines of a file; DataError if it cannot be read, is not UTF-8, or as `samples_of` says."""
    content = untrusted_folder.read_start(path, MAX_BYTES + 1)
    whole = content if len(content) <= MAX_BYTES else content[:MAX_BYTES].rpartition(b"\n")[0]
    return samples_of(untrusted_folder.decoded(whole, label=str(path)), label=str(path))


def samples_of(text: str, *, label: str) -> Samples:
    """The first lines of a text, without empty ones.

    DataError if there are none, one is too long, has an empty half, or has more or fewer tabs than the first one.
    """
    rows: list[tuple[str, ...]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if len(rows) == MOST_SAMPLES:
            break
        if not line.strip():
            continue
        columns = tuple(column.strip() for column in line.split("\t"))
        _check(columns, len(rows[0]) if rows else len(columns), label=label, number=number, length=len(line))
        rows.append(columns)
    if not rows:
        raise DataError("{file}: contains no texts.", file=label)
    sources, *targets = zip(*rows, strict=True)
    return Samples(sources, *targets)


def _check(columns: tuple[str, ...], expected: int, *, label: str, number: int, length: int) -> None:
    if length > MAX_LINE:
        raise DataError(
            "{file}, line {number}: has {n:,} characters; the limit is {most:,}. Shorten it.",
            file=label,
            number=number,
            n=length,
            most=MAX_LINE,
        )
    if len(columns) > 2 or not all(columns):
        raise DataError(
            "{file}, line {number}: expected `source TAB target` or a text, found {n} column: {found}.",
            "{file}, line {number}: expected `source TAB target` or a text, found {n} columns: {found}.",
            len(columns),
            file=label,
            number=number,
            found=shown(columns),
        )
    if len(columns) != expected:
        raise DataError(
            "{file}, line {number}: some lines are `source TAB target`, others contain only one text; use one form "
            "for all lines.",
            file=label,
            number=number,
        )


ROWS = 16  # texts that are computed at once
MOST_HIDDEN = 12  # pieces of a text that are hidden one after another
MOST_WRITTEN = 64


@dataclass(frozen=True)
class Loss:
    """The loss on each of some texts."""

    totals: tuple[float, ...]  # of each text, summed over its pieces
    pieces: tuple[int, ...]  # how many there were

    @property
    def mean(self) -> float:
        """Mean loss of a piece."""
        return sum(self.totals) / max(1, sum(self.pieces))


@dataclass(frozen=True)
class SampleLoss:
    """A text as ids."""

    source: tuple[int, ...]  # what the encoder reads, or the decoder of a decoder-only model
    target: tuple[int, ...] = ()  # what is to be written
    first: int = 0  # how many pieces of it do not count


@torch.inference_mode()
def loss_of(tried: Scorable, samples: Samples, *, with_end: bool = False) -> Loss:
    """The loss of one model; a QueryError if it has no logits, or a text does not fit into it.

    `with_end` is for a decoder-only model: the text is a whole one, so the end piece after it counts too.
    """
    parts = tried.model.anatomy
    if parts.fills:
        return _hidden_alone(tried, samples)
    if not parts.writes:
        raise QueryError("This model does not generate text and has no MLM head, so no loss can be computed.")
    rows = [row_of(tried, samples, i, with_end=with_end) for i in range(len(samples))]
    if parts.reads and not samples.targets:
        return _of_own(tried.model, rows)
    return _of_targets(tried.model, rows)


@torch.inference_mode()
def first_output(tried: Scorable, samples: Samples) -> str:
    """What a model with an encoder and a decoder writes greedily for the first of some texts."""
    found: dict[int, SampleLoss] = {}
    _written(tried.model, [row_of(tried, samples, 0)], [0], found)
    ends = tried.model.config.end_ids
    return tried.tgt_tokenizer.decode([i for i in found[0].target if i not in ends])


def text_ids(text: str, tokenizer: AnyTokenizer, steps: Sequence[str] = ()) -> tuple[int, ...]:
    """The ids of a text after some steps of normalisation, nothing around them; DataError if a part has no piece."""
    encoding = tokenizer.encode(normalise(text, steps))
    if encoding.unread and not isinstance(tokenizer, RawIds):
        raise DataError(
            "{text} contains {found}, but the vocabulary has no token for it and no unknown token to use instead; "
            "remove it from the text.",
            found=shown(encoding.unread[0]),
            text=shown(text),
        )
    if encoding.unread:
        raise DataError(
            "{text} contains {found}, but this model has no tokenizer; write ids from 0 to {last}, or give its "
            "tokenizer.",
            found=shown(encoding.unread[0]),
            text=shown(text),
            last=tokenizer.size - 1,
        )
    return encoding.ids


def row_of(tried: Scorable, samples: Samples, i: int, *, with_end: bool = False) -> SampleLoss:
    """One of some texts as the model reads and writes it; `with_end` as `loss_of` has it, errors as of `text_ids`."""
    config = tried.model.config
    source = text_ids(samples.sources[i], tried.src_tokenizer, config.normalisation)
    target = bare(text_ids(samples.targets[i], tried.tgt_tokenizer), tried) if samples.targets else ()
    if tried.model.anatomy.reads:
        written = (*config.forced_ids, *target, config.eos_id)
        return SampleLoss((*config.source_start, *source, *config.source_end), written, len(config.forced_ids))
    text = (*source, *target) if target else bare(source, tried)
    whole = (*config.source_start, *text, *((config.eos_id,) if with_end else ()))
    # The first piece of a text is left out: only with a start piece is there something before it.
    read = len(config.source_start) + (len(source) if target else 1)
    return SampleLoss(whole[:-1], whole[1:], read - 1)


def bare(ids: tuple[int, ...], tried: Scorable) -> tuple[int, ...]:
    """The ids of what is written, without start and end, which a row of ids may have been typed with."""
    if not isinstance(tried.tgt_tokenizer, RawIds):
        return ids
    config = tried.model.config
    starts = tried.model.anatomy.reads and ids[:1] == (config.decoder_start_id,)  # a decoder-only model reads its start
    ids = ids[starts:]
    return ids[: len(ids) - (ids[-1:] == (config.eos_id,))]


def _groups(rows: Sequence[SampleLoss], config: ModelConfig) -> Iterator[list[int]]:
    """Places of rows that are computed at once: of one length of source, where nothing is padding."""
    ordered = sorted(range(len(rows)), key=lambda i: len(rows[i].source))
    alike = groupby(ordered, key=lambda i: len(rows[i].source) if config.pad_id is None else 0)
    for _, group in alike:
        places = list(group)
        yield from (places[start : start + ROWS] for start in range(0, len(places), ROWS))


def _of_targets(model: Transformer, rows: Sequence[SampleLoss]) -> Loss:
    parts = ((places, _forced(model, [rows[i] for i in places])) for places in _groups(rows, model.config))
    return _gathered(len(rows), parts)


def _of_own(model: Transformer, rows: Sequence[SampleLoss]) -> Loss:
    """The loss of what the model writes, of which only the probability counts that it gains by reading the text."""
    found: dict[int, SampleLoss] = {}
    parts = ((places, _written(model, rows, places, found)) for places in _groups(rows, model.config))
    own = _gathered(len(rows), parts)
    if len({row.source for row in rows}) < 2:
        return own  # there is no other text
    read = _of_targets(model, [found[i] for i in range(len(rows))])  # not `own`: nothing is banned in the other
    other = _of_targets(model, [replace(found[i], source=_other(rows, i)) for i in range(len(rows))])
    gains = [b - a for a, b in zip(read.totals, other.totals, strict=True)]
    size = model.config.tgt_vocab_size
    return Loss(tuple(total + _lost(gain, size) for total, gain in zip(own.totals, gains, strict=True)), own.pieces)


def _other(rows: Sequence[SampleLoss], i: int) -> tuple[int, ...]:
    return next(row.source for row in (*rows[i + 1 :], *rows[:i]) if row.source != rows[i].source)


def _lost(gain: float, size: int) -> float:
    """What an output loses in p(output | text) - p(output | another text), of which the ratio's logarithm is `gain`.

    One that gains nothing counts as a guess of one of `size` pieces.
    """
    return -math.log(max(-math.expm1(-max(gain, 0.0)), 1 / size))


def _gathered(n: int, parts: Iterator[tuple[list[int], list[tuple[float, int]]]]) -> Loss:
    found = dict(pair for places, losses in parts for pair in zip(places, losses, strict=True))
    return Loss(tuple(found[i][0] for i in range(n)), tuple(found[i][1] for i in range(n)))


def _forced(model: Transformer, rows: Sequence[SampleLoss]) -> list[tuple[float, int]]:
    """Loss and number of pieces of each row, of targets that are given."""
    config = model.config
    wanted = padded([row.target for row in rows], config.fill_id)  # [B, T]
    place = torch.arange(wanted.size(1))
    first, last = (torch.tensor(ends)[:, None] for ends in zip(*((r.first, len(r.target)) for r in rows), strict=True))
    counts = (place >= first) & (place < last)  # [B, T]; by length, as a text may hold the padding id
    source = padded([row.source for row in rows], config.fill_id)  # [B, S]
    if model.anatomy.reads:
        before = read_before(wanted, config.decoder_start_id)  # [B, T]
        hidden = model.decode(before, model.encode(source), model.source_mask(source))  # [B, T, D]
    else:
        hidden = model.decode(source)
    found = losses_of(model, hidden[counts], wanted[counts])
    losses = found.new_zeros(wanted.shape)
    losses[counts] = found
    return list(zip(losses.sum(dim=1).tolist(), counts.sum(dim=1).tolist(), strict=True))


def _written(
    model: Transformer, rows: Sequence[SampleLoss], places: Sequence[int], found: dict[int, SampleLoss]
) -> list[tuple[float, int]]:
    """Loss and number of pieces of what the model writes, which goes into `found`.

    An output that has not ended counts with its missing end: wrong models repeat themselves, and are certain of it.
    """
    config = model.config
    source = padded([rows[i].source for i in places], config.fill_id)
    most = min(2 * source.size(1) + 8, MOST_WRITTEN, config.max_len - 1)
    prefix = Prefix(model, source, cache=KVCache(config.n_decoder_layers))
    totals, counts, over = [0.0] * len(places), [0] * len(places), (False,) * len(places)
    ids: list[list[int]] = [[] for _ in places]
    forced = [config.forced_ids for _ in places]
    for step in greedy(prefix, max_new=most, forced=forced):
        for row, log_prob in enumerate(step.log_probs):
            if over[row]:
                continue
            ids[row].append(step.ids[row])
            if step.index >= len(config.forced_ids):
                totals[row] -= log_prob
                counts[row] += 1
        over = step.finished
    if not all(over):
        ends = -prefix.next_log_probs()[:, config.eos_id]
        totals = [total + float(ends[i]) * (not over[i]) for i, total in enumerate(totals)]
        counts = [count + (not over[i]) for i, count in enumerate(counts)]
    for row, i in enumerate(places):
        ended = () if over[row] else (config.eos_id,)
        found[i] = SampleLoss(rows[i].source, (*ids[row], *ended), len(config.forced_ids))
    return list(zip(totals, counts, strict=True))


def _hidden_alone(tried: Scorable, samples: Samples) -> Loss:
    """Loss of pieces that are hidden one at a time: a row of a batch for each."""
    config, mask = tried.model.config, mask_id(tried.src_tokenizer)
    if mask is None:
        raise QueryError(
            say("This model's tokenizer has none of the tokens {names}, so no token can be hidden.",
                names=", ".join(MASK_PIECES))
        )  # fmt: skip
    totals, counts = [], []
    for text in samples.sources:
        ids = text_ids(text, tried.src_tokenizer, config.normalisation)
        first = len(config.source_start)
        known = [first + i for i, one in enumerate(ids) if one != mask]  # not the text's own gaps
        places = known[:: -(-len(known) // MOST_HIDDEN) or 1]
        hidden = hide(tried.model, (*config.source_start, *ids, *config.source_end), places, mask)
        totals.append(float(hidden.losses.sum()))
        counts.append(len(places))
    return Loss(tuple(totals), tuple(counts))


Answers = Mapping[str, Any]
KEPT = 4  # models that are kept for others that differ in ids alone
_IDS = tuple(one.name for one in fields(Ids))


@dataclass(frozen=True)
class Variant:
    """A model that shares its parameters with others; it can be run, but queries do not know it."""

    model: Transformer
    src_tokenizer: AnyTokenizer
    tgt_tokenizer: AnyTokenizer
    name: str = ""
    content_hash: str = ""

    @property
    def config(self) -> ModelConfig:
        """The features of the model."""
        return self.model.config


@dataclass(frozen=True)
class Variants:
    """The models that can be made of one."""

    base: Scorable  # whose parameters and tokenizers they share
    # The last that were made, by their configs with the ids of the base.
    kept: "OrderedDict[ModelConfig, Transformer]" = field(default_factory=OrderedDict)

    def get(self, answers: Answers) -> Variant | None:
        """The model with these values of fields of the config; None if it has other parameters."""
        config = with_answers(self.base.model.config, answers)
        alike = replace(config, **{name: getattr(self.base.model.config, name) for name in _IDS})
        if config.sinusoid_layout == "fairseq":  # its positions are counted from the padding id
            alike = config
        model = self.kept.get(alike) or _made(self.base.model, alike)
        if model is None:
            return None
        self.kept[alike] = model
        while len(self.kept) > KEPT:
            self.kept.popitem(last=False)
        twin = copy.copy(model)  # of the same layers: those know nothing of ids
        twin.config = config
        return Variant(twin, self.base.src_tokenizer, self.base.tgt_tokenizer)


def with_answers(config: ModelConfig, answers: Answers) -> ModelConfig:
    """A config with other values, and what follows from them derived anew; ConfigError if they contradict."""
    changes = dict(answers)
    if "n_heads" in changes:
        divided = config.d_head == config.d_model // config.n_heads
        changes = {"d_head": 0} | changes if divided else changes
        changes = {"n_kv_heads": 0} | changes if config.n_kv_heads == config.n_heads else changes
    if "bos_id" in changes and config.decoder_start_id == config.bos_id and "decoder_start_id" not in changes:
        if changes["bos_id"] is not None:
            changes["decoder_start_id"] = changes["bos_id"]
        elif config.n_encoder_layers:
            raise ConfigError("bos_id", "found null, but the decoder needs this id to start; enter an id.")
    return replace(config, **changes)


def _made(base: Transformer, config: ModelConfig) -> Transformer | None:
    with torch.device("meta"):  # shapes without values
        model = Transformer(config)
    state = dict(base.state_dict())
    if _shapes(model.state_dict()) != _shapes(state):
        return None
    model.load_state_dict(state, assign=True)
    for module in model.modules():
        if isinstance(module, FixedPositions):
            module.fill(model.device)  # a formula: no file holds it
    return model.requires_grad_(False).eval()


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}
