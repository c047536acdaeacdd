"""Runs and given maps as charts see them: what is visible, a fitted view, base classes of scenes, `ModelAccess`.

A decoder row reads one piece and predicts the next, and every label says both; a decoder-only model reads its prompt
in the first rows. Guess mode hides everything after the current step, and the current piece until it is revealed.
Given maps have no steps and their own labels, and nothing of them is hidden.

Panels ask for one layer, or say what they compute of each: a mean, tiles. A run that keeps its maps has it at once;
else the model's thread computes it, cached for all users by the work's key.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np

from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot, View
from transformer.i18n import Sentence, say
from transformer.model.anatomy import EVERY_PART
from transformer.runs.query import Greedy, Query
from transformer.runs.trace import Kind, LabelledMaps, Trace
from transformer.text import SPACE_MARK

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

Work = Callable[[np.ndarray, int], np.ndarray]
"""Makes of a layer's maps [head, query, key] and its place, from 0, what is kept of them."""


class ByLayer(Protocol):
    """Makes the maps of a run again; `glassformer.runs.loading.by_layer` does, given a checkpoint and a trace."""

    def __call__(self, kind: Kind, work: Work, *, key: Hashable, layers: tuple[int, ...] | None) -> list[np.ndarray]:
        """What the work makes of each layer, or of those that are named; the key says which work it is."""


def whole(maps: np.ndarray, layer: int) -> np.ndarray:
    """All heads of a layer."""
    return maps


def mean(maps: np.ndarray, layer: int) -> np.ndarray:
    """The mean of a layer's heads [query, key]."""
    return np.asarray(maps.mean(axis=0))


BYTE_LEVEL: Final = "Ġ"
GOES_ON: Final = "##"


class _HasMaps:
    trace: Any

    def each(self, kind: Kind, work: Work, *, key: Hashable, layers: tuple[int, ...] | None = None) -> list[np.ndarray]:
        """What some work computes from each layer's maps [head, query, key], or from those of `layers`, from 0.

        `key` identifies the work and all its inputs but the run. A trace without maps asks the model (`BusyError`).
        """
        maps = self.trace.maps(kind)
        return [work(maps[layer], layer) for layer in (range(len(maps)) if layers is None else layers)]

    def heads(self, kind: Kind, layer: int) -> np.ndarray:
        """The maps of all heads of a layer [head, query, key]; errors as `each`."""
        return self.each(kind, whole, key="heads", layers=(layer,))[0]


@dataclass(frozen=True)
class VisibleMaps(_HasMaps):
    """Given maps, and what of them is looked at."""

    trace: LabelledMaps  # the maps, which stand where a run's trace does
    view: View  # what is looked at; its attention, layer and head are there
    slot: Slot = MAIN  # where it is drawn


def marked(labels: Sequence[str]) -> list[str]:
    """The labels with ▁ where words begin, also for Ġ (there, byte-level BPE) and ## (elsewhere, WordPiece)."""
    if any(label.startswith(BYTE_LEVEL) for label in labels):
        return [SPACE_MARK + label[1:] if label.startswith(BYTE_LEVEL) else label for label in labels]
    if any(label.startswith(GOES_ON) for label in labels):
        return [label[2:] if label.startswith(GOES_ON) else SPACE_MARK + label for label in labels]
    return list(labels)


def has_words(maps: LabelledMaps) -> bool:
    """Whether labels say where words begin."""
    sides = (side for one in maps.attentions for side in (one.queries, one.keys))
    return any(label.startswith(SPACE_MARK) for side in sides for label in marked(side))


def can_roll(maps: LabelledMaps, kind: Kind) -> bool:
    """Whether weights can be followed through the layers: queries and keys are the same tokens, in all it takes."""
    attention, one = EVERY_PART.attention(kind), maps.of(kind)
    if attention.stack == attention.keys_from:
        return one.queries == one.keys and one.sums_to_one
    if maps.kinds != EVERY_PART.kinds or not (can_roll(maps, "encoder") and can_roll(maps, "decoder")):
        return False
    fits = one.queries == maps.of("decoder").queries and one.keys == maps.of("encoder").keys
    return fits and one.sums_to_one and len(one.weights) == len(maps.maps("decoder"))


N_CANDIDATES = 10
HIDDEN = "?"


