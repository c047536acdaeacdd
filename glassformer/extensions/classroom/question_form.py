"""Question form of a lesson step, for a learner, a voting class and its teacher: choices, vote, answer, why.

The teacher's panel opens the question for the class; a student's answer is also a vote. Typed answers, and choices
about students' own sentences, cannot be compared: then only right and wrong are counted.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from glassformer.extensions.classroom import lesson, predictions, step_links
from glassformer.extensions.classroom.lesson import Found, LessonStepRef
from glassformer.extensions.classroom.predictions import Prediction
from glassformer.extensions.lessons.library import Posed
from glassformer.extensions.lessons.library.posing import number_in
from glassformer.extensions.rooms import room_session, room_view
from glassformer.extensions.rooms.room import LEAST_VOTES, MOST_CHOICES, OpenedRoom, Public, Question, Room
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import global_params
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say

ASKED_AGAIN: Final = "lesson_asked_again"  # in the session: why an answer was not taken
MOST_CHARACTERS: Final = 80
_NOTHING_GIVEN: Final = say("Choose a prediction first. A wrong one is just as useful.")
_A_NUMBER: Final = say("Type a number, such as {example}.", example="0.25")


def question(place: LessonStepRef, found: Posed, checkpoint: Checkpoint, *, labels: Sequence[str] = ()) -> None:
    """Ask, with the choices (by other labels, if some are given) or a box to type into, and a button that commits."""
    key = f"lesson_answer_{place.name.replace('.', '_')}_{predictions.run_at_hand()}"
    with st.form(key=f"ask_{key}", border=False):
        st.markdown(drawing.strong(found.question))
        if found.step.ask.form == "choice":
            called = labels or [option.label for option in found.options]
            shown = {option.word: drawing.plain(text) for option, text in zip(found.options, called, strict=True)}
            controls.keep_label(key, shown.values())
            st.radio(
                say("Your prediction"),
                list(shown),
                key=key,
                index=None,
                format_func=lambda word: shown.get(word, word),
                label_visibility="collapsed",
            )
        else:
            typed = _A_NUMBER if found.step.ask.form == "number" else say("A token")
            st.text_input(say("Your prediction"), key=key, placeholder=typed, max_chars=MOST_CHARACTERS)
        again = st.session_state.pop(ASKED_AGAIN, None)
        if again is not None:
            st.warning(again)
        take = partial(answer, place, key, checkpoint)
        st.form_submit_button(say("Answer"), type="primary", on_click=take, key=f"{key}_commit")


def answer(place: LessonStepRef, key: str, checkpoint: Checkpoint) -> None:
    """Callback: the learner commits to what the widget with a key says; then the page shows what was covered."""
    given = str(st.session_state.get(key) or "").strip()
    found = _posed(place, checkpoint, given)
    if not isinstance(found, Posed):
        return
    why = _refused(found, given)
    if why is not None:
        st.session_state[ASKED_AGAIN] = why
        return
    predictions.predict(place, given, right=found.is_right(given))
    room = room_session.asks(place.name, predictions.run_at_hand())
    if room is not None and room_session.taught() is None:
        if counts_right(room, found):
            room_session.vote(0 if found.is_right(given) else 1)
        else:
            room_session.vote(words_of(found).index(given))
        return  # the teacher shows the answer
    _show(place, found, checkpoint)


def _posed(place: LessonStepRef, checkpoint: Checkpoint, given: str) -> Found:
    """The question of a step to the learner's sentence, with what was given if that is a piece."""
    typed = given if lesson.step_of(place).ask.form == "piece" else ""
    return lesson.posed(place, checkpoint, lesson.source(), given=typed)


def _show(place: LessonStepRef, found: Posed, checkpoint: Checkpoint) -> None:
    """Have the page show what belongs to the answer."""
    if step_links.at_the_step(place) and found.then() != found.link():
        st.query_params.from_dict(global_params.beside(step_links.parameters(place, checkpoint, then=True)))


def reveal(place: LessonStepRef, given: Prediction, checkpoint: Checkpoint) -> bool:
    """Show the prediction, whether it is right, and the run's answer; False if the question has changed."""
    found = _posed(place, checkpoint, given.choice)
    if not isinstance(found, Posed) or _refused(found, given.choice) is not None:
        return False
    st.markdown(drawing.strong(found.question))
    right, predicted = found.is_right(given.choice), called(found, given.choice)
    said = [say("You predicted “{predicted}”; the answer is “{true}”.", predicted=predicted, true=found.right)]
    if right:
        said = [say("Correct: “{predicted}”.", predicted=predicted)]
    if (misled := found.misled(given.choice)) is not None:
        said.append(misled)
    (st.success if right else st.warning)(drawing.with_code(joined(" ", said)))
    st.markdown(drawing.plain(found.reveal))
    return True


def counts_right(public: Public, found: Posed) -> bool:
    """Whether votes say who was right, and not what was chosen: choices on different sentences are not comparable."""
    return public.own or found.step.ask.form != "choice" or len(found.options) > MOST_CHOICES


