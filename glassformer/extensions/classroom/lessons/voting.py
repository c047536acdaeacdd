"""A lesson's question in a room: the class votes, and the answer stays covered until the teacher shows it.

The teacher's panel puts the question to the class; a student's answer is also a vote. Where students have sentences
of their own, or type an answer, choices cannot be compared: then it is counted how many were right.
"""

from functools import partial

from glassformer.extensions.classroom import lesson, predictions
from glassformer.extensions.classroom.lesson import Place
from glassformer.extensions.classroom.lessons import answering, leading
from glassformer.extensions.classroom.lessons.lesson_questions import Found
from glassformer.extensions.lessons.library import Posed
from glassformer.extensions.rooms import in_room
from glassformer.extensions.rooms.page import polling
from glassformer.extensions.rooms.page.room_view import room_counts
from glassformer.extensions.rooms.server.public import LEAST_VOTES, Opened, Public, Question
from glassformer.extensions.rooms.server.room import Room
from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import apart, session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import joined, say


def ask(here: Place | None, found: Found | None) -> None:
    """Put the question of a step to the class, if this session teaches one; take it back where there is none."""
    taught, public = in_room.taught(), in_room.public()
    if taught is None or public is None:
        return
    if here is None or not isinstance(found, Posed):
        asked = public.question
        of_this_step = asked is not None and here is not None and asked.name.startswith(here.name)
        if asked is not None and not asked.aloud and not of_this_step:  # on another page it stays asked
            polling.do(taught, Room.ask, None)
        return
    name = in_room.name_of(here.name, "" if public.own else predictions.run_at_hand())
    if public.question is not None and public.question.name == name:
        return
    right_alone = answering.counts_right(public, found)
    choices = polling.RIGHT_OR_NOT if right_alone else tuple(option.label for option in found.options)
    polling.do(taught, Room.ask, Question(name, found.question, choices))
    if lesson.step_of(here).cover and predictions.of(here) is not None:
        st.rerun()  # the teacher has seen the answer before; now it is covered


def draw(here: Place, found: Posed, checkpoint: Checkpoint, public: Public) -> bool:
    """Draw what the panel says of a question that a room is asked; tells whether the answer may be seen."""
    taught = in_room.taught()
    if taught is not None:
        _teach(taught, here, found, checkpoint, public)
    elif public.taken and not in_room.has_voted():
        _question(here, found, checkpoint)
    else:
        _wait(here, found, checkpoint, public)
    return public.answered


def _question(here: Place, found: Posed, checkpoint: Checkpoint) -> None:
    public = in_room.public()
    if public is not None and public.least < LEAST_VOTES:
        said = say(
            "The class votes. Results are shown even if only a few have voted, so your classmates may be able "
            "to tell who chose what."
        )
        st.caption(said)
    else:
        st.caption(say("The class votes. Nobody, not even the teacher, can see who voted for what."))
    answering.question(here, found, checkpoint, labels=_labels(found))


def _labels(found: Posed) -> list[str]:
    """The choices as the wall names them, too."""
    return polling.lettered([option.label for option in found.options])


def _wait(here: Place, found: Posed, checkpoint: Checkpoint, public: Public) -> None:
    """What a student sees who has voted, or has come too late."""
    given = predictions.of(here)
    if public.answered:
        source = st.session_state.get(session.SOURCE) or ""
        if given is None or not answering.reveal(here, given, checkpoint, source):
            answering.solution(found)
        polling.results(public)
        return
    st.markdown(drawing.strong(found.question))
    said = []
    if in_room.has_voted() and given is not None:
        said.append(say("You voted for “{choice}”.", choice=answering.called(found, given.choice)))
    if public.taken:
        said.append(say("Your teacher will show the votes when the class is ready."))
    elif public.phase == "discuss":
        said.append(say("Discuss the question with your neighbours, then vote again."))
    else:
        said.append(say("Discuss the question with your neighbours; your teacher may ask again."))
    st.info(drawing.plain(joined(" ", said)))
    polling.results(public)


def _teach(taught: Opened, here: Place, found: Posed, checkpoint: Checkpoint, public: Public) -> None:
    """What the teacher sees: the buttons stand above the bars, which may be long."""
    room_counts(key="lesson_counts")
    if public.answered:
        answering.solution(found)
    else:
        st.markdown(drawing.strong(found.question))
        if not polling.has_bars(public):
            with st.container(key="lesson_choices"):  # no term is underlined in it: one choice would stand out
                st.markdown(joined("  \n", [drawing.plain(label) for label in _labels(found)]))
    polling.controls(taught, public, answer=partial(_show_answer, here, found, checkpoint))
    polling.results(public)


def _show_answer(here: Place, found: Posed, checkpoint: Checkpoint, taught: Opened) -> None:
    """Callback: everybody may see the answer, and the page shows what belongs to it."""
    public = in_room.public()
    if public is None:
        return
    compared = not answering.counts_right(public, found)
    right = answering.words_of(found).index(str(found.answer.right)) if compared else None
    told = "" if compared or public.own else answering.true(found)
    polling.do(taught, Room.answer, right, told)
    if leading.at_the_step(here) and found.then() != found.link():
        st.query_params.from_dict(apart.beside(leading.parameters(here, checkpoint, then=True)))
