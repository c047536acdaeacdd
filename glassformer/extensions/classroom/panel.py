"""Lesson panel beside the page (CSS, question, answer, navigation), summary at its end, page of all lessons.

`main.py` reserves its place before the page runs and fills it afterwards, when the page has opened the checkpoint. On a
wide screen it is a column, on a narrow one a folding sheet at the bottom (`_RULES`).

The CSS rules are fixed text; a lesson adds only chart keys of letters and digits.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from glassformer.extensions.classroom import lesson, predictions, question_form, step_links
from glassformer.extensions.classroom.lesson import Found, LessonStepRef
from glassformer.extensions.lessons.library import Lesson, Opening, Posed
from glassformer.extensions.lessons.library.posing import short_path, words_on
from glassformer.extensions.rooms import room_session
from glassformer.server.streamlit_private import styled
from glassformer.shared import drawing, i18n, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say, say_n

PANEL: Final = "lesson_panel"
# On a phone the question is folded to one line, as a class looks at the charts. Who has unfolded it reads on while the
# page is drawn again: a browser keeps an element whose HTML is the same.
FOLDED: Final = '<details class="gf-asked" data-at="{at}"><summary><strong>{said}</strong></summary></details>'
_OUTLINE: Final = "{ outline: 3px solid #e69f00; outline-offset: 4px; border-radius: 4px; }"

_RULES = styled("""
<style>
.st-key-lesson_panel { gap: 0; }
/* The panel lies over the page. */
.st-key-lesson_panel { background: light-dark(#fbfaf7, #141b23); }
.st-key-lesson_panel > *, .st-key-lesson_panel :--expander, .st-key-lesson_panel details {
  background-color: inherit;
}
[class*="_covered"] { opacity: 0.75; }
/* Beside the panel the page is as narrow as in a small window. */
@media (min-width: 1101px) and (max-width: 1500px) {
  :--app [class*="-step_grid"] { grid-template: "map" "blocks" "candidates" "force" / minmax(0, 1fr); }
  :--app :--main :--horizontal { flex-wrap: wrap; }
  :--app :--main :--column { min-width: calc(100% - 1.5rem); }
}
@media (min-width: 1101px) {
  .st-key-lesson_panel {
    position: fixed; z-index: 25; top: 0.6rem; right: 3.25rem; width: 20rem !important;
    max-height: calc(100vh - 1.2rem); overflow-y: auto;
  }
  :--app :--main-block { padding-right: 24.5rem; }
}
@media (max-width: 1100px) {
  .st-key-lesson_panel {
    position: fixed; z-index: 25; bottom: 0; left: 0; right: 0; width: auto !important;
    max-height: 46vh; overflow-y: auto; padding: 0 0.5rem 1.25rem; scroll-padding-bottom: 1.25rem;
  }
  :root :--app :--main-block { padding-bottom: calc(50vh + var(--gf-room, 0px)); }
}
.gf-asked { display: none; }
@media (max-width: 640px) {
  .gf-asked { display: block; }
  .gf-asked summary {
    overflow: hidden; text-overflow: ellipsis; white-space: nowrap; padding: 0.7rem 0.25rem 0.4rem; font-weight: 600;
  }
  .st-key-lesson_panel:has(.gf-asked:not([open])) { padding-bottom: 0.25rem; }
  .st-key-lesson_panel:has(.gf-asked:not([open])) :--expander,
  .st-key-lesson_panel:has(.gf-asked) :--expander summary { display: none; }
}
/* The sheet is at the foot, so the stepper stays at the top: between the two buttons of the corners. */
@media (max-width: 640px) {
  :--app .st-key-stepper { --gf-foot: static; --gf-side: 2rem; --gf-slider: 1.5rem; position: sticky; }
}
/* A narrower window has the sidebar over the page, not beside it. */
@media (min-width: 769px) and (max-width: 1100px) {
  :root:not(.gf-present) :--sidebar:--unfolded ~ * .st-key-lesson_panel { left: 300px; }
}
</style>
""")


_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
_MOST_EXAMPLES: Final = 3


def begin(page: str) -> Any:
    """Make the place of the panel; call it before the page runs. There is none outside of lessons."""
    lesson.begin()
    here = lesson.place()
    if here is None:
        question_form.ask(None, None)
    if here is not None or page == step_links.LIST:
        predictions.mount(page, heard=step_links.news)
    if here is None:
        return None
    st.html(_RULES)
    with st.container(key=PANEL):
        number, count, _, _ = step_links.around(lesson.known(), here)
        title = lesson.known()[here.lesson].title.said({})
        said = say("{title} · {n} of {count}", title=drawing.plain(title), n=number, count=count) if number else title
        line = st.container()
        with st.expander(said, expanded=True):
            return line, st.container()


def fill(place: Any) -> None:
    """Draw what the panel says into what `begin` made; call it after the page."""
    here, checkpoint = lesson.place(), lesson.taken()
    if place is None or here is None:
        return
    st.session_state[step_links.SHOWN] = predictions.run_at_hand()
    line, sheet = place
    with sheet:
        _draw(here, checkpoint, line)


def _draw(here: LessonStepRef, checkpoint: Checkpoint | None, line: Any) -> None:
    if step_links.has_summary(here):
        question_form.ask(None, None)
        menu.ways([step_links.to(say("Back to the step"), here, checkpoint, then=True)])
    elif isinstance(scene := lesson.scene_of(here), Opening):
        question_form.ask(None, None)
        _open(here, scene, checkpoint, line)
    else:
        found = current(here, checkpoint)
        question_form.ask(here, found)
        if isinstance(found, Posed):
            _fold(line, found.question)
            answered = checkpoint is not None and _asked(here, found, checkpoint)
        else:
            _not_here(here, found, checkpoint)
            answered = False
        _ways(here, checkpoint, answered=answered, passed=not isinstance(found, Posed))
    st.button(say("Leave the lesson"), key="lesson_leave", type="tertiary", on_click=lesson.leave)
    _outlined(here)


def _open(here: LessonStepRef, scene: Opening, checkpoint: Checkpoint | None, line: Any) -> None:
    """Say what to press and what to watch; nothing is asked."""
    said = scene.says.said({})
    _fold(line, said)
    st.markdown(drawing.plain(said))
    _, _, _, after = step_links.around(lesson.known(), here)
    ways = [] if after is None else [step_links.to(say("Go to the first question"), after, checkpoint)]
    if not step_links.at_the_step(here):
        ways.append(step_links.to(say("Back to the step"), here, checkpoint))
    menu.ways(ways)
    if here.short:
        _words(checkpoint)


def _words(checkpoint: Checkpoint | None) -> None:
    """Say the words of the path, folded."""
    found = None if checkpoint is None else lesson.made(checkpoint, lesson.source(), "path", words_on)
    if not isinstance(found, dict):
        return  # the question says why
    with st.expander(say("Terms for this path")):
        for term, says in short_path().words:
            line = say("{term}: {text}", term=drawing.strong(term.said({})), text=drawing.plain(says.said(found)))
            st.markdown(line)


def _fold(line: Any, said: Sentence) -> None:
    """Fold what a student in a room is asked or told, anew once they have voted and whenever the vote goes on."""
    public = room_session.public()
    if public is not None and room_session.taught() is None:
        at = f"{public.round} {public.taken} {public.answered} {room_session.has_voted()}"
        line.html(FOLDED.format(at=at, said=escape(i18n.here(said))))


def _outlined(here: LessonStepRef) -> None:
    """Outline the charts that the step is about, by their keys: letters, digits, `_` and `-` only."""
    keys = [key for key in lesson.scene_of(here).look if _KEY.fullmatch(key)]
    if keys and step_links.at_the_step(here):
        st.html(f"<style>{', '.join(f'.st-key-{key}' for key in keys)} {_OUTLINE}</style>")


def current(here: LessonStepRef, checkpoint: Checkpoint | None) -> Found:
    """The question of a step on the run that the page has opened, or why there is none."""
    on = lesson.step_of(here).on
    if checkpoint is None:
        return say("No model is open on this page. Go back to the step to continue.")
    if on not in ("", st.session_state.get(session.MODEL)):
        return say("This step uses the checkpoint {name}. Go back to the step to open it.", name=on)
    return lesson.posed(here, checkpoint, lesson.source())


def _asked(here: LessonStepRef, found: Posed, checkpoint: Checkpoint) -> bool:
    """Ask, or say what became of the answer; tells whether there is one."""
    room = room_session.asks(here.name, predictions.run_at_hand())
    if room is not None:
        return question_form.draw(here, found, checkpoint, room)
    given = predictions.of(here)
    if given is not None and question_form.reveal(here, given, checkpoint):
        return True
    question_form.question(here, found, checkpoint)
    return False


def _not_here(here: LessonStepRef, why: Sentence, checkpoint: Checkpoint | None) -> None:
    """Say why there is no question, and offer sentences that have one."""
    if checkpoint is not None and predictions.open_up(here) and lesson.step_of(here).cover:
        st.rerun()  # there is nothing to cover
    st.info(drawing.with_code(why), icon=":material/info:")
    examples = () if checkpoint is None else checkpoint.card.tried()
    others = [one for one in examples if one != lesson.source()][:_MOST_EXAMPLES]
    if others:
        st.caption(say("Try one of these sentences:"))
        for place, example in enumerate(others):
            st.button(
                drawing.plain(example),
                key=f"lesson_example_{place}",
                type="tertiary",
                on_click=session.use_example,
                args=(example,),
            )


def _ways(here: LessonStepRef, checkpoint: Checkpoint | None, *, answered: bool, passed: bool) -> None:
    """Draw the links from here: on, back, back to the step, out of the lesson."""
    _, _, before, after = step_links.around(lesson.known(), here)
    ways: list[step_links.Way] = []
    if answered or passed:
        label = say("Next", about="lesson") if answered else say("Skip")
        ways.append(step_links.way_out(here) if after is None else step_links.to(label, after, checkpoint))
    if before is not None:
        ways.append(step_links.to(say("Back"), before, checkpoint, then=predictions.of(before) is not None))
    ways.append(step_links.to(say("Back to the step"), here, checkpoint, then=answered))
    menu.ways(ways)


# ------------------------------------------------------------------------------------------------ all lessons

LIST_KEY: Final = "lesson_list"
FIRST: Final = 8  # lessons that are listed at once


def draw_list() -> None:
    """Draw the page of all lessons."""
    _summary()
    there = lesson.known()
    said = say(
        "Each lesson first shows something that moves; then each step asks before it shows the answer: predict, then "
        "look. The answers come from your own sentence and the open checkpoint."
    )
    st.markdown(said)
    path, begins = step_links.places(there), step_links.first(there)
    if begins is not None:
        with st.container(horizontal=True, gap="small", vertical_alignment="center", key="lesson_short"):
            begin = say("Begin the {n}-minute path", n=step_links.SHORT_MINUTES)
            menu.ways([step_links.into(begin, begins)])
            said = say(
                "{count} on attention, √d_head, positions and masks, with the terms you need. The steps are "
                "marked below.",
                count=say_n("{n} step", "{n} steps", len(path)),
            )
            st.caption(said, width="content")
    lessons = list(there.values())
    for one in lessons[:FIRST]:
        _lesson(one)
    if lessons[FIRST:]:
        with st.expander(say("More lessons")):
            for one in lessons[FIRST:]:
                _lesson(one)
    st.caption(say("Your answers are kept only in this browser."))
    st.button(
        say("Delete my answers"), key="lesson_forget", on_click=predictions.forget, disabled=not predictions.kept()
    )


def _lesson(one: Lesson) -> None:
    with st.container(key=f"{LIST_KEY}_{one.name}", border=True, gap="small"):
        st.markdown(drawing.strong(lesson.title_of(one)))
        st.markdown(drawing.plain(one.teaches.said({})))
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            place, label = _where_to_go_on(one)
            menu.ways([step_links.into(label, place)])
            st.caption(drawing.plain(joined(" ", _facts(one))), width="content")


def _where_to_go_on(one: Lesson) -> tuple[LessonStepRef, Sentence]:
    """The first step without an answer, whatever sentence it was about."""
    done = {name for name, _ in predictions.kept()}
    places = step_links.places(lesson.known(), one.name)
    ahead = [place for place in places if place.name not in done]
    if ahead and len(ahead) < len(places):
        return ahead[0], say("Continue at step {n}", n=ahead[0].step)
    begins = step_links.first(lesson.known(), one.name) or places[0]
    return begins, say("Begin") if ahead else say("Once more")


def _facts(one: Lesson) -> Iterator[str]:
    yield say(
        "{steps}, about {minutes}.",
        steps=say_n("{n} step", "{n} steps", len(one.steps)),
        minutes=say_n("{n} minute", "{n} minutes", one.minutes),
    )
    if before := lesson.titles_before(one):
        yield say("Builds on: {titles}.", titles=before)
    on_the_path = [n for n, step in enumerate(one.steps, 1) if step.short]
    if on_the_path:
        steps = joined(", ", map(str, on_the_path))
        yield say_n(
            "The {minutes}-minute path takes its step {steps}.",
            "The {minutes}-minute path takes its steps {steps}.",
            len(on_the_path),
            minutes=step_links.SHORT_MINUTES,
            steps=steps,
        )


def _summary() -> None:
    """Draw what was met on the path, how many answers were right, and what comes next; at its end."""
    if not step_links.has_summary(lesson.place()):
        return
    path = step_links.places(lesson.known())
    last = {name: one.right for (name, _), one in predictions.kept().items()}
    given = [last[place.name] for place in path if place.name in last]
    with st.container(key="path_summary", border=True):
        st.markdown(drawing.strong(step_links.SUMMARY))
        known = lesson.known()
        lines = [
            say("{title}: {text}", title=drawing.strong(known[name].title.said({})), text=drawing.plain(met.said({})))
            for name, met in short_path().met.items()
        ]
        st.markdown(joined("  \n", lines))
        said = say(
            "You predicted {given} of {n} steps, {right} of them correctly.",
            given=len(given),
            n=len(path),
            right=sum(given),
        )
        st.markdown(said)
        wrong = [place for place in path if last.get(place.name) is False]
        if wrong:
            st.caption(say("Look again at the steps whose answers surprised you:"))
            menu.ways([step_links.into(_called(place), place) for place in wrong])
        st.caption(say("More lessons"))
        names = [name for name in ("building", "pieces", "recipe") if name in known]
        further = [place for name in names if (place := step_links.first(known, name)) is not None]
        menu.ways([step_links.into(known[place.lesson].title.said({}), place) for place in further])


def _called(place: LessonStepRef) -> Sentence:
    title = lesson.known()[place.lesson].title.said({})
    return say("{title}, step {n}", title=title, n=place.step)