@dataclass(frozen=True)
class VisibleTrace(_HasMaps):
    """A trace, what of it is looked at, and what must stay hidden."""

    trace: Trace  # the run
    view: View  # what is looked at; its step, layer and head exist in the trace
    revealed: bool = True  # in guess mode, whether the current piece may be seen
    slot: Slot = MAIN  # where it is drawn
    by_layer: ByLayer | None = field(default=None, compare=False)  # makes the maps of a trace that keeps none

    @property
    def covered(self) -> bool:
        """Whether the current piece is hidden."""
        return self.view.guess and not self.revealed and self.trace.n_steps > 0

    @property
    def n_steps(self) -> int:
        """Steps that may be seen."""
        return min(self.view.step + 1, self.trace.n_steps) if self.view.guess else self.trace.n_steps

    @property
    def n_rows(self) -> int:
        """Decoder rows that may be seen; a prompt's rows come before those of the steps."""
        return self.trace.first_row + self.n_steps

    @property
    def row(self) -> int:
        """The decoder's row of the current step."""
        return self.trace.row_of(self.view.step)

    @property
    def kind(self) -> Kind:
        """The attention by which a step looks at the source: cross-attention, or the only one that there is."""
        return self.trace.kinds[-1]

    def row_labels(self) -> list[str]:
        """What each visible decoder row reads and predicts."""
        return row_labels(self.trace, self.n_rows, covered=self.covered)

    def weights(self) -> np.ndarray:
        """That attention's weights in the chosen layer and head, or a mean: all rows [query, key]."""
        return chosen_map(self, self.kind)

    def each(self, kind: Kind, work: Work, *, key: Hashable, layers: tuple[int, ...] | None = None) -> list[np.ndarray]:
        """As of `_HasMaps`; what the trace does not keep the model makes again."""
        if self.by_layer is not None and not self.trace.keeps_maps:
            return self.by_layer(kind, work, key=key, layers=layers)
        return super().each(kind, work, key=key, layers=layers)

    def whose(self) -> Sentence:
        """Which layer and head that is; a mean says that it is one."""
        return heads_name(self.trace, self.view, self.kind)


def chosen_map(visible: VisibleTrace, kind: Kind) -> np.ndarray:
    """An attention's weights in the selected layer and head, or a mean: all rows [query, key]."""
    view = visible.view
    if view.layer is None:
        return np.mean(visible.each(kind, mean, key="mean"), axis=0)
    layer = visible.heads(kind, view.layer)
    return layer.mean(axis=0) if view.head is None else layer[view.head]


def row_labels(trace: Trace, n_rows: int, *, covered: bool) -> list[str]:
    """What the first decoder rows read and predict; what the last of them predicts may be covered."""
    labels = [str(label) for label in trace.row_labels()[:n_rows]]
    if covered:
        labels[-1] = f"{trace.row_label(n_rows - 1).reads} → {HIDDEN}"
    return labels


def heads_name(trace: Trace | LabelledMaps, view: View, kind: Kind) -> Sentence:
    """Which layer and head a map is of; a mean says that it is one."""
    n_layers, n_heads = trace.maps(kind).shape[:2]
    if view.layer is None:
        return say("mean of all {n_layers} layers × {n_heads} heads", n_layers=n_layers, n_heads=n_heads)
    if view.head is None:
        return say("layer {layer}, mean of its {n_heads} heads", layer=view.layer + 1, n_heads=n_heads)
    return say("layer {layer}, head {head}", layer=view.layer + 1, head=view.head + 1)


def fit_view(view: View, trace: Trace, *, kind: Kind = "cross") -> tuple[View, tuple[str, ...]]:
    """Move step, layer and head into a trace's range, with notes; a missing `kind` of attention means the last one."""
    shape = trace.maps(kind if kind in trace.kinds else trace.kinds[-1]).shape
    fitted, notes = fit_head(view, *shape[:2])
    step, count = view.step, trace.n_steps
    if step < max(count, 1):
        return fitted, notes
    note = say(
        "Step {step} was requested, but this output ends at step {count}, which is shown instead.",
        step=step + 1,
        count=count,
    )
    if not count:
        note = say(
            "Step {step} was requested, but this model does not write any output, so there are no steps.", step=step + 1
        )
    return replace(fitted, step=max(count - 1, 0)), (note, *notes)


def fit_head(view: View, n_layers: int, n_heads: int) -> tuple[View, tuple[str, ...]]:
    """Move layer and head into what an attention has, with a note for each value that had to be moved."""
    notes: list[str] = []
    layer, head = view.layer, view.head
    if layer is not None and layer >= n_layers:
        note = say(
            "Layer {layer} was requested, but the last layer of this model is layer {count}. The mean over all layers "
            "and heads is shown instead.",
            layer=layer + 1,
            count=n_layers,
        )
        notes.append(note)
        layer, head = None, None
    if head is not None and head >= n_heads:
        note = say(
            "Head {head} was requested, but the last head of this model is head {count}. The mean over all heads is "
            "shown instead.",
            head=head + 1,
            count=n_heads,
        )
        notes.append(note)
        head = None
    if layer is None:
        head = None  # a head of all layers together is nothing
    return replace(view, layer=layer, head=head), tuple(notes)


