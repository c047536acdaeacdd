"""From what a session asks for to a trace that can be drawn, with every failure said in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from charts.theme import capitalised
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, QueryError
from transformer.maps.own_maps import GivenMaps
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import ChangeError
from transformer.runs.trace import Kind, Trace
from ui.components.stepper.stepper import StepperRun, settled_step
from ui.runs import foreign, loading
from ui.runs.attempt import attempt
from ui.runs.changes import chips
from ui.runs.looking import Looking, fit_view, own_choice
from ui.runs.seen import Seen
from ui.runs.sides import fit_aggregate, fit_parts
from ui.runs.stepper_run import stepper_run
from ui.server.work import BusyError
from ui.shared import drawing, menu
from ui.shared.compare_this import of_what_is_looked_at
from ui.shared.door import st
from ui.state import session, tried
from ui.state.link import DEFAULT_NEW, Link
from ui.state.view import MAIN, Slot
from words import joined, say

REVISION_LENGTH = 12
STEPPER_RUN = "stepper_run"
_PLAIN = Link()


@dataclass(frozen=True)
class OpenRun(Seen):
    """The run that a page draws."""

    stepper: StepperRun  # the same for the stepper in the browser
    earlier: bool = False  # it is the last run that could be done, not what the session asks for

    @property
    def run_id(self) -> str:
        """Changes exactly when the run does."""
        return self.stepper.run_id

    def again(self) -> Callable[[], Trace]:
        """Gets the trace once more, for what a session keeps."""
        return partial(foreign.trace_again, self.checkpoint.name, self.trace.query)

    def publish(self) -> None:
        """Write the address of what is shown; the address of what could not be done would show nothing.

        An address says the main slot only.
        """
        if not self.earlier and self.slot == MAIN:
            known = tried.tried_on(self.slot, own_choice(self.trace.query))
            publish(self.checkpoint, replace(self.link, view=self.view, tried=known))


def publish(checkpoint: Checkpoint | GivenMaps, link: Link | None = None, *, job: str = "") -> None:
    """Write the address, and have the menu lead there on other pages.

    Args:
        checkpoint: The one that is open, or the maps.
        link: What is shown; what the session asks for if a page shows no run.
        job: A file of sentences that is shown.
    """
    shows_run = link is not None
    link = replace(address(checkpoint, session.asked() if link is None else link), job=job)
    session.publish(link)
    menu.carry(link, compare=of_what_is_looked_at(link, menu.current()) if shows_run else None)


def open_run(
    checkpoint: Checkpoint, *, kind: Kind | None = None, slot: Slot = MAIN, link: Link | None = None
) -> OpenRun | None:
    """Run what the session asks for in a slot.

    If that cannot be done, a sentence says why, and the last run that could be done is shown instead.

    Args:
        checkpoint: What to run on.
        kind: The attention that the chosen layer and head are of; None for the one that the view names. A model
            that does not have it shows its own.
        slot: Where it is drawn.
        link: What is asked for, if it is not the session that says it: the second run of a comparison.

    Returns:
        The run; None if there is nothing to show.
    """
    told = link is None  # of a second run the page says what is changed
    asked = session.asked(slot) if link is None else link
    link = _changes_of(checkpoint, _of(checkpoint, asked, slot), slot)
    above = st.container()
    if not (link.source or "").strip():
        with above:
            chips(link.interventions if told else (), slot)
        _lead_on(checkpoint, link, slot)
        drawing.notes(session.take_notes(slot))
        st.info(_ask_for_source(checkpoint), icon=":material/keyboard:")
        return None
    done = attempt(lambda: _run(checkpoint, link, slot))
    with above:
        chips((link if done is None else done[0]).interventions if told else (), slot)
    if done is not None:
        session.stand(slot, last_query=done[1].query, last_rows=done[1].rows_note())
        return attempt(lambda: _opened(checkpoint, *done, kind, slot))  # of a long run maps are computed now
    _lead_on(checkpoint, link, slot)
    before = _last_trace(checkpoint, slot)
    if before is None:
        drawing.notes(session.take_notes(slot))
        return None
    st.caption(say("What follows is still the last result."))
    return replace(_opened(checkpoint, link, before, kind, slot), earlier=True)


def _lead_on(checkpoint: Checkpoint, link: Link, slot: Slot) -> None:
    """Have the menu keep what was asked for, though it could not be done."""
    if slot == MAIN:
        menu.carry(address(checkpoint, link))


def _run(checkpoint: Checkpoint, link: Link, slot: Slot) -> tuple[Link, Trace]:
    """Run a link; if its changes, its forced pieces or its place among the results are refused, without them."""
    try:
        return link, loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    except QueryError as error:
        if isinstance(error, ChangeError):
            return _run_unchanged(checkpoint, link, slot, error)
        if not link.forced and not link.hypothesis:
            raise
        own = replace(link, forced=(), hypothesis=0)
        trace = loading.runner().trace(checkpoint, own.query(checkpoint.content_hash))
        refused = joined(" ", [capitalised(error.sentence), say("The model's own choice is shown.")])
        notes = (*session.take_notes(slot), refused)
        session.show(slot, (), 0, link.view.step)
        session.stand(slot, notes=notes)
        return own, trace


def _run_unchanged(checkpoint: Checkpoint, link: Link, slot: Slot, error: ChangeError) -> tuple[Link, Trace]:
    """Run a link whose changes do not fit this sentence without them; says so."""
    link = _unchanged(link, slot, error)
    return _run(checkpoint, link, slot)


def _unchanged(link: Link, slot: Slot, error: QueryError) -> Link:
    session.stand(slot, interventions=())
    session.add_note(joined(" ", [capitalised(error.sentence), say("The unchanged run is shown.")]), slot)
    return replace(link, interventions=())


def seen(
    checkpoint: Checkpoint, link: Link, trace: Trace, *, kind: Kind | None = None, slot: Slot = MAIN
) -> tuple[Seen, tuple[str, ...]]:
    """What a link looks at of a run, and a note for each thing that is not there; `kind` as for `open_run`."""
    view, missing = fit_parts(link.view, anatomy(checkpoint.config))
    view, instead = fit_aggregate(view, checkpoint.config)
    view, moved = fit_view(view, trace, kind=kind or view.kind)
    looking = Looking(trace, view, slot=slot, by_layer=partial(loading.by_layer, checkpoint, trace))
    return Seen(looking, checkpoint, link, loading), (*missing, *instead, *moved)


def _opened(checkpoint: Checkpoint, link: Link, trace: Trace, kind: Kind | None, slot: Slot) -> OpenRun:
    run, told = seen(checkpoint, link, trace, kind=kind, slot=slot)
    drawing.notes((*session.take_notes(slot), *told, *trace.notes))
    looking, run_id = run.looking, f"{checkpoint.content_hash[:REVISION_LENGTH]} {trace.query.to_json()}"
    of_source = (kind or run.view.kind) in ("cross", looking.kind)  # another attention's head says nothing of it
    bare = looking if of_source else replace(looking, view=replace(run.view, layer=None, head=None))
    stepper = _stepper_run(bare, checkpoint, run_id)
    here = session.standing(slot)
    step = settled_step(stepper, key=f"{slot}{session.STEPPER}", step=run.view.step, step_revision=here.step_revision)
    session.replace(slot, step=step)
    looking = replace(looking, view=replace(run.view, step=step), revealed=here.revealed == (run_id, step))
    return OpenRun(looking, checkpoint, link, loading, stepper)


def _stepper_run(looking: Looking, checkpoint: Checkpoint, run_id: str) -> StepperRun:
    """What the stepper holds; a step changes nothing of it, so it is kept from step to step."""
    which, key = (run_id, looking.view.layer, looking.view.head), f"{looking.slot}{STEPPER_RUN}"
    kept: tuple[object, StepperRun] | None = st.session_state.get(key)
    if kept is None or kept[0] != which:
        kept = (which, stepper_run(looking, checkpoint, run_id))
        st.session_state[key] = kept
    return kept[1]


def _last_trace(checkpoint: Checkpoint, slot: Slot) -> Trace | None:
    query = session.standing(slot).last_query
    if query is None or query.checkpoint != checkpoint.content_hash:
        return None
    try:
        return loading.runner().trace(checkpoint, query)
    except (GlassformerError, BusyError):
        return None


def _of(checkpoint: Checkpoint, link: Link, slot: Slot) -> Link:
    """The link for this version of this checkpoint; says so if it was made with another version."""
    here = checkpoint.content_hash[:REVISION_LENGTH]
    if link.revision and link.revision != here:
        note = say("This link was made with another version of {name}; the output may differ.", name=checkpoint.name)
        session.add_note(note, slot)
    session.stand(slot, revision=here)
    return replace(link, revision=here, max_new=min(link.max_new, checkpoint.config.max_len))


def _changes_of(checkpoint: Checkpoint, link: Link, slot: Slot) -> Link:
    """The link with changes that this model allows, else with none; says so."""
    try:
        for change in link.interventions:
            change.check(checkpoint.config)
    except QueryError as error:
        return _unchanged(link, slot, error)
    return link


def address(checkpoint: Checkpoint | GivenMaps, link: Link, **fields: Any) -> Link:
    """The link with everything left out that the app would take by itself.

    Args:
        checkpoint: The one that is open, or the maps.
        link: What it shall say.
        fields: What else is looked at, by the names of `View`.
    """
    own, bare = (st.session_state.get(key) for key in (session.DEFAULT_MODEL, session.BARE_MODEL))
    revision = checkpoint.content_hash[:REVISION_LENGTH]
    view = replace(link.view, **fields) if fields else link.view
    said: dict[str, Any] = {"revision": "", "view": view}
    if link.tried == (link.forced,):
        said["tried"] = ()
    if isinstance(checkpoint, GivenMaps):  # nothing is run
        return Link(model="" if link.model == own else link.model, revision=revision, view=view)
    if link.source == checkpoint.card.first_example():
        said["source"] = None
    if link.max_new == min(DEFAULT_NEW, checkpoint.config.max_len):
        said["max_new"] = DEFAULT_NEW
    plain = replace(link, **said)
    if replace(plain, model="") == _PLAIN and link.model == bare:
        return _PLAIN
    return replace(
        plain, model="" if link.model == own == bare and not link.answers else link.model, revision=revision
    )


def _ask_for_source(checkpoint: Checkpoint) -> str:
    if not anatomy(checkpoint.config).reads:
        return say("Type a prompt above, or take an example.")
    if checkpoint.card.source_code:
        language = checkpoint.card.source_language
        return say("Type a sentence in {language} above, or take an example.", language=language)
    return say("Type some text above, or take an example.")