def words_of(found: Posed) -> list[str]:
    """The choices of a question, in their order."""
    return [option.word for option in found.options]


def solution(found: Posed) -> None:
    """Say what the run says to who predicted nothing."""
    st.markdown(drawing.strong(found.question))
    st.info(drawing.with_code(true(found)))
    if found.step.ask.form != "piece":  # what is said there is about what was typed
        st.markdown(drawing.plain(found.reveal))


def true(found: Posed) -> Sentence:
    """What is right, as a sentence."""
    return say("The answer is “{true}”.", true=found.right)


def called(found: Posed, given: str) -> str:
    """What an answer is called: the word of a choice, or what was typed."""
    return found.label(given) if found.step.ask.form == "choice" and given in words_of(found) else given


def _refused(found: Posed, given: str) -> str | None:
    """Why something is not an answer to a question; None if it is one."""
    form = found.step.ask.form
    if not given or (form == "choice" and given not in words_of(found)):
        return _NOTHING_GIVEN
    return _A_NUMBER if form == "number" and number_in(given) is None else None


def ask(here: LessonStepRef | None, found: Found | None) -> None:
    """Put the question of a step to the class, if this session teaches one; take it back where there is none."""
    taught, public = room_session.taught(), room_session.public()
    if taught is None or public is None:
        return
    if here is None or not isinstance(found, Posed):
        asked = public.question
        of_this_step = asked is not None and here is not None and asked.name.startswith(here.name)
        if asked is not None and not asked.aloud and not of_this_step:  # on another page it stays asked
            room_view.do(taught, Room.ask, None)
        return
    name = room_session.name_of(here.name, "" if public.own else predictions.run_at_hand())
    if public.question is not None and public.question.name == name:
        return
    right_alone = counts_right(public, found)
    offered = room_view.RIGHT_OR_NOT if right_alone else tuple(option.label for option in found.options)
    room_view.do(taught, Room.ask, Question(name, found.question, offered))
    if lesson.step_of(here).cover and predictions.of(here) is not None:
        st.rerun()  # the teacher has seen the answer before; now it is covered


def draw(here: LessonStepRef, found: Posed, checkpoint: Checkpoint, public: Public) -> bool:
    """Draw what the panel says of a question that a room is asked; tells whether the answer may be seen."""
    taught = room_session.taught()
    if taught is not None:
        _teach(taught, here, found, checkpoint, public)
    elif public.taken and not room_session.has_voted():
        _question(here, found, checkpoint, public)
    else:
        _wait(here, found, checkpoint, public)
    return public.answered


def _question(here: LessonStepRef, found: Posed, checkpoint: Checkpoint, public: Public) -> None:
    if public.least < LEAST_VOTES:
        said = say(
            "The class votes. Results are shown even if only a few have voted, so your classmates may be able "
            "to tell who chose what."
        )
        st.caption(said)
    else:
        st.caption(say("The class votes. Nobody, not even the teacher, can see who voted for what."))
    question(here, found, checkpoint, labels=_labels(found))


def _labels(found: Posed) -> list[str]:
    """The choices as the wall names them, too."""
    return room_view.lettered([option.label for option in found.options])


def _wait(here: LessonStepRef, found: Posed, checkpoint: Checkpoint, public: Public) -> None:
    """What a student sees who has voted, or has come too late."""
    given = predictions.of(here)
    if public.answered:
        if given is None or not reveal(here, given, checkpoint):
            solution(found)
        room_view.results(public)
        return
    st.markdown(drawing.strong(found.question))
    said = []
    if room_session.has_voted() and given is not None:
        said.append(say("You voted for “{choice}”.", choice=called(found, given.choice)))
    if public.taken:
        said.append(say("Your teacher will show the votes when the class is ready."))
    else:
        said.append(say("Discuss the question with your neighbours; your teacher may ask again."))
    st.info(drawing.with_code(joined(" ", said)))
    room_view.results(public)


def _teach(taught: OpenedRoom, here: LessonStepRef, found: Posed, checkpoint: Checkpoint, public: Public) -> None:
    """What the teacher sees: the buttons stand above the bars, which may be long."""
    room_view.room_counts(key="lesson_counts")
    if public.answered:
        solution(found)
    else:
        st.markdown(drawing.strong(found.question))
        if not room_view.has_bars(public):
            with st.container(key="lesson_choices"):  # no term is underlined in it: one choice would stand out
                st.markdown(joined("  \n", [drawing.plain(label) for label in _labels(found)]))
    room_view.controls(taught, public, answer=partial(_show_answer, here, found, checkpoint))
    room_view.results(public)


def _show_answer(here: LessonStepRef, found: Posed, checkpoint: Checkpoint, taught: OpenedRoom) -> None:
    """Callback: everybody may see the answer, and the page shows what belongs to it."""
    public = room_session.public()
    if public is None:
        return
    compared = not counts_right(public, found)
    right = words_of(found).index(str(found.answer.right)) if compared else None
    told = "" if compared or public.own else true(found)
    room_view.do(taught, Room.answer, right, told)
    _show(here, found, checkpoint)
