"""Session state: request, view per slot, sync with the URL, notes, tried branches; callbacks for new runs, steps.

The request (checkpoint, sentence, way of decoding) is kept by its widgets, under the keys below. The `View` of a slot
is the only source of what is selected: a control is set from it before it is drawn, and a change replaces it.

This module reads and writes the query parameters of a link; the others are in `global_params`. `begin` runs before any
widget: on the first run, and when the URL changed from outside (a pasted link, the browser's Back button), the session
is set from the URL. Otherwise `publish` writes the URL from the session at the end of the run.

Two traps. Every written URL becomes a history entry, so a URL that was just opened is never corrected at once: the
correction would trap everybody who goes back to it. And a user may hit a key before the browser has received the
newest URL: the next run then comes with an older one, which does not mean the Back button.
Where a step needs no drawing the browser writes the URL itself (`components/stepper/settled-step.js`).
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Final, get_args
from urllib.parse import parse_qs

import streamlit as st

from glassformer.state import fields, global_params
from glassformer.state.link import DEFAULT_NEW, LOOKED_AT, WAYS, Answers, Link, read_link, way_of, without, write_link
from glassformer.state.view import MAIN, Slot, View
from transformer.runs.interventions import Intervention
from transformer.runs.query import Decoding, Greedy, Query

# The request: keys of its widgets, and of what has none.
MODEL, SOURCE, HOW, MAX_NEW = "model", "source", "how", "max_new"
TEMPERATURE, TOP_K, TOP_P, SEED = "temperature", "top_k", "top_p", "seed"
COMPANIONS, JOB = "companions", "job"
ANSWERS: Final = "answers"  # of models of other programs; of several, as a reader may go to and fro
REFERENCE: Final = "reference"  # the sentence that it is for, and the right output that a reader gave
DEFAULT_MODEL, BARE_MODEL = "default_model", "bare_model"  # what an address means that names no checkpoint
WIDGETS: Final = (MODEL, SOURCE, HOW, *(one.key for _, settings in WAYS.values() for one in settings), MAX_NEW)
# The address bar.
URL_WRITTEN, URL_MEANT, URL_OPENED, URL_PAGE = "url_written", "url_meant", "url_opened", "url_page"
URL_ON_ITS_WAY, WHEN_WRITTEN, URL_LINKED = "url_on_its_way", "when_written", "url_linked"
PASSING: Final = "passing"  # what is shown now is shown in passing, and has no entry of the browser's history
STANDING = "standing"  # of a slot
STEPPER = "stepper"  # of a slot: what its stepper in the browser reports

MAX_ON_ITS_WAY = 30
SLOTS: Final[tuple[Slot, ...]] = get_args(Slot)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlotState:
    """Where a slot stands."""

    view: View = dataclasses.field(default_factory=View)  # what is looked at
    revision: str = ""  # beginning of the content hash of the checkpoint; of a link that was opened, what that says
    forced: tuple[int, ...] = ()  # branch, result of beam search and changes, as in `transformer.Query`
    hypothesis: int = 0
    interventions: tuple[Intervention, ...] = ()
    # Grows when the step was moved from outside the stepper, which then follows. It is a time, so reports of an
    # earlier session, as after a restart of the server, are always older.
    step_revision: int = 0
    revealed: tuple[str, int] | None = None  # in guess mode, the run and the step whose piece may be seen
    guess: str = ""  # what the reader guessed there
    notes: tuple[str, ...] = ()  # what is said above the run
    last_query: Query | None = None  # the last one that could be run
    last_rows: str = ""  # the `rows_note` of its trace
    # A query with nothing forced (None: the one at hand), and the beginnings tried on it, oldest first.
    branches: tuple[Query | None, tuple[tuple[int, ...], ...]] = (None, ())
    beside: str = ""  # of the main slot: what the second run of a comparison differs in; as in `Link`

    def noting(self, note: str) -> SlotState:
        """The same, with something to say."""
        return dataclasses.replace(self, notes=tuple(dict.fromkeys((*self.notes, note))))

    def at_another(self, step: int) -> SlotState:
        """At a step of the model's own output; the stepper in the browser follows."""
        return dataclasses.replace(
            self,
            forced=(),
            hypothesis=0,
            revealed=None,
            view=dataclasses.replace(self.view, step=step),
            step_revision=_later(self.step_revision),
        )


