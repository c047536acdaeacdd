"""A lesson's steps on one run, for a handout: posed, with their charts. Needs no session."""

from glassformer.extensions.classroom.lesson import Place
from glassformer.extensions.classroom.lessons import lesson_questions
from glassformer.extensions.classroom.teaching.handout import Sheet, handout
from glassformer.extensions.classroom.teaching.handout_figures import Drawn, figures_of
from glassformer.extensions.classroom.teaching.teaching_places import PAGES, whole
from glassformer.extensions.lessons.library import Lesson, Posed, Step
from glassformer.runs import loading
from glassformer.server.work import BusyError
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, say


def written(lesson: Lesson, checkpoint: Checkpoint, source: str, language: str, *, app: str, answers: bool) -> bytes:
    """The handout of a lesson as a file; `app` is the address of the app, for links to what is not on paper.

    Raises:
        GlassformerError: The model cannot run the sentence.
        BusyError: The model has too much to do.
    """
    trace = loading.runner().trace(checkpoint, lesson_questions.own_query(checkpoint, source))
    on_paper = [number for number, step in enumerate(lesson.steps, 1) if step.paper]
    sheets = [_sheet(lesson, number, checkpoint, source, app) for number in on_paper]
    name, output = checkpoint.card.title or checkpoint.name, trace.output_text
    text = handout(
        lesson, sheets, checkpoint=name, sentence=source, output=output, language=language, answers=answers
    )
    return text.encode("utf-8")


def _sheet(lesson: Lesson, number: int, checkpoint: Checkpoint, source: str, app: str) -> Sheet:
    """One step; what goes wrong with it is said in its place."""
    step, place = lesson.steps[number - 1], Place(lesson.name, number)
    about: Sentence | None = None
    try:
        if step.on not in ("", checkpoint.name):
            if (entry := loading.found(step.on)) is None:
                raise KeyError(step.on)
            checkpoint = loading.open_checkpoint(entry)
            source = checkpoint.card.first_example()
            about = say("With the model {name}: {sentence}", name=checkpoint.card.title, sentence=source)
        found = lesson_questions.posed(place, checkpoint, source)
        if not isinstance(found, Posed):
            return Sheet(posed=found, about=about)
        drawn = _drawn(step, found, checkpoint, source)
    except (GlassformerError, BusyError) as error:
        return Sheet(posed=error.sentence, about=about)
    except (KeyError, OSError):
        why = say("This step needs the checkpoint {name}, which cannot be opened here.", name=step.on)
        return Sheet(posed=why, about=about)
    link = whole(app, step.page, {"model": checkpoint.name, "src": source} | place.in_address())
    return Sheet(
        posed=found,
        charts=drawn.beside,
        closed=drawn.closed,
        covered=bool(step.cover),
        about=about,
        shown_on=None if drawn.whole else (PAGES.get(step.page, step.page), link),
    )


def _drawn(step: Step, posed: Posed, checkpoint: Checkpoint, source: str) -> Drawn:
    """What belongs to a step; a question stays without it if it cannot be made."""
    trace = loading.runner().trace(checkpoint, lesson_questions.own_query(checkpoint, source))
    try:
        return figures_of(step, posed.link(), checkpoint, trace)
    except (GlassformerError, BusyError):
        return Drawn()
