"""The pictures of the part Heads of the page What matters: what the output owes to each head, and one head closer.

Knows nothing of Streamlit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from glassformer.charts.groups import HOW_TO_READ as HOW_TO_READ_GROUPS
from glassformer.charts.head_effects import HOW_TO_READ, HOW_TO_READ_SIGNED, Block, head_at, head_effects_spec
from glassformer.charts.statistics import row_measure_spec
from glassformer.charts.theme import capitalised
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.effects.matters.heads.measures import (
    SIGNED,
    WORDS,
    head_name,
    in_numbers,
    shown,
    step_of,
    values,
)
from glassformer.extensions.effects.matters.matters_page import MATTERS
from glassformer.extensions.what_if.analysis.head_effects import HeadEffects, head_effects
from glassformer.maps.grid import grid
from glassformer.maps.seen_map import seen_map
from glassformer.runs.picture import Plot
from glassformer.runs.seen import OfRun, Seen
from glassformer.runs.sides import KIND_NAMES, mask_reason, size_of
from glassformer.server.jobs import SMALL
from glassformer.state.click import Click, cell_of
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import Kind

WHAT_IT_SAYS: Final = say(
    "One head at a time was set to 0, with all other heads unchanged, while the model read the output that it had "
    "written (Michel et al., 2019, section 3.2). This shows how much the output depends on a head, not what the "
    "head is for. If another part can take over, a head seems to matter little (McGrath et al., 2023, for whole "
    "layers). The effects of single heads do not add up, and later layers were never trained with a head that "
    "writes only 0."
)
HOW_TO_READ_STEPS: Final = say("Each bar shows one step; the dotted line is the mean over the steps.")
HOW_TO_READ_TOKENS: Final = say("Each bar shows one token; the dotted line is the mean over the tokens.")
HOW_TO_READ_MAP: Final = say(
    "Each row is a query. The stronger a cell's colour, the larger the weight that the query gives to that key."
)


@dataclass(frozen=True)
class Measured(OfRun):
    """What the output owes to each head."""

    found: HeadEffects | None  # None as long as it is not measured

    @property
    def head(self) -> tuple[int, int] | None:
        """Layer and head that are looked at, if a head is chosen."""
        layer, head = self.run.view.layer, self.run.view.head
        return None if layer is None or head is None else (layer, head)


def measure(run: Seen) -> Measured:
    """What is measured; nothing of a model that is too large to be measured unasked. Errors as of `Work`."""
    trace, checkpoint = run.trace, run.checkpoint
    if checkpoint.config.count_parameters() > SMALL:
        return Measured(run, None)
    key = ("head_effects", trace.query, trace.src_ids, trace.read_ids)
    return Measured(
        run, run.work.compute(key, partial(head_effects, checkpoint, trace), nbytes=lambda one: one.nbytes)
    )


HEADS = MATTERS.part("heads", measure, asks=True)


@HEADS.picture("matters_effects", say("Log-probability of the output with each head removed in turn"))
def effects(scene: Measured) -> Plot | None:
    """All heads; a click looks at one."""
    run, found = scene.run, scene.found
    if found is None or run.looking.covered:
        return None
    measure, step, view = shown(found, run.view.of(EffectsLook).effect), step_of(run.looking), run.view
    words = WORDS[measure, step is not None]
    kinds, n_steps = tuple(found.of), run.looking.n_steps
    blocks = [Block(KIND_NAMES[kind], values(found, kind, measure, n_steps=n_steps, step=step)) for kind in kinds]
    chosen = None if scene.head is None else (kinds.index(view.kind), *scene.head)
    signed, group = measure in SIGNED, size_of(run)
    read = [HOW_TO_READ, words.meaning, *[HOW_TO_READ_SIGNED] * signed, *[HOW_TO_READ_GROUPS] * (group > 1)]
    return Plot(
        spec=head_effects_spec(
            blocks, title=words.title, value_name=words.unit, signed=signed, chosen=chosen, group=group
        ),
        alt=say(
            "{title}, by layer and head, one block per kind of attention. The table below has the same numbers.",
            title=words.title,
        ),
        how_to_read=joined(" ", [*read, say("Click a cell to look at its head."), WHAT_IT_SAYS]),
        clicked=partial(_head_of, kinds=kinds, shapes=[block.values.shape for block in blocks]),
    )


def _head_of(click: Click, kinds: Sequence[Kind], shapes: Sequence[tuple[int, ...]]) -> Mapping[str, Any] | None:
    at = head_at(shapes, cell_of(click))
    return None if at is None else {"kind": kinds[at[0]], "layer": at[1], "head": at[2]}


@HEADS.picture("matters_grid", say("All heads"), follows="still")
def what_they_look_at(scene: Measured) -> Plot:
    """The maps of all heads beside that."""
    return grid(scene.run, scene.run.view.kind, large=True, fit=False, also={})


def name_of(kind: Kind, layer: int, head: int) -> Sentence:
    """What a head is called."""
    return say("{attention}, layer {layer}, head {head}", attention=KIND_NAMES[kind], layer=layer + 1, head=head + 1)


@HEADS.picture("matters_steps", say("Step by step"))
def steps(scene: Measured) -> Plot | None:
    """What one head changes at each step, or at each token of an encoder that is alone."""
    run, found = scene.run, scene.found
    if found is None or scene.head is None or run.looking.covered:
        return None
    layer, head = scene.head
    measure = in_numbers(shown(found, run.view.of(EffectsLook).effect))
    effect = found.of[run.view.kind]
    if measure == "vectors":
        labels, numbers, axis, now = list(run.trace.src_pieces), effect.vectors[layer, head], say("Token"), None
    else:
        first, n_steps = run.trace.first_row, run.looking.n_steps
        labels, numbers = run.looking.row_labels()[first : first + n_steps], getattr(effect, measure)[layer, head]
        axis, now = say("Reads → predicts"), run.view.step
    words = WORDS[measure, measure != "vectors"]
    name = name_of(run.view.kind, layer, head)
    spec = row_measure_spec(
        numbers[: len(labels)],
        labels,
        title=say("Change at each step without {head}", head=head_name(layer, head))
        if now is not None
        else say("Change at each token without {head}", head=head_name(layer, head)),
        value_name=capitalised(words.unit),
        query_axis=axis,
        marked_row=now,
        colour="target" if now is not None else "source",
    )
    alt = say("{title}, for {head}: one bar per step or token.", title=words.title, head=name)
    read = joined(" ", [HOW_TO_READ_TOKENS if now is None else HOW_TO_READ_STEPS, words.meaning])
    return Plot(spec=spec, alt=alt, how_to_read=read)


@HEADS.picture("matters_map", say("One map"))
def weights(scene: Measured) -> Plot | None:
    """The map of one head."""
    run, kind = scene.run, scene.run.view.kind
    if scene.found is None or scene.head is None:
        return None
    drawn, name = seen_map(run, kind), name_of(kind, *scene.head)
    spec = drawn.spec(
        name, mask_reason=mask_reason(run.checkpoint, kind), marked_row=drawn.sides.current, rows_sum_to_one=False
    )
    return Plot(spec=spec, alt=drawn.alt(name), how_to_read=joined(" ", [HOW_TO_READ_MAP, *drawn.closed]))