def _later(revision: int) -> int:
    """A revision after another: the time in milliseconds, unless that was given already."""
    return max(int(1000 * time.time()), revision + 1)


def standing(slot: Slot) -> SlotState:
    """Where a slot stands."""
    return st.session_state.get(f"{slot}{STANDING}") or SlotState()


def leave(slot: Slot, here: SlotState) -> None:
    """Stand there: all that opening a run writes."""
    st.session_state[f"{slot}{STANDING}"] = here


def stand(slot: Slot, **changes: Any) -> None:
    """Change where a slot stands, by the names of `SlotState`."""
    st.session_state[f"{slot}{STANDING}"] = dataclasses.replace(standing(slot), **changes)


def view(slot: Slot = MAIN) -> View:
    """What a slot looks at."""
    return standing(slot).view


def replace(slot: Slot, **changes: Any) -> None:
    """Look at something else, by the names of fields; another attention has other rows and columns."""
    before = view(slot)
    if changes.get("kind", before.kind) != before.kind:
        changes = {"query": None, "key": None, **changes}
    stand(slot, view=before.but(**changes))


# ---------------------------------------------------------------- the address


def begin(page: str) -> None:
    """Take over the address if it changed from outside; call it once, before any widget of the page."""
    global_params.begin()
    _take_over(page, _in_bar())
    for part in global_params.parts():
        for note in part.take_notes():
            add_note(note)


def _take_over(page: str, parameters: dict[str, tuple[str, ...]]) -> None:
    """Set the session from a link's parameters, unless they are what it has written itself."""
    state = st.session_state
    other_page = bool(state.get(URL_PAGE)) and state[URL_PAGE] != page
    # A link of ours says what the session says, but for what the session heard of since it was drawn.
    moved = other_page and _but_the_step(parameters) == _but_the_step({n: (value,) for n, value in linked().items()})
    state[URL_PAGE] = page
    state[URL_OPENED] = moved
    if moved or parameters == state.get(URL_WRITTEN):
        _wrote(parameters)
        if moved:
            for slot in SLOTS:
                replace(slot, query=None, key=None)  # of other pieces there
            replace(MAIN, step=read_link(parameters)[0].view.step)  # the browser may have stepped since
        for key in WIDGETS if other_page else ():  # what a link had set on one page, another would not show
            if key in state:
                state[key] = state[key]
        return
    if parameters in state.get(URL_ON_ITS_WAY, ()) and state.get(WHEN_WRITTEN) != _asked():
        return
    link, notes = read_link(parameters)
    before, _ = read_link({name: (value,) for name, value in (state.get(URL_MEANT) or {}).items()})
    known = standing(MAIN).branches if _request(before) == _request(link) else (None, ())
    apply(link)
    tried = tuple(dict.fromkeys((*link.tried, *known[1])))[-fields.MOST_BRANCHES :]
    stand(MAIN, branches=(known[0], tried), notes=notes)
    for part in global_params.parts():
        part.gave(parameters)
    state[URL_OPENED] = True
    _wrote(parameters)


def publish(link: Link) -> None:
    """Write the address, if it says something else; call it at the end of a run that went well."""
    state = st.session_state
    written = write_link(link)
    for part in global_params.parts():
        part.published(state.get(URL_PAGE, ""), written)
    state[WHEN_WRITTEN] = _asked()
    if state.pop(PASSING, False):
        return
    if not state.pop(URL_OPENED, False) and written != state.get(URL_MEANT):
        before = (*state.get(URL_ON_ITS_WAY, ()), state.get(URL_WRITTEN))
        _wrote({name: (value,) for name, value in written.items()}, before=before)
        st.query_params.from_dict(global_params.beside(written))
    state[URL_MEANT] = written


def left_out() -> tuple[str, str]:
    """The default checkpoint, and that of a bare address, if addresses leave them out: in company they name each."""
    company = global_params.guidance()
    state = {} if company.follows or company.leads else st.session_state
    return state.get(DEFAULT_MODEL, ""), state.get(BARE_MODEL, "")


def spelled(link: Link) -> dict[str, str]:
    """The whole address of a link, as `publish` writes it."""
    return global_params.beside(write_link(link))


