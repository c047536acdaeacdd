"""Axes of an attention map; names of attentions, stacks and sides; views fitted to a model; mask reasons.

Decoder rows are called "reads → predicts". In guess mode what comes after the current step is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from glassformer.charts.theme import CLOSED, Colour
from glassformer.runs.viewed_run import Viewed, ViewedRun, VisibleMaps, VisibleTrace, can_roll, fit_head, has_words
from glassformer.state.view import Side, View
from transformer.i18n import Sentence, say
from transformer.model.anatomy import EVERY_PART, Anatomy, Kind, StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.trace import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


KIND_NAMES: dict[Kind, str] = {
    "encoder": say("Encoder self-attention"),
    "decoder": say("Decoder self-attention"),
    "cross": say("Cross-attention"),
}
SIDES: dict[Side, str] = {"source": say("Source"), "target": say("Target")}
STACKS: dict[Side, StackName] = {"source": "encoder", "target": "decoder"}
SIDE_OF: dict[StackName, Side] = {stack: side for side, stack in STACKS.items()}
AXES: dict[Side, str] = {"source": say("Source token"), "target": say("Reads → predicts")}
STACK_NAMES: dict[StackName, str] = {"encoder": say("encoder"), "decoder": say("decoder")}
_WITHOUT: dict[Side, str] = {
    "source": say("The source side was requested, but this model has no encoder, so the target side is shown."),
    "target": say("The target side was requested, but this model has no decoder, so the source side is shown."),
}
SOURCE_ROWS = say("Source token (query)")
SOURCE_COLUMNS = say("Source token (key)")
TARGET_ROWS = say("Reads → predicts (query)")
TARGET_COLUMNS = say("Token read (key)")
GIVEN_TARGET_ROWS = say("Target token (query)")
GIVEN_TARGET_COLUMNS = say("Target token (key)")


def head_of_kind(kind: Kind, layer: int, head: int) -> Sentence:
    """What a head is called among those of all attentions; layer and head from 0."""
    return say("{attention}, layer {layer}, head {head}", attention=KIND_NAMES[kind], layer=layer + 1, head=head + 1)


def has_one_stack(config: ModelConfig) -> bool:
    """Whether a model has but one side, with the one table of embeddings."""
    return len(anatomy(config).stacks) == 1


@dataclass(frozen=True)
class MapAxes:
    """What the axes of a map are; its array is `maps(kind)[..., : len(queries), : len(keys)]`."""

    queries: list[str]  # a label for each row that may be seen
    keys: list[str]  # a label for each column that may be seen
    query_axis: str  # the name of the rows' axis
    key_axis: str  # the name of the columns' axis
    query_ids: tuple[int, ...]  # piece ids, for a decoder row the piece that it reads; nothing of given maps
    key_ids: tuple[int, ...]  # piece ids of the columns in the same way
    query_side: Colour  # the colour of the rows' side, "source" or "target"
    key_side: Colour  # the colour of the columns' side
    current: int | None  # row of the current step; None in the encoder


def sides(visible: VisibleTrace | VisibleMaps, kind: Kind) -> MapAxes:
    """The axes of the maps of one kind: what of a run may be seen, or maps that were given."""
    if isinstance(visible, VisibleMaps):
        return _given(visible.trace, kind)
    trace = visible.trace
    source, source_ids = list(trace.src_tokens), trace.src_ids
    if kind == "encoder":
        return MapAxes(
            source, source, SOURCE_ROWS, SOURCE_COLUMNS, source_ids, source_ids, "source", "source", current=None
        )
    rows, row_ids, n = visible.row_labels(), trace.read_ids[: visible.n_rows], visible.n_rows
    if kind == "cross":
        return MapAxes(rows, source, TARGET_ROWS, SOURCE_COLUMNS, row_ids, source_ids, "target", "source", visible.row)
    columns = TARGET_COLUMNS
    return MapAxes(
        rows, list(trace.read_tokens[:n]), TARGET_ROWS, columns, row_ids, row_ids, "target", "target", visible.row
    )


def _given(maps: LabelledMaps, kind: Kind) -> MapAxes:
    attention, one = EVERY_PART.attention(kind), maps.of(kind)
    query, key = SIDE_OF[attention.stack], SIDE_OF[attention.keys_from]
    return MapAxes(
        queries=list(one.queries),
        keys=list(one.keys),
        query_axis=SOURCE_ROWS if query == "source" else GIVEN_TARGET_ROWS,
        key_axis=SOURCE_COLUMNS if key == "source" else GIVEN_TARGET_COLUMNS,
        query_ids=(),
        key_ids=(),
        query_side=query,
        key_side=key,
        current=None,
    )


def fit_parts(view: View, parts: Anatomy) -> tuple[View, tuple[str, ...]]:
    """Select an attention and a side that a model has, with a note for each missing one, except for defaults."""
    side = view.side
    kind, notes = _fit_kind(view, parts.kinds)
    stacks = [stack.name for stack in parts.stacks]
    if STACKS[side] not in stacks:
        side = SIDE_OF[stacks[0]]
        if view.side != View.side:
            notes.append(_WITHOUT[view.side])
    return replace(view, kind=kind, side=side), tuple(notes)


def fit_aggregate(view: View, config: ModelConfig) -> tuple[View, tuple[str, ...]]:
    """Put heads together in a way that a model allows, with a note if another was requested."""
    if view.aggregate != "rollout" or config.residual:
        return view, ()
    note = say(
        "Rollout was requested, but it follows the residual stream, which this model does not have. The mean of "
        "the attention maps is shown instead."
    )
    return replace(view, aggregate="mean"), (note,)


def fit_given(view: View, maps: LabelledMaps) -> tuple[View, tuple[str, ...]]:
    """Look at an attention, a layer and a head that are there, and only as maps allow; notes as of `fit_parts`."""
    kind, notes = _fit_kind(view, maps.kinds)
    fitted, moved = fit_head(replace(view, kind=kind), *maps.maps(kind).shape[:2])
    if fitted.aggregate == "rollout" and not can_roll(maps, kind):
        fitted = replace(fitted, aggregate="mean")
        notes.append(
            say("Rollout was requested, but it cannot be computed from these maps. Their mean is shown instead.")
        )
    words, hidden = fitted.words and has_words(maps), fitted.hide_special and bool(maps.special)
    return replace(fitted, words=words, hide_special=hidden), (*notes, *moved)


def _fit_kind(view: View, kinds: Sequence[Kind]) -> tuple[Kind, list[str]]:
    """An attention that is there, and a note if another was requested; none for the default."""
    if view.kind in kinds:
        return view.kind, []
    kind = kinds[-1]
    if view.kind == View.kind:
        return kind, []
    asked, shown = KIND_NAMES[view.kind], KIND_NAMES[kind]
    said = say("{asked} was requested, but does not exist here. {shown} is shown instead.", asked=asked, shown=shown)
    return kind, [said]


def group_size(config: ModelConfig | None) -> int:
    """How many heads share one key-value head; 1 where each has its own, or nothing is known of them."""
    return 1 if config is None else config.n_heads // config.n_kv_heads


def size_of(run: Viewed) -> int:
    """The same of a run; of given maps nothing is known."""
    return group_size(None if run.checkpoint is None else run.checkpoint.config)


def shared_by(head: int, config: ModelConfig | None) -> str:
    """With which heads a head shares keys and values, in a few words; "" if with none."""
    size = group_size(config)
    if size == 1 or config is None:
        return ""
    group = head // size
    if config.n_kv_heads == 1:
        return say("all {n_heads} heads share one key-value head", n_heads=config.n_heads)
    return say("heads {first} to {last} share key-value head {group} of {n}", n=config.n_kv_heads, group=group + 1,
               first=group * size + 1, last=(group + 1) * size)  # fmt: skip


def own_masks(run: Viewed, kind: Kind) -> np.ndarray:
    """The mask of an attention, bool [query, key], or [layer, query, key] where layers have masks of their own."""
    return run.trace.masks[kind] if isinstance(run, ViewedRun) else run.visible.trace.mask(kind)


def prompt_row(run: Viewed, kind: Kind) -> int | None:
    """The row that predicts the output's first piece, where queries and keys are a prompt and what follows it."""
    if not isinstance(run, ViewedRun) or kind != "decoder" or "encoder" in run.trace.kinds or not run.trace.n_steps:
        return None
    return run.trace.first_row


def mask_reason(checkpoint: Checkpoint | None, kind: Kind) -> Sentence:
    """Why the mask closes cells of an attention; of given maps only that it does is known."""
    if checkpoint is None:
        return CLOSED
    parts = anatomy(checkpoint.config)
    if not parts.attention(kind).causal:
        return say("closed by the mask: the key is padding")
    if any(checkpoint.config.windows):
        return say("closed by the mask: the key comes later, or before the layer's window")
    return say("closed by the mask: the key comes later")
