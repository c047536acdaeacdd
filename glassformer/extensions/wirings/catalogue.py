"""Catalogue of code mistakes (wirings): texts; variants by model as interventions, pair readings or configs.

    for one in wirings(config):
        one.name, one.texts.title, one.variants

A mistake is a change of a run (`changes`), another way to read pairs (`reading`), or another config with the same
parameters (`answers`). `wirings.toml` has the texts. *What goes wrong* shows them, and `search.py` looks for the one
with which a model knows its pairs.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from glassformer.extensions.what_if.interventions.layer_changes import (
    EmbeddingScale,
    NoFeedForward,
    NoNorm,
    NoResidual,
    SwapNorms,
)
from glassformer.extensions.what_if.interventions.mask_changes import CausalMask, PaddingMask
from glassformer.extensions.what_if.interventions.miswiring import CLOSED, Miswiring
from glassformer.extensions.what_if.interventions.piece_changes import NoPositions, ScalePositions, ShiftPositions
from glassformer.extensions.what_if.interventions.score_changes import (
    FillValue,
    HeadsTold,
    NoGuard,
    ScoreScale,
    SoftmaxTwice,
)
from glassformer.extensions.wirings.readings import RIGHT, Ids, Reading
from transformer.errors import QueryError
from transformer.i18n import Sentence, joined
from transformer.i18n.sentence import read_table
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention, checked, fitted

Changes = tuple[Intervention, ...]


@dataclass(frozen=True)
class WiringTexts:
    """What is said of a wiring."""

    title: Sentence  # what it is called
    headline: Sentence  # what was wrong in a training
    about: Sentence  # what the code does, how it looks, what is hard to tell from it
    wrong: Sentence  # the line as it was written
    right: Sentence  # the line as it should be
    page: str  # of the app, where it is seen best
    panel: str  # the part of the page; empty for its own choice
    source: Sentence  # where what is right is described
    alike: Sequence[str] = ()  # names of wirings that look alike


@dataclass(frozen=True)
class Variant:
    """One way in which a wiring is made in a model, or two wirings at once."""

    names: tuple[str, ...]  # of the wirings; none: as the model stands
    changes: Changes = ()
    reading: Reading = RIGHT
    answers: tuple[tuple[str, Any], ...] = ()  # fields of the config, with their values

    def and_(self, other: "Variant") -> "Variant | None":
        """Both at once; None where they contradict each other."""
        alike = set(self.names) & set(other.names) or dict(self.answers).keys() & dict(other.answers).keys()
        if alike or (self.reading != RIGHT != other.reading):
            return None
        try:
            changes = checked((*self.changes, *other.changes))
        except QueryError:
            return None
        reading = other.reading if self.reading == RIGHT else self.reading
        if reading.shift != 1 or not reading.end_counts:  # with less to predict, chance finds a second mistake
            return None
        return Variant((*self.names, *other.names), changes, reading, (*self.answers, *other.answers))

    @property
    def told(self) -> Sentence:
        """What is changed, in words; empty where only pairs are read in another way."""
        return joined("; ", [one.told() for one in self.changes])


AS_IT_IS: Final = Variant(())
Makes = Callable[[ModelConfig], Iterable[Changes | Reading | Mapping[str, Any]]]


@cache
def texts() -> dict[str, WiringTexts]:
    """The texts of all wirings, in the order of the catalogue."""
    found: dict[str, WiringTexts] = {}
    for name, row in read_table(Path(__file__).with_name("wirings.toml")).items():
        page, _, panel = row.pop("page").partition("/")
        found[name] = WiringTexts(page=page, panel=panel, **row)
    return found


def titles(names: tuple[str, ...]) -> Sentence:
    """What one or two mistakes are called."""
    return joined(" + ", [texts()[name].title for name in names])


def variants(name: str, config: ModelConfig) -> tuple[Variant, ...]:
    """The ways in which a wiring can be made in a model; none where it makes no sense there."""
    found: list[Variant] = []
    makes = SHOWN.get(name) or _MADE.get(name)
    for made in makes(config) if makes else ():
        one = (
            Variant((name,), reading=made) if isinstance(made, Reading)
            else Variant((name,), made) if isinstance(made, tuple)
            else Variant((name,), answers=tuple(made.items()))
        )  # fmt: skip
        if _fits(one.changes, config) and one not in found:
            found.append(one)
    return tuple(found)


def _fits(changes: Changes, config: ModelConfig) -> bool:
    try:
        tuple(fitted(checked(changes), config))
    except QueryError:
        return False
    return True


def catalogue(config: ModelConfig) -> Iterator[Variant]:
    """Every variant of every wiring that makes sense in a model."""
    return (one for name in _MADE for one in variants(name, config))


def in_a_batch(one: Variant) -> Iterator[Variant]:
    """A variant in other batches, if it depends on them: rows alone, cut before they are padded, of a fixed length."""
    if one.reading == RIGHT and set(one.names) & WIDTHS:
        padded = ((n, cut) for n in (1.01, 1.1, 1.2, 1.35, 1.6, 2.0) for cut in (False, True))
        for width, cut in ((0.0, False), (1.0, True), *padded):
            yield replace(one, reading=Reading(width=width, cut=cut))


# ------------------------------------------------------------------------------------------------ how each is made

_STACKS: Final = ("all", "encoder", "decoder")


def _always(*some: Changes) -> Makes:
    """The same variants for every model; those that do not fit it are left out later."""
    return lambda config: some


def _miswired(*hows: str, stacks: Sequence[str] = ("all",)) -> Makes:
    return lambda config: [(Miswiring(stack, None, how),) for how in hows for stack in _stacks(config, stacks)]


def _stacks(config: ModelConfig, wanted: Sequence[str]) -> list[str]:
    """The stacks that a model has: of one stack, all is enough."""
    several = len(anatomy(config).stacks) > 1
    return [one for one in wanted if one == "all" or several]


def _readings(*some: Reading) -> Makes:
    return lambda config: some if config.n_decoder_layers else ()


def _of_two_stacks(*some: Changes | Reading) -> Makes:
    return lambda config: some if config.n_encoder_layers and config.n_decoder_layers else ()


def _of_stacks(change: Callable[[str], Intervention]) -> Makes:
    return lambda config: [(change(stack),) for stack in _stacks(config, _STACKS)]


def _embedding_scale(config: ModelConfig) -> Iterator[Changes]:
    root = math.sqrt(config.d_model)
    for stack in _stacks(config, _STACKS):
        yield (EmbeddingScale(stack, 1.0 if config.scale_embedding else root),)
    if config.scale_embedding:
        yield (EmbeddingScale("all", config.d_model),)


def _late_scale(config: ModelConfig) -> Iterator[Changes]:
    if config.placing.adds == "table":
        root = math.sqrt(config.d_model)
        own = () if config.scale_embedding else (EmbeddingScale("all", root),)
        yield (*own, ScalePositions("all", min(root, 100.0)))


def _table_only(makes: Makes) -> Makes:
    return lambda config: makes(config) if config.placing.adds == "table" else ()


def _shifts(*by: int) -> Makes:
    return _table_only(lambda config: [(ShiftPositions(one, n),) for n in by for one in _stacks(config, _STACKS)])


_PADS_OPEN: Final = PaddingMask("decoder", "off")  # as in code without a mask for the target's padding


def _no_causal_mask(config: ModelConfig) -> Iterator[Changes]:
    yield (CausalMask("off"),)
    yield (CausalMask("off"), _PADS_OPEN)
    yield (Miswiring("decoder", None, "future"),)
    for layer in range(config.n_decoder_layers if config.n_decoder_layers > 1 else 0):
        yield (Miswiring("decoder", layer, "future"),)


def _causal(how: str) -> Makes:
    """With closed scores of -1e9, and of minus infinity, where torch gives a row without open keys weights of 0."""
    whole, own = (CausalMask(how), FillValue("decoder", CLOSED)), (CausalMask(how),)
    return _always(whole, own, (*whole, _PADS_OPEN), (*own, _PADS_OPEN))


def _scaled(*scales: Callable[[ModelConfig], float]) -> Makes:
    """Other scales of the scores than the model's own."""

    def made(config: ModelConfig) -> Iterator[Changes]:
        own = config.d_head**-0.5 if config.score_scale is None else config.score_scale
        for scale in (one(config) for one in scales):
            if not math.isclose(scale, own):
                yield (ScoreScale("all", "number", min(scale, 100.0)),)

    return made


