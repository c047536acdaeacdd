"""Link builder for classes: a pasted URL, choice of a page or lesson step, choice of charts to hide, the link.

The link has the session's selection from the teacher's last page, or the selection of a pasted URL. A page's coverable
charts are known once the session has drawn the page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from glassformer.extensions.classroom import lesson
from glassformer.extensions.classroom.blocks import COVER, MET, MOST_COVERED, read_cover, write_cover
from glassformer.extensions.classroom.lesson import LessonStepRef
from glassformer.extensions.lessons.library import LessonStep
from glassformer.extensions.rooms import room_session
from glassformer.shared import drawing, menu
from glassformer.shared.cover_box import ALL, PART
from glassformer.shared.i18n import st
from glassformer.state import global_params, session
from glassformer.state.global_params import base
from glassformer.state.link import Link, read_link, write_link
from glassformer.state.view import View
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, say

PAGE_NAMES: Final[Mapping[str, str]] = {
    "step": say("Translate"),
    "attention": say("Attention"),
    "positions": say("Positions"),
    "masks": say("Masks"),
    "inside": say("Inside"),
    "search": say("How tokens are chosen"),
    "forcing": say("Teacher forcing"),
    "compare": say("Compare"),
    "matters": say("What matters"),
    "wrong": say("What goes wrong"),
    "training": say("Training"),
    "checkpoints": say("Checkpoints"),
    "doctor": say("Doctor"),
}


def whole(app: str, path: str, parameters: Mapping[str, str]) -> str:
    """The whole address of a page, as it is copied."""
    return f"{app}/{path}?{urlencode(parameters)}"


PAGE, STEP, COVERED, GUESS, PASTED = "teach_page", "teach_step", "teach_cover", "teach_guess", "teach_pasted"
NONE: Final = ""
LONGEST: Final = 8000  # characters of an address
PARTS: Final[Mapping[str, str]] = {
    ALL: say("everything below the sentence, including the output"),
    PART: say("everything below the output"),
    "candidates": say("the likeliest next tokens"),
    "entropy": say("how unsure each step was"),
    "cross_row": say("where a step looks"),
    "cross_map": say("the attention map on the page Translate"),
    "head_map": say("the attention map of one head"),
}
"""Words of `glassformer.shared.cover_box` that a teacher may want of any page, with what they name."""


@dataclass(frozen=True)
class LinkStart:
    """What a link is built from."""

    page: str  # the path of a page; "" for the one that the teacher chooses
    link: Link  # the whole selection
    covered: tuple[str, ...] = ()  # what the address covers already
    place: LessonStepRef | None = None  # the step of a lesson that it names


def draw(checkpoint: Checkpoint) -> None:
    """Draw the part of the page."""
    st.subheader(say("A link for the class"), divider=False)
    said = say(
        "The link opens with the sentence above, the checkpoint chosen in the sidebar, and everything you have "
        "selected: layer, head, part, token and step. Come here from the page you want to share, or paste its "
        "address."
    )
    st.caption(said)
    start = _start()
    left, right = st.columns(2, gap="medium")
    with left:
        steps = _steps()
        if STEP not in st.session_state and start.place is not None:
            st.session_state[STEP] = start.place.name
        at = st.selectbox(say("Step of a lesson"), list(steps), key=STEP, format_func=steps.__getitem__)
        place = start.place if start.place is not None and start.place.name == at else _place(at)
        page = _page(start, fixed=place is not None)
    with right:
        target = page if place is None else lesson.scene_of(place).page
        hidden = _covered(target, start)
        st.session_state.setdefault(GUESS, start.link.view.guess)
        guess = st.toggle(say("Hide candidates until I guess"), key=GUESS, disabled=place is not None)
    path, parameters = _address(checkpoint, start.link, place, page, hidden, guess=guess)
    _show(path, parameters)
    if hidden:
        said = say(
            "Covered parts are not sent to the browser. Anyone who opens the link can still show them in the "
            "sidebar, so a cover is not a lock."
        )
        st.caption(said)


def _show(path: str, parameters: Mapping[str, str]) -> None:
    address = whole(base(), path, parameters)
    st.code(address, language=None)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.link_button(say("Try it"), address, icon=":material/open_in_new:")
        if room_session.taught() is not None:
            alone = {COVER: "", lesson.PARAMETER: ""}  # not what this session has of them
            menu.ways([(path, say("Take the class there"), alone | dict(parameters))])


def _start() -> LinkStart:
    """What is pasted in, if it is an address of the app; else what the session looks at."""
    pasted = st.text_input(
        say("Address of a page"),
        key=PASTED,
        placeholder=say("Paste it here, or leave this empty"),
        max_chars=LONGEST,
        on_change=_begin_anew,
    )
    found = read_pasted(pasted) if pasted.strip() else None
    if isinstance(found, LinkStart):
        return found
    if found is not None:
        st.warning(drawing.with_code(found))
    return LinkStart("", replace(session.asked(), revision=""))


def _begin_anew() -> None:
    """Callback: another address says itself what is chosen below."""
    for key in (PAGE, STEP, COVERED, GUESS):
        st.session_state.pop(key, None)


def read_pasted(address: str) -> LinkStart | Sentence:
    """What an address says, or why it is none of a page."""
    try:
        split = urlsplit(address.strip())
        said = parse_qsl(split.query, max_num_fields=200)
    except ValueError:
        return say("This is not the address of a page. Copy the whole address from the address bar.")
    page = split.path.rstrip("/").rpartition("/")[2]
    if page not in PAGE_NAMES:
        return say(
            "This address leads to “{page}”, but a link can only open these pages: {pages}. Copy the whole address.",
            page=page[:40],
            pages=", ".join(PAGE_NAMES),
        )
    parameters: dict[str, tuple[str, ...]] = {}
    for name, value in said:
        parameters[name] = (*parameters.get(name, ()), value)
    link, notes = read_link(global_params.without(parameters))
    for note in notes:
        st.warning(drawing.with_code(note))
    covered = read_cover(next(iter(parameters.get(COVER, ())), ""))
    return LinkStart(page, replace(link, revision=""), covered, lesson.read(parameters)[0])


def _page(start: LinkStart, *, fixed: bool) -> str:
    """The page that is chosen: at first that of the address, or the one that the teacher comes from."""
    first = start.page or next(reversed(st.session_state.get(MET, {})), "")
    if PAGE not in st.session_state and first in PAGE_NAMES:
        st.session_state[PAGE] = first
    named = PAGE_NAMES.__getitem__
    return str(st.selectbox(say("Page"), list(PAGE_NAMES), key=PAGE, format_func=named, disabled=fixed))


def _covered(page: str, start: LinkStart) -> list[str]:
    met = {key: title or PARTS.get(key, key) for key, title in st.session_state.get(MET, {}).get(page, {}).items()}
    chosen = st.session_state.setdefault(COVERED, list(start.covered))
    named = dict(PARTS) | met | {key: PARTS.get(key, key) for key in chosen if key not in met}
    hidden: list[str] = st.multiselect(
        say("Covered"),
        list(named),
        key=COVERED,
        format_func=lambda key: named.get(key, key),
        placeholder=say("Nothing covered; choose parts to cover"),
        max_selections=MOST_COVERED,
    )
    if not met:
        name = PAGE_NAMES.get(page, page)
        st.caption(say("Open “{page}” once in this tab. After that, you can choose any of its parts here.", page=name))
    return hidden


def _address(
    checkpoint: Checkpoint, link: Link, place: LessonStepRef | None, page: str, hidden: list[str], *, guess: bool
) -> tuple[str, dict[str, str]]:
    """The path and the parameters of the link."""
    said = write_cover(hidden)
    # Complete: another server may have another default checkpoint, or the card another first example.
    source = link.source or checkpoint.card.first_example()
    more = {"model": link.model or checkpoint.name, "src": source}
    more |= {COVER: said} if said else {}
    if place is None:
        return page, write_link(replace(link, view=replace(link.view, guess=guess))) | more
    bare = replace(link, forced=(), tried=(), interventions=(), beside="", view=View())
    return lesson.scene_of(place).page, write_link(bare) | place.in_address() | more


def _steps() -> dict[str, str]:
    """Every opening and step of every lesson by its name, and none."""
    found: dict[str, str] = {NONE: say("none")}
    for one in lesson.known().values():
        title = one.title.said({})
        if one.opening is not None:
            found[f"{one.name}.0"] = say("{title}: the opening", title=title)
        for number, step in enumerate(one.steps, 1):
            asked = question(step)
            found[f"{one.name}.{number}"] = say("{title}, {n}: {question}", title=title, n=number, question=asked)
    return found


def question(step: LessonStep) -> Sentence:
    """What a step asks before it is posed to a run: its values are not known yet."""
    return step.ask.question.said(dict.fromkeys(step.ask.question.names, _Blank()))


class _Blank:
    """A value that is not known yet; takes any format of a number."""

    def __format__(self, spec: str) -> str:
        return "…"


def _place(name: str) -> LessonStepRef | None:
    lesson_name, _, number = name.partition(".")
    return LessonStepRef(lesson_name, int(number)) if number else None
