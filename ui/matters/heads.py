"""The part Heads of the page What matters: what the output owes to each head, beside what the heads look at."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Final

import charts
from charts.groups import HOW_TO_READ as HOW_TO_READ_GROUPS
from charts.head_effects import HOW_TO_READ, HOW_TO_READ_SIGNED, Block, head_at
from transformer.analysis.head_effects import HeadEffects
from transformer.model.anatomy import Kind
from ui.maps.grid import grid, is_long
from ui.matters import one_head, table, verdicts
from ui.matters.measures import SIGNED, WORDS, shown, step_of, values
from ui.runs import loading, measuring
from ui.runs.attempt import attempt
from ui.runs.groups import size_of
from ui.runs.measured import studies
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES
from ui.runs.studies import Seen
from ui.shared import drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import cell_of
from ui.state.view import Slot
from words import joined, say

GRID: Final = "matters_grid"
EFFECTS: Final = "matters_effects"
MEASURE, STOP = "matters_measure", "matters_stop"
LOOK_SECONDS: Final = 0.5
WHAT_IT_SAYS: Final = say(
    "Each head was set to 0 alone, with all the others in place, while the model read the output that it had written "
    "(Michel et al., 2019, section 3.2). That says what this output owes to a head, not what the head is for. Where "
    "another part can stand in for it, a head seems to be worth little (McGrath et al., 2023, for whole layers), and "
    "effects of single heads do not add up. The layers above were never trained on a head that writes nothing."
)


def draw(run: OpenRun) -> None:
    """Draw the part."""
    seen = attempt(lambda: measuring.begun(run.checkpoint, run.trace))
    if is_long(run, run.view.kind):  # tiles need all the width there is
        place = st.container()
        _grid(run)
    else:
        place, right = st.columns(2, gap="medium")
        with right:
            _grid(run)
    with place:
        found = _measured(run, seen)
    if found is not None:
        attempt(lambda: verdicts.draw(run, found))
        one_head.draw(run, found)
        attempt(lambda: table.draw(run, found))


def _grid(run: OpenRun) -> None:
    attempt(lambda: grid(run, run.view.kind, name=GRID, take=partial(_look, run.slot), large=True, fit=False))


def _look(slot: Slot, kind: Kind, layer: int, head: int) -> None:
    """Callback: look at a head."""
    session.replace(slot, kind=kind, layer=layer, head=head)


# ---------------------------------------------------------------- how far it is


def _measured(run: OpenRun, seen: Seen | None) -> HeadEffects | None:
    """Draw the map of all heads once it is there, else how far it is; returns what was found."""
    if seen is not None and seen.is_under_way:
        seen = measuring.look(run.trace, patience=measuring.PATIENCE_SECONDS)
    if seen is None:
        _offer(run)
        return None
    if seen.state == "failed":
        st.error(drawing.plain(seen.problem or ""))
        _offer(run)
        return None
    if seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(measuring.key_of(run.trace))
        return None
    found: HeadEffects = seen.result
    _effects(run, found)
    return found


def _offer(run: OpenRun) -> None:
    """Draw the button that begins the measurement."""
    if not measuring.begins_by_itself(run.checkpoint):
        n = run.checkpoint.config.count_parameters()
        said = say("With {n:,} parameters this may take a minute; other visitors go first.", n=n)
        st.info(said, icon=":material/hourglass_top:")
    st.button(
        say("Measure every head"),
        key=run.key(MEASURE),
        type="primary",
        icon=":material/science:",
        on_click=measuring.want,
        args=(measuring.key_of(run.trace),),
    )


def _follow(key: Hashable) -> None:
    """Draw how far it is, again and again; once it is over, the page is drawn with what was found."""
    seen = studies().look(key, loading.visitor())
    if seen is None or not seen.is_under_way:
        st.rerun()
    said = say("Measuring: {done} of {whole} heads", done=seen.done, whole=seen.whole)
    st.progress(seen.done / max(seen.whole, 1), text=said if seen.whole else say("Waiting for the model"))
    st.button(say("Stop"), key=STOP, icon=":material/stop:", on_click=measuring.stop, args=(key,))


# ---------------------------------------------------------------- what was found


def _effects(run: OpenRun, found: HeadEffects) -> None:
    measure, step, view = shown(found, run.view.effect), step_of(run.looking), run.view
    words = WORDS[measure, step is not None]
    kinds, n_steps = tuple(found.of), run.looking.n_steps
    blocks = [Block(KIND_NAMES[kind], values(found, kind, measure, n_steps=n_steps, step=step)) for kind in kinds]
    chosen = None
    if view.layer is not None and view.head is not None:
        chosen = kinds.index(view.kind), view.layer, view.head
    sizes, slot, key = [len(block.values) for block in blocks], run.slot, run.key(EFFECTS)

    def take(cell: tuple[int, int]) -> None:
        at = head_at(sizes, *cell)
        if at is not None and at[2] < blocks[at[0]].values.shape[1]:
            _look(slot, kinds[at[0]], at[1], at[2])

    signed, group = measure in SIGNED, size_of(run)
    read = [HOW_TO_READ, words.meaning, *[HOW_TO_READ_SIGNED] * signed, *[HOW_TO_READ_GROUPS] * (group > 1)]
    drawing.chart(
        charts.head_effects_spec(
            blocks, title=words.title, value_name=words.unit, signed=signed, chosen=chosen, group=group
        ),
        key=key,
        alt=say(
            "{title}, layers by heads, one block for each attention. The table below has the same numbers.",
            title=words.title,
        ),
        how_to_read=joined(" ", [*read, say("Click a cell to look at its head."), WHAT_IT_SAYS]),
        on_click=on_click(key, cell_of, take),
    )