def _head_numbers(config: ModelConfig) -> Iterator[Changes | Mapping[str, Any]]:
    """Down to a quarter and up to four times the number, and one; as answers where a change cannot."""
    width, shared, own = config.n_heads * config.d_head, config.n_kv_heads * config.d_head, config.n_heads
    for n in dict.fromkeys((2 * own, own // 2, 4 * own, own // 4, 1)):
        if n and n != own and width % n == 0 and shared % (width // n) == 0:
            if HeadsTold.unfit(config) is None:
                yield (HeadsTold(n),)
            else:
                yield {"n_heads": n, "d_head": width // n, "n_kv_heads": shared // (width // n)}


def _no_norms(config: ModelConfig) -> Iterator[Changes]:
    yield (NoNorm("all", None, "all"),)
    each = NoNorm("all", None, "selfattn"), NoNorm("decoder", None, "crossattn"), NoNorm("all", None, "ffn")
    yield from ((one,) for one in each)
    yield each if "cross" in anatomy(config).kinds else each[::2]


def _other_starts(config: ModelConfig) -> Iterator[Reading]:
    if config.n_encoder_layers and config.n_decoder_layers:
        special = (config.bos_id, config.eos_id, config.pad_id, config.unk_id)
        for one in dict.fromkeys(i for i in special if i is not None and i != config.decoder_start_id):
            yield Reading(start=one)


def _source_marks(config: ModelConfig) -> Iterator[Reading]:
    if config.n_encoder_layers and config.n_decoder_layers:
        ends, starts = not config.append_source_eos, not config.prepend_source_bos
        yield Reading(source_end=ends)
        yield Reading(source_start=starts)
        yield Reading(source_end=ends, source_start=starts)


@lru_cache(maxsize=4)
def _higher(config: ModelConfig, by: int) -> dict[int, int]:
    """Each id that is not special, and the one that is so many ordinary ids higher."""
    special = {config.pad_id, config.unk_id, config.bos_id, config.eos_id, config.decoder_start_id}
    plain = [i for i in range(min(config.src_vocab_size, config.tgt_vocab_size)) if i not in special]
    return {one: plain[(n + by) % len(plain)] for n, one in enumerate(plain)}


def _shifted_ids(config: ModelConfig) -> Iterator[Reading]:
    if config.n_decoder_layers:
        for by in (1, -1):
            edit = _Edit(by, config)
            yield Reading(source=edit, target=edit)
            yield Reading(source=edit)
            yield Reading(target=edit)


@dataclass(frozen=True)
class _Edit:
    """Ids that are higher by a number, special ones left out; equal ones are equal."""

    by: int
    config: ModelConfig

    def __call__(self, ids: Ids) -> Ids:
        higher = _higher(self.config, self.by)
        return tuple(higher.get(i, i) for i in ids)


def _reversed(ids: Ids) -> Ids:
    return ids[::-1]


_MADE: Final[dict[str, Makes]] = {
    "no-causal-mask": _no_causal_mask,
    "targets-not-shifted": _readings(Reading(shift=0)),
    "targets-shifted-twice": _readings(Reading(shift=2)),
    "scores-not-scaled": _scaled(lambda config: 1.0, lambda config: config.d_head**-0.5),
    "norm-place": _of_stacks(SwapNorms),
    "heads-number": _head_numbers,
    "embedding-scale": _embedding_scale,
    "no-positions": _of_stacks(NoPositions),
    "positions-late": _shifts(1, 2),
    "positions-early": _shifts(-1, -2),
    "heads-merged": _miswired("merged"),
    "heads-split": _miswired("split"),
    "other-activation": _miswired("relu", "gelu", "silu"),
    "no-activation": _miswired("linear"),
    "end-never-learnt": _readings(Reading(end_counts=False)),
    "causal-one-too-many": _always((CausalMask("peek"),), (CausalMask("peek"), _PADS_OPEN)),
    "causal-one-too-few": _causal("hidden"),
    "causal-inverted": _causal("inverted"),
    "causal-transposed": _causal("transposed"),
    "no-source-padding-mask": lambda config: [
        tuple(PaddingMask(one, "off") for one in ("encoder", "cross") if one in anatomy(config).kinds),
        (PaddingMask("encoder", "off"),), (PaddingMask("cross", "off"),),
    ] if config.n_encoder_layers else (),
    "no-target-padding-mask": _always((PaddingMask("decoder", "off"),)),
    "padding-on-rows": _always((PaddingMask("encoder", "rows"), FillValue("encoder", CLOSED))),
    "padding-inverted": _miswired("padsonly", stacks=_STACKS),
    "mask-discarded": _miswired("discarded", stacks=_STACKS),
    "mask-zero-fill": _miswired("zerofill"),
    "mask-after-softmax": _miswired("maskafter"),
    "mask-added": _miswired("maskadded"),
    "causal-in-encoder": _miswired("tril"),
    "causal-in-cross": _miswired("trilcross"),
    "scores-scaled-by-width": _scaled(lambda config: config.d_model**-0.5),
    "scores-scaled-twice": _scaled(lambda config: 1 / config.d_head),
    "scores-multiplied": _scaled(lambda config: config.d_head**0.5),
    "softmax-twice": _always((SoftmaxTwice("all", False),), (SoftmaxTwice("all", True),)),
    "softmax-over-queries": _miswired("overqueries"),
    "softmax-over-heads": _miswired("overheads"),
    "no-softmax": _miswired("nosoftmax"),
    "scores-transposed": _miswired("transposed"),
    "heads-by-dimension": _miswired("bydimension"),
    "qkv-interleaved": _miswired("interleaved"),
    "qkv-order": _miswired("kqv", "qvk", "vkq"),
    "values-are-keys": _miswired("qkk"),
    "no-norm": _no_norms,
    "no-final-norm": lambda config: (
        [(NoNorm(stack, None, "final"),) for stack in _stacks(config, _STACKS)] if config.final_norm else ()
    ),
    "residual-after-norm": _miswired("ontonorm", stacks=_STACKS),
    "norms-exchanged": _miswired("normorder", stacks=_STACKS),
    "norm-without-mean": _miswired("nomean"),
    "no-residual": _always(
        (NoResidual("all", None, "all"),), (NoResidual("all", None, "selfattn"),),
        (NoResidual("decoder", None, "crossattn"),), (NoResidual("all", None, "ffn"),),
    ),
    "no-feed-forward": _of_stacks(lambda stack: NoFeedForward(stack, None)),
    "gate-exchanged": _miswired("gate"),
    "only-last-layer": _miswired("lastlayer", stacks=_STACKS),
    "encoder-not-used": _of_two_stacks(
        (Miswiring("encoder", None, "nolayers"),),
        (Miswiring("encoder", None, "nolayers"), NoNorm("encoder", None, "final")),
    ),
    "no-cross-attention": _of_two_stacks((Miswiring("decoder", None, "nocross"),)),
    "output-table": _miswired("sourcetable"),
    "embedding-scale-late": _late_scale,
    "positions-twice": _table_only(_of_stacks(lambda stack: ScalePositions(stack, 2.0))),
    "positions-by-batch": _table_only(_miswired("firstrow", stacks=_STACKS)),
    "positions-halves": _table_only(_miswired("halves", "alternating")),
    "no-start-mark": _of_two_stacks(Reading(start=None)),
    "decoder-fed-constants": _of_two_stacks(Reading(constant=True)),
    "other-start-id": _other_starts,
    "source-marks": _source_marks,
    "ids-shifted": _shifted_ids,
    "tokenizers-exchanged": _readings(Reading(tokenizers_exchanged=True)),
    "source-reversed": _of_two_stacks(Reading(source=_reversed)),
    "sides-exchanged": _of_two_stacks(Reading(exchanged=True)),
}  # fmt: skip
"""By name, the likeliest first: of several that explain pairs equally well, the first is named."""

WIDTHS: Final = frozenset({
    "no-causal-mask", "mask-discarded", "mask-zero-fill", "mask-added", "causal-transposed", "heads-merged",
    "heads-split", "no-source-padding-mask", "no-target-padding-mask", "padding-on-rows", "padding-inverted",
    "softmax-over-queries", "scores-transposed", "mask-after-softmax", "causal-one-too-many", "softmax-twice",
})  # fmt: skip
"""Those of which padding is seen, or tokens are counted: what they compute depends on the batch's width."""

SHOWN: Final[dict[str, Makes]] = {"no-guard": _always((CausalMask("hidden"), NoGuard("decoder")))}
"""Mistakes of decoding: for a page, not for the search."""