def browser_wrote(query: str) -> None:
    """Callback: the browser wrote the current URL for a step; it is not an opened link."""
    said = _in_bar()
    written = parse_qs(query, keep_blank_values=True)
    if said == global_params.without({name: tuple(values) for name, values in written.items()}):
        st.session_state[URL_WRITTEN] = said


def _in_bar() -> dict[str, tuple[str, ...]]:
    """The parameters of a link that the address bar has."""
    return global_params.without({name: tuple(st.query_params.get_all(name)) for name in st.query_params})


def _but_the_step(parameters: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {name: values for name, values in parameters.items() if name != "step"}


def _request(link: Link) -> Link:
    """What a link asks for, whatever branch of it is shown and looked at."""
    bare = dataclasses.replace(link, revision="", forced=(), hypothesis=0, tried=(), companions=None)
    return dataclasses.replace(bare, reference=None, beside="", view=View())


def link_to(parameters: dict[str, str]) -> None:
    """Remember where the links to other pages lead, to recognise a click on one."""
    st.session_state[URL_LINKED] = parameters


def linked() -> dict[str, str]:
    """Where the links to other pages lead."""
    return st.session_state.get(URL_LINKED, {})


def _wrote(parameters: dict[str, tuple[str, ...]], *, before: tuple[object, ...] = ()) -> None:
    """Remember what the address bar says, and what it said `before` if the browser may not have heard yet."""
    st.session_state[URL_WRITTEN] = parameters
    st.session_state[URL_ON_ITS_WAY] = before[-MAX_ON_ITS_WAY:]


def _asked() -> tuple[object, ...]:
    """What the widgets say; it changes when the reader does something, and not when they go back."""
    return asked(), repr(st.session_state.get(STEPPER))


# ---------------------------------------------------------------- the request


def apply(link: Link) -> None:
    """Make the session say what a link says; only before the widgets are drawn, or in a callback."""
    how, settings = way_of(link.decoding)
    st.session_state.update(
        {
            MODEL: link.model, SOURCE: link.source, MAX_NEW: link.max_new, COMPANIONS: link.companions,
            HOW: how, **{one.key: getattr(link.decoding, one.field) for one in settings},
            **({JOB: link.job} if link.job else {}),
        }
    )  # fmt: skip
    keep_answers(link.model, link.answers)
    keep_reference(link.source, link.reference)
    stand(MAIN, view=link.view, revision=link.revision, interventions=link.interventions, beside=link.beside)
    go_to_output(MAIN, link.forced, link.hypothesis, link.view.step)


def asked(slot: Slot = MAIN) -> Link:
    """What a slot asks for and looks at now; what it has no widget of its own for, the main slot's says."""

    def said(key: str, default: Any = None) -> Any:
        otherwise = st.session_state.get(key, default) if slot else default
        return st.session_state.get(f"{slot}{key}", otherwise)

    here = standing(slot)
    decoding: Decoding = Greedy()
    if said(HOW) in WAYS:
        kind, settings = WAYS[said(HOW)]
        decoding = kind(**{one.field: said(one.key, getattr(kind, one.field)) for one in settings})
    return Link(
        model=said(MODEL) or "",
        revision=here.revision,
        answers=answers_of(said(MODEL) or ""),
        source=said(SOURCE),
        reference=reference_of(said(SOURCE)),
        decoding=decoding,
        max_new=said(MAX_NEW, DEFAULT_NEW),
        forced=here.forced,
        hypothesis=here.hypothesis,
        interventions=here.interventions,
        companions=said(COMPANIONS),
        tried=here.branches[1],
        beside=here.beside,
        view=here.view,
    )


def answers_of(model: str) -> Answers:
    """What the reader said of a model of another program."""
    found: Answers = st.session_state.get(ANSWERS, {}).get(model, ())
    return found


def keep_answers(model: str, answers: Answers) -> None:
    """Remember what the reader says of a model."""
    st.session_state[ANSWERS] = {**st.session_state.get(ANSWERS, {}), model: answers}


def reference_of(source: str | None) -> str | None:
    """The right output that was given for a sentence; None if there is none.

    It stays while other sentences are open, until a newer one is given. `source` is None for the checkpoint's first
    example, before a page sets it.
    """
    whose, text = st.session_state.get(REFERENCE) or (None, None)
    if text is not None and whose is None and source is not None:
        keep_reference(source, text)  # of a link that names no sentence
        return text
    return text if whose == source else None


def keep_reference(source: str | None, text: str | None) -> None:
    """Callback: the right output for a sentence; None or an empty one for none."""
    st.session_state[REFERENCE] = (source, text) if text else None


def tried_on(slot: Slot, base: Query) -> tuple[fields.Branch, ...]:
    """The forced beginnings that were tried on a query, for a slot's list of outputs."""
    family, tried = standing(slot).branches
    return tried if family in (None, base) else ()


def remember(slot: Slot, base: Query, forced: fields.Branch) -> tuple[fields.Branch, ...]:
    """Add a forced beginning to those tried on a query; the oldest leave when there are too many."""
    tried = tried_on(slot, base)
    if forced and forced not in tried:
        tried = (*tried, forced)[-fields.MOST_BRANCHES :]
    stand(slot, branches=(base, tried))
    return tried


def new_run() -> None:
    """Callback: another model, sentence or way of decoding. What belonged to the runs before is dropped."""
    stand(MAIN, beside=without(standing(MAIN).beside, "forced", "result", "step"))
    for slot in SLOTS:
        stand(slot, revision="", branches=(None, ()))
        replace(slot, query=None, key=None)
        go_to_output(slot, (), 0, 0)


def use_example(sentence: str) -> None:
    """Callback: take an example as the source."""
    st.session_state[SOURCE] = sentence
    new_run()


def change_model() -> None:
    """Callback: another checkpoint; its first example takes the place of a sentence it cannot read."""
    st.session_state.update({SOURCE: None, MAX_NEW: DEFAULT_NEW, COMPANIONS: None})
    replace(MAIN, sentence=None, piece="", neuron=None)
    stand(MAIN, beside=without(standing(MAIN).beside, "src", "do", *LOOKED_AT))
    for slot in SLOTS:
        stand(slot, interventions=())  # of another model's heads
    new_run()


def arrive(key: str) -> None:
    """Choose the checkpoint whose name stands under a key since it is there; before the choice of one is drawn."""
    name = st.session_state.pop(key, None)
    if name is not None:
        st.session_state[MODEL] = name
        change_model()


def change_moment(model: str) -> None:
    """Callback: open the same checkpoint at another time of its training; the view stays."""
    st.session_state[MODEL] = model
    for slot in SLOTS:
        stand(slot, revision="", notes=(), branches=(None, standing(slot).branches[1]))


def pass_by(passing: bool) -> None:
    """Callback: whether what is shown next is shown in passing; the address says only where the reader rests."""
    st.session_state[PASSING] = passing


# ---------------------------------------------------------------- what is said, and where a run stands


def take_notes(slot: Slot = MAIN) -> tuple[str, ...]:
    """The notes on the link that was opened; they are shown until the session goes on to something else."""
    return standing(slot).notes


def add_note(note: str, slot: Slot = MAIN) -> None:
    """Say something with the next run, once."""
    leave(slot, standing(slot).noting(note))


def move_to(slot: Slot, step: int) -> None:
    """Stand at a step; the stepper in the browser follows."""
    replace(slot, step=step)
    stand(slot, step_revision=_later(standing(slot).step_revision))


def settled(slot: Slot) -> None:
    """Callback: the reader has come to rest on another step."""
    stand(slot, revealed=None, notes=())


def go_to_output(slot: Slot, forced: tuple[int, ...], hypothesis: int, step: int) -> None:
    """Callback: look at another branch or another result of beam search."""
    stand(slot, forced=forced, hypothesis=hypothesis, notes=(), revealed=None)
    move_to(slot, step)


def change(slot: Slot, interventions: tuple[Intervention, ...]) -> None:
    """Callback: the same run with these changes inside the model, and no others."""
    stand(slot, interventions=interventions, hypothesis=0, notes=(), revealed=None)


def reveal(slot: Slot, run_id: str, step: int, guess: str = "") -> None:
    """Callback: in guess mode, the piece of a step may be seen from now on."""
    stand(slot, revealed=(run_id, step), guess=guess)