def is_yours(trace: Trace, step: int) -> bool:
    """Whether the user chose a piece; what leads up to it is forced too, but the model had written it."""
    n_forced = len(trace.query.forced)
    if step >= n_forced - 1:
        return step == n_forced - 1
    if trace.tgt_ids[step : step + 1] == trace.forced_ids[step : step + 1]:
        return False  # the model's config has it there
    greedy = isinstance(trace.query.decoding, Greedy)
    return greedy and int(trace.scores_at(step).argmax()) != trace.tgt_ids[step]


def branch_at(written: tuple[int, ...], step: int, piece_id: int) -> tuple[int, ...]:
    """The forced beginning that makes `piece_id` piece `step` of an output."""
    return (*written[:step], piece_id)


def own_choice(query: Query) -> Query:
    """The same query with nothing forced."""
    return replace(query, forced=(), hypothesis=0)


# ------------------------------------------------------------------------------------------------ with who computes


@dataclass(frozen=True)
class Viewed:
    """Something with maps in a slot of a page."""

    visible: VisibleTrace | VisibleMaps  # the run or the maps, and what of them is looked at
    checkpoint: Checkpoint | None  # what was run; None for given maps

    @property
    def view(self) -> View:
        """What is looked at."""
        return self.visible.view

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""
        return self.visible.slot

    def key(self, name: str) -> str:
        """The key of something that is drawn from it; a page may draw another beside it."""
        return f"{self.slot}{name}"


@dataclass(frozen=True)
class Scene:
    """What a part of a page computes for all its pictures, from a run or from given maps."""

    run: Viewed

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""
        return self.run.slot


_Result = TypeVar("_Result")


class ModelAccess(Protocol):
    """Who works with the model. A server keeps what was computed and has one queue for all (`runs.loading`).

    Each raises `QueryError` for what does not fit the checkpoint, and a server `BusyError`.
    """

    def compute(self, key: Hashable, work: Callable[[], _Result], *, nbytes: Callable[[_Result], int]) -> _Result:
        """The result of any work; `key` says all that decides it, `nbytes` its memory."""

    def long(
        self,
        key: Hashable,
        work: Callable[[Callable[[], None]], _Result],
        *,
        cost: float,
        nbytes: Callable[[_Result], int],
    ) -> _Result:
        """The same of work that takes about `cost`; shorter work is done whenever it calls what it is given."""

    def run(self, checkpoint: Checkpoint, query: Query) -> Trace:
        """The trace of a query."""

    def batch(self, checkpoint: Checkpoint, queries: Sequence[Query]) -> tuple[Trace, ...]:
        """Several queries as one padded batch, without their maps."""

    def replay(self, checkpoint: Checkpoint, trace: Trace, sites: Sequence[str]) -> dict[str, np.ndarray]:
        """What a run had at some sites."""


class HasSteps(Protocol):
    """What has pictures at each of its steps: a run, or runs that one stepper moves."""

    @property
    def slot(self) -> Slot:
        """Whose step its charts follow."""

    @property
    def runs(self) -> tuple[ViewedRun, ...]:
        """The runs; a shorter one stays at its end while the others go on."""

    @property
    def together(self) -> Callable[..., Any]:
        """What makes the same of such runs, each an argument; it holds none."""


def n_steps_of(shown: HasSteps) -> int:
    """How many steps there are."""
    return max(run.trace.n_steps for run in shown.runs)


def step_of(shown: HasSteps) -> int:
    """The current step, from 0."""
    return max(run.view.step for run in shown.runs)


def at_step(shown: HasSteps, step: int) -> Any:
    """The same at another step."""
    return shown.together(*(run.at(max(min(step, run.trace.n_steps - 1), 0)) for run in shown.runs))


@dataclass(frozen=True)
class ViewedRun(Viewed):
    """A run, what of it is looked at, and who computes what is not there yet."""

    visible: VisibleTrace
    checkpoint: Checkpoint
    link: Link  # what is asked for
    work: ModelAccess

    @cached_property
    def decides(self) -> str:
        """Tells apart what is seen of runs at all their steps: all that decides it, once for all pictures."""
        views = [replace(one, step=0) for one in (self.view, self.link.view)]
        return repr((self.slot, self.trace.query, views, replace(self.link, view=views[0])))

    @property
    def trace(self) -> Trace:
        """The trace."""
        return self.visible.trace

    @property
    def runs(self) -> tuple[ViewedRun, ...]:
        """As of `HasSteps`."""
        return (self,)

    @property
    def together(self) -> Callable[[ViewedRun], ViewedRun]:
        """As of `HasSteps`."""
        return _alone

    def at(self, step: int) -> ViewedRun:
        """The same at another step."""
        visible = replace(self.visible, view=replace(self.view, step=step))
        return replace(self, visible=visible, link=replace(self.link, view=replace(self.link.view, step=step)))


def _alone(run: ViewedRun) -> ViewedRun:
    return run


@dataclass(frozen=True)
class RunScene(Scene):
    """What a part of a page computes from a run for all its pictures."""

    run: ViewedRun
