"""The session's request and view, and the address bar, kept in step.

This is the only module that touches query parameters. `begin` runs before any widget: on the first run, and when
the address changed from outside (a pasted link, the browser's Back button), the address decides and the widgets are
set from it. Otherwise the session decides, and `publish` writes the address at the end of the run.

Two traps. Every address that is written becomes a step of the browser's history, so an address that was just opened
is left as it is: put right at once, it would catch everybody who goes back to it. And a reader may press a key before
the browser has heard of the newest address: then the run after it comes with an older one, which is no Back button.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from transformer.runs.query import Beam, Decoding, Greedy, Query, Sampling
from ui.state import keys
from ui.state.link import DEFAULT_NEW, Link, View, read_link, write_link

MEAN = "Mean"
HOW_NAMES = {"greedy": "Greedy", "beam": "Beam", "sampling": "Sampling"}
MAX_BRANCHES = 12
MAX_ON_ITS_WAY = 30
# Fields of the view that the session keeps as they are, under keys of the same names.
AS_THEY_ARE = (
    keys.KIND, keys.AGGREGATE, keys.PANEL, keys.QUERY, keys.KEY, keys.LOG_SCALE, keys.OWN_SCALE, keys.WORDS,
    keys.HIDE_SPECIAL, keys.GUESS, keys.POSITIONS_PANEL, keys.SIDE, keys.SHIFT, keys.DIMS, keys.MASKS_PANEL,
    keys.MASK, keys.SENTENCE, keys.INSIDE_PANEL, keys.NEURON, keys.COSINE, keys.PADS,
    keys.MEASURE, keys.DRAWN, keys.CHANGED, keys.TOKENS, keys.NORM, keys.DEPTHS, keys.LENS_COLOUR, keys.NEARNESS,
    keys.PIECE, keys.FOLD,
)  # fmt: skip
SHARED = (
    keys.MODEL, keys.SOURCE, keys.HOW, keys.BEAM_SIZE, keys.LENGTH_PENALTY, keys.TEMPERATURE, keys.TOP_K, keys.TOP_P,
    keys.SEED, keys.MAX_NEW, keys.LAYER, keys.HEAD, *AS_THEY_ARE,
)  # fmt: skip


def begin(page: str) -> None:
    """Take over the address if it changed from outside; call it once, before any widget.

    Args:
        page: Name of the page that is about to be drawn.
    """
    state = st.session_state
    parameters = {name: tuple(st.query_params.get_all(name)) for name in st.query_params}
    other_page = bool(state.get(keys.URL_PAGE)) and state[keys.URL_PAGE] != page
    # Going to another page of the app empties the address; that is no request for the defaults.
    moved = other_page and not parameters
    state[keys.URL_PAGE] = page
    state[keys.URL_OPENED] = False
    if moved or parameters == state.get(keys.URL_WRITTEN):
        _wrote(parameters)
        if moved:
            state[keys.URL_MEANT] = None
            state[keys.QUERY], state[keys.KEY] = None, None  # of other pieces there
        if other_page:
            _carry_over()
        return
    if parameters in state.get(keys.URL_ON_ITS_WAY, ()) and state.get(keys.WHEN_WRITTEN) != _asked():
        return
    link, notes = read_link(parameters)
    apply(link)
    state[keys.LINK_NOTES] = notes
    state[keys.URL_OPENED] = True
    _wrote(parameters)


def _carry_over() -> None:
    """Set the widgets that pages share once more: what a link had set on one page, another would not show."""
    for key in SHARED:
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]


def _wrote(parameters: dict[str, tuple[str, ...]], *, before: tuple[object, ...] = ()) -> None:
    """Remember what the address bar says, and what it said `before` if the browser may not have heard yet."""
    st.session_state[keys.URL_WRITTEN] = parameters
    st.session_state[keys.URL_ON_ITS_WAY] = before[-MAX_ON_ITS_WAY:]


def _asked() -> tuple[object, ...]:
    """What the widgets say; it changes when the reader does something, and not when they go back."""
    return current(), repr(st.session_state.get(keys.STEPPER))


def apply(link: Link) -> None:
    """Make the session say what a link says; only before the widgets are drawn, or in a callback."""
    state = st.session_state
    state[keys.MODEL] = link.model
    state[keys.REVISION] = link.revision
    state[keys.SOURCE] = link.source
    state[keys.MAX_NEW] = link.max_new
    state[keys.FORCED] = link.forced
    state[keys.HYPOTHESIS] = link.hypothesis
    state[keys.LAYER] = MEAN if link.view.layer is None else str(link.view.layer + 1)
    state[keys.HEAD] = MEAN if link.view.head is None else str(link.view.head + 1)
    state[keys.COMPANIONS] = link.companions
    for field in AS_THEY_ARE:
        state[field] = getattr(link.view, field)
    state.pop(keys.REVEALED, None)
    _apply_decoding(link.decoding)
    move_to(link.view.step)


def _apply_decoding(decoding: Decoding) -> None:
    state = st.session_state
    match decoding:
        case Beam():
            state[keys.HOW] = "beam"
            state[keys.BEAM_SIZE], state[keys.LENGTH_PENALTY] = decoding.size, decoding.length_penalty
        case Sampling():
            state[keys.HOW] = "sampling"
            state[keys.TEMPERATURE], state[keys.SEED] = decoding.temperature, decoding.seed
            state[keys.TOP_K], state[keys.TOP_P] = decoding.top_k, decoding.top_p
        case _:
            state[keys.HOW] = "greedy"


def current() -> Link:
    """What the session asks for and looks at now."""
    get = st.session_state.get
    return Link(
        model=get(keys.MODEL) or "",
        revision=get(keys.REVISION) or "",
        source=get(keys.SOURCE),
        decoding=_current_decoding(),
        max_new=get(keys.MAX_NEW, DEFAULT_NEW),
        forced=get(keys.FORCED, ()),
        hypothesis=get(keys.HYPOTHESIS, 0),
        companions=get(keys.COMPANIONS),
        view=View(
            step=get(keys.STEP, 0),
            layer=_number(get(keys.LAYER)),
            head=_number(get(keys.HEAD)),
            **{field: _kept(field) for field in AS_THEY_ARE},
        ),
    )


def _kept(field: str) -> Any:
    """A field of the view as the session keeps it; a widget that is not drawn any more may have left None."""
    value = st.session_state.get(field)
    return getattr(View, field) if value is None else tuple(value) if field == keys.DIMS else value


def _current_decoding() -> Decoding:
    get = st.session_state.get
    how = get(keys.HOW)
    if how == "beam":
        return Beam(
            size=get(keys.BEAM_SIZE, Beam().size),
            length_penalty=get(keys.LENGTH_PENALTY, Beam().length_penalty),
        )
    if how == "sampling":
        return Sampling(
            temperature=get(keys.TEMPERATURE, 1.0),
            top_k=get(keys.TOP_K, 0),
            top_p=get(keys.TOP_P, 1.0),
            seed=get(keys.SEED, 0),
        )
    return Greedy()


def publish(link: Link) -> None:
    """Write the address, if it says something else; call it at the end of a run that went well."""
    state = st.session_state
    written = write_link(link)
    state[keys.WHEN_WRITTEN] = _asked()
    if not state.pop(keys.URL_OPENED, False) and written != state.get(keys.URL_MEANT):
        before = (*state.get(keys.URL_ON_ITS_WAY, ()), state.get(keys.URL_WRITTEN))
        _wrote({name: (value,) for name, value in written.items()}, before=before)
        st.query_params.from_dict(written)
    state[keys.URL_MEANT] = written


def take_notes() -> tuple[str, ...]:
    """The notes on the link that was opened; they are shown until the session goes on to something else."""
    notes: tuple[str, ...] = st.session_state.get(keys.LINK_NOTES, ())
    return notes


def add_note(note: str) -> None:
    """Say something with the next run, once."""
    st.session_state[keys.LINK_NOTES] = tuple(dict.fromkeys((*take_notes(), note)))


def new_run() -> None:
    """Callback: another model, sentence or way of decoding. What belonged to the run before is dropped."""
    state = st.session_state
    state[keys.FORCED], state[keys.HYPOTHESIS] = (), 0
    state[keys.REVISION] = ""
    state[keys.LINK_NOTES] = ()
    state[keys.QUERY], state[keys.KEY] = None, None
    state.pop(keys.REVEALED, None)
    move_to(0)


def use_example(sentence: str) -> None:
    """Callback: take an example as the source."""
    st.session_state[keys.SOURCE] = sentence
    new_run()


def change_model() -> None:
    """Callback: another checkpoint; its first example takes the place of a sentence it cannot read."""
    st.session_state[keys.SOURCE] = None
    st.session_state[keys.MAX_NEW] = DEFAULT_NEW
    st.session_state[keys.COMPANIONS], st.session_state[keys.SENTENCE] = None, 0
    st.session_state[keys.PIECE], st.session_state[keys.NEURON] = "", None
    new_run()


def forget_cell() -> None:
    """Callback: another attention has other rows and columns."""
    st.session_state[keys.QUERY], st.session_state[keys.KEY] = None, None


def move_to(step: int) -> None:
    """Stand at a step; the stepper in the browser follows."""
    st.session_state[keys.STEP] = step
    st.session_state[keys.STEP_REVISION] = st.session_state.get(keys.STEP_REVISION, 0) + 1


def show(forced: tuple[int, ...], hypothesis: int, step: int) -> None:
    """Callback: look at another branch or another result of beam search."""
    state = st.session_state
    state[keys.FORCED], state[keys.HYPOTHESIS] = forced, hypothesis
    state[keys.LINK_NOTES] = ()
    state.pop(keys.REVEALED, None)
    move_to(step)


def branches(base: Query) -> list[tuple[int, ...]]:
    """The forced beginnings that were tried on a query, oldest first."""
    family, tried = st.session_state.get(keys.BRANCHES, (None, []))
    return list(tried) if family == base else []


def remember_branch(base: Query, forced: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Add a forced beginning to those tried on a query; the oldest leave when there are too many."""
    tried = branches(base)
    if forced and forced not in tried:
        tried = [*tried, forced][-MAX_BRANCHES:]
    st.session_state[keys.BRANCHES] = (base, tried)
    return tried


def _number(choice: Any) -> int | None:
    return int(choice) - 1 if isinstance(choice, str) and choice.isdigit() else None
