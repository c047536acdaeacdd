"""The question of a step: how it is answered, and what is said then."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from glassformer.extensions.classroom import lesson, predictions
from glassformer.extensions.classroom.lesson import Place
from glassformer.extensions.classroom.lessons import leading, lesson_questions
from glassformer.extensions.classroom.predictions import Prediction
from glassformer.extensions.lessons.library import Posed
from glassformer.extensions.lessons.library.posing import number_in
from glassformer.extensions.rooms import in_room
from glassformer.extensions.rooms.server.public import MOST_CHOICES, Public
from glassformer.shared import choices, drawing
from glassformer.shared.door import st
from glassformer.state import apart, session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say

ASKED_AGAIN: Final = "lesson_asked_again"  # in the session: why an answer was not taken
MOST_CHARACTERS: Final = 80


def question(place: Place, found: Posed, checkpoint: Checkpoint, *, labels: Sequence[str] = ()) -> None:
    """Ask, with the choices (by other labels, if some are given) or a box to type into, and a button that commits."""
    key = f"lesson_answer_{place.name.replace('.', '_')}_{predictions.run_at_hand()}"
    with st.form(key=f"ask_{key}", border=False):
        st.markdown(drawing.strong(found.question))
        if found.step.ask.form == "choice":
            called = labels or [option.label for option in found.options]
            shown = {option.word: drawing.plain(text) for option, text in zip(found.options, called, strict=True)}
            choices.keep_label(key, shown.values())
            st.radio(
                say("Your prediction"),
                list(shown),
                key=key,
                index=None,
                format_func=lambda word: shown.get(word, word),
                label_visibility="collapsed",
            )
        else:
            typed = (
                say("A number, such as {example}", example="0.25")
                if found.step.ask.form == "number"
                else say("A piece")
            )
            st.text_input(say("Your prediction"), key=key, placeholder=typed, max_chars=MOST_CHARACTERS)
        again = st.session_state.pop(ASKED_AGAIN, None)
        if again is not None:
            st.warning(again)
        take = partial(answer, place, key, checkpoint)
        st.form_submit_button(say("Answer"), type="primary", on_click=take, key=f"{key}_commit")


def answer(place: Place, key: str, checkpoint: Checkpoint) -> None:
    """Callback: the learner commits to what the widget with a key says; then the page shows what was covered."""
    given = str(st.session_state.get(key) or "").strip()
    source = st.session_state.get(session.SOURCE) or ""
    typed = given if lesson.step_of(place).ask.form == "piece" else ""
    found = lesson_questions.posed(place, checkpoint, source, given=typed)
    if not isinstance(found, Posed):
        return
    why = _refused(found, given)
    if why is not None:
        st.session_state[ASKED_AGAIN] = why
        return
    predictions.predict(place, given, right=found.is_right(given))
    room = in_room.asks(place.name, predictions.run_at_hand())
    if room is not None and in_room.taught() is None:
        if counts_right(room, found):
            in_room.vote(0 if found.is_right(given) else 1)
        else:
            in_room.vote(words_of(found).index(given))
        return  # the teacher shows the answer
    if leading.at_the_step(place) and found.then() != found.link():
        there = leading.parameters(place, checkpoint, then=True)
        st.query_params.from_dict(apart.beside(there))


def reveal(place: Place, given: Prediction, checkpoint: Checkpoint, source: str) -> bool:
    """Say what was predicted, whether it is right, and what the run says.

    Tells whether that is an answer to the question as it stands now.
    """
    step = lesson.step_of(place)
    found = lesson_questions.posed(place, checkpoint, source, given=given.choice if step.ask.form == "piece" else "")
    if not isinstance(found, Posed) or _refused(found, given.choice) is not None:
        return False
    st.markdown(drawing.strong(found.question))
    right = found.is_right(given.choice)
    said = [_verdict(found, given.choice, right=right)]
    if (misled := found.misled(given.choice)) is not None:
        said.append(misled)
    (st.success if right else st.warning)(drawing.plain(joined(" ", said)))
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
    st.info(drawing.plain(true(found)))
    if found.step.ask.form != "piece":  # what is said there is about what was typed
        st.markdown(drawing.plain(found.reveal))


def true(found: Posed) -> Sentence:
    """What is right, as a sentence."""
    return say("The answer is “{true}”.", true=_true(found))


def called(found: Posed, given: str) -> str:
    """What an answer is called: the word of a choice, or what was typed."""
    return found.label(given) if found.step.ask.form == "choice" and given in words_of(found) else given


def _true(found: Posed) -> str:
    answer = found.answer.right
    if found.step.ask.form == "choice":
        return found.label(str(answer))
    return answer if isinstance(answer, str) else f"{answer:.4g}"


def _verdict(found: Posed, given: str, *, right: bool) -> Sentence:
    """What was predicted, by name, and what is so."""
    predicted, so = called(found, given), _true(found)
    if right:
        return say("Correct: “{predicted}”.", predicted=predicted)
    return say("You predicted “{predicted}”; the answer is “{true}”.", predicted=predicted, true=so)


def _refused(found: Posed, given: str) -> str | None:
    """Why something is no answer to a question; None if it is one."""
    form = found.step.ask.form
    if form == "choice":
        known = given in words_of(found)
        return None if known else say("Choose a prediction first. A wrong one is just as useful.")
    if not given:
        return say("Type a prediction first. A wrong one is just as useful.")
    if form == "number" and number_in(given) is None:
        return say("Type a number, such as {example}.", example="0.25")
    return None
