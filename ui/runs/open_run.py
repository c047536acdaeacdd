"""From what a session asks for to a trace that can be drawn, with every failure said in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, QueryError
from transformer.runs.query import Query
from transformer.runs.trace import Kind, Trace
from ui.components.stepper.stepper import StepperRun, settled_step
from ui.runs import loading
from ui.runs.looking import Looking, fit_view
from ui.runs.stepper_run import stepper_run
from ui.runs.work import BusyError
from ui.shared import drawing
from ui.state import keys, session
from ui.state.link import DEFAULT_NEW, Link, View

REVISION_LENGTH = 12


@dataclass(frozen=True)
class OpenRun:
    """The run that a page draws.

    Attributes:
        checkpoint: What it ran on.
        link: What the session asks for.
        looking: The trace and what of it is looked at.
        stepper: The same for the stepper in the browser.
        earlier: It is the last run that could be done, not what the session asks for.
    """

    checkpoint: Checkpoint
    link: Link
    looking: Looking
    stepper: StepperRun
    earlier: bool = False

    @property
    def trace(self) -> Trace:
        """The trace."""
        return self.looking.trace

    @property
    def view(self) -> View:
        """What is looked at."""
        return self.looking.view

    def publish(self) -> None:
        """Write the address of what is shown; the address of what could not be done would show nothing."""
        if not self.earlier:
            session.publish(_address(self.checkpoint, replace(self.link, view=self.view)))


def open_run(checkpoint: Checkpoint, source: str, *, kind: Kind | None = None) -> OpenRun | None:
    """Run what the session asks for.

    If that cannot be done, a sentence says why, and the last run that could be done is shown instead.

    Args:
        checkpoint: What to run on.
        source: The sentence.
        kind: The attention that the chosen layer and head are of; None for the one that the view names.

    Returns:
        The run; None if there is nothing to show.
    """
    link = _same_revision(session.current(), checkpoint)
    if not source.strip():
        drawing.notes(session.take_notes())
        st.info(f"Type {_what(checkpoint)} above, or take an example.", icon=":material/keyboard:")
        return None
    try:
        link, trace = _run(checkpoint, link, source)
    except (GlassformerError, BusyError) as error:
        st.error(drawing.plain(sentence(error)))
        trace_before = _last_trace(checkpoint)
        if trace_before is None:
            drawing.notes(session.take_notes())
            return None
        st.caption("What follows is still the last result.")
        return replace(_opened(checkpoint, link, trace_before, kind), earlier=True)
    st.session_state[keys.LAST_QUERY] = trace.query
    return _opened(checkpoint, link, trace, kind)


def sentence(error: Exception) -> str:
    """An error's message as a sentence of its own."""
    text = str(error)
    return text[:1].upper() + text[1:]


def _run(checkpoint: Checkpoint, link: Link, source: str) -> tuple[Link, Trace]:
    """Run a link; if its forced pieces or its place among the results are refused, run it without them."""
    try:
        return link, loading.runner().trace(checkpoint, link.query(checkpoint.content_hash, source))
    except QueryError as error:
        if not link.forced and not link.hypothesis:
            raise
        own = replace(link, forced=(), hypothesis=0)
        trace = loading.runner().trace(checkpoint, own.query(checkpoint.content_hash, source))
        said = (*session.take_notes(), f"{sentence(error)} The model's own choice is shown.")
        session.show((), 0, link.view.step)
        st.session_state[keys.LINK_NOTES] = said
        return own, trace


def _opened(checkpoint: Checkpoint, link: Link, trace: Trace, kind: Kind | None) -> OpenRun:
    kind = kind or link.view.kind
    view, moved = fit_view(link.view, trace, kind=kind)
    drawing.notes((*session.take_notes(), *moved, *trace.notes))
    run_id = f"{checkpoint.content_hash[:REVISION_LENGTH]} {trace.query.to_json()}"
    # The stepper shades the source by cross-attention; a head of another attention says nothing of that.
    shading = view if kind == "cross" else replace(view, layer=None, head=None)
    run = _stepper_run(Looking(trace, shading), checkpoint, run_id)
    revision = st.session_state.get(keys.STEP_REVISION, 0)
    view = replace(view, step=settled_step(run, key=keys.STEPPER, step=view.step, step_revision=revision))
    st.session_state[keys.STEP] = view.step
    revealed = st.session_state.get(keys.REVEALED) == (run_id, view.step)
    return OpenRun(checkpoint, link, Looking(trace, view, revealed), run)


def _stepper_run(looking: Looking, checkpoint: Checkpoint, run_id: str) -> StepperRun:
    """What the stepper holds; a step changes nothing of it, so it is kept from step to step."""
    which = (run_id, looking.view.layer, looking.view.head)
    kept: tuple[object, StepperRun] | None = st.session_state.get(keys.STEPPER_RUN)
    if kept is None or kept[0] != which:
        kept = (which, stepper_run(looking, checkpoint, run_id))
        st.session_state[keys.STEPPER_RUN] = kept
    return kept[1]


def _last_trace(checkpoint: Checkpoint) -> Trace | None:
    query: Query | None = st.session_state.get(keys.LAST_QUERY)
    if query is None or query.checkpoint != checkpoint.content_hash:
        return None
    try:
        return loading.runner().trace(checkpoint, query)
    except (GlassformerError, BusyError):
        return None


def _same_revision(link: Link, checkpoint: Checkpoint) -> Link:
    """Say so if a link was made with another version of the checkpoint; what follows is about this one."""
    here = checkpoint.content_hash[:REVISION_LENGTH]
    if link.revision and link.revision != here:
        session.add_note(f"This link was made with another version of {checkpoint.name}; the output may differ.")
    st.session_state[keys.REVISION] = here
    return replace(link, revision=here)


def _address(checkpoint: Checkpoint, link: Link) -> Link:
    """The link with everything left out that the app would take by itself."""
    if link.source == checkpoint.card.first_example():
        link = replace(link, source=None)
    if link.max_new == min(DEFAULT_NEW, checkpoint.config.max_len):
        link = replace(link, max_new=DEFAULT_NEW)
    if link.model == st.session_state.get(keys.DEFAULT_MODEL):
        link = replace(link, model="")
    plain = replace(link, revision="")
    return plain if plain == Link() else link


def _what(checkpoint: Checkpoint) -> str:
    return f"a sentence in {checkpoint.card.source_language}" if checkpoint.card.source_code else "some text"
