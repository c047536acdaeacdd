"""A lesson's steps on one run, for a handout: posed, with the charts that their pages show. Needs no session.

They are all that the step outlines, each with what is said of it. Other texts, tables and what would have to be run
anew are not on paper; the sheet then says where the app shows them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from glassformer.charts.theme import Spec
from glassformer.extensions.classroom.lesson import Place
from glassformer.extensions.classroom.lessons import lesson_questions
from glassformer.extensions.classroom.teaching.handout import Sheet, handout
from glassformer.extensions.classroom.teaching.links import PAGE_NAMES, whole
from glassformer.extensions.lessons.library import Lesson, Posed, Step
from glassformer.runs import loading
from glassformer.runs.declared import PAGES, PICTURES
from glassformer.runs.open_run import seen
from glassformer.runs.picture import Picture
from glassformer.server.work import BusyError
from glassformer.shared.cover import ALL, PART
from glassformer.state.link import Link, read_link
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, say
from transformer.runs.trace import Trace

Draw = Callable[[Link, Checkpoint, Trace], Spec | None]


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The charts of a step."""

    beside: tuple[Spec, ...] = ()  # what may stand beside its question
    closed: tuple[Spec, ...] = ()  # what holds the answer
    whole: bool = False  # whether they are all that the step looks at


def figures_of(step: Step, parameters: Mapping[str, str], checkpoint: Checkpoint, trace: Trace) -> Drawn:
    """The charts of a step: all that it outlines (if nothing, covers) and that paper can show, else one of its page.

    Raises:
        GlassformerError: The run cannot be changed as the address says.
        BusyError: The model has too much to do.
    """
    link, _ = read_link({name: (text,) for name, text in parameters.items()})
    link = replace(link, source=trace.query.source, max_new=trace.query.max_new)
    if link.interventions:
        trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    looks = {key: partial(_declared, PICTURES[key]) if key in PICTURES else None for key in step.look or step.cover}
    chosen = {key: draw(link, checkpoint, trace) for key, draw in looks.items() if draw is not None}
    if not chosen and (otherwise := _of_page(step, link)) is not None:
        chosen = {next(iter(step.cover), ""): otherwise(link, checkpoint, trace)}
    closed = {key for key in chosen if not {key, ALL, PART}.isdisjoint(step.cover)}
    return Drawn(
        beside=tuple(spec for key, spec in chosen.items() if spec is not None and key not in closed),
        closed=tuple(spec for key, spec in chosen.items() if spec is not None and key in closed),
        whole=all(chosen.get(key) is not None for key in looks) and any(chosen.values()),
    )


def _of_page(step: Step, link: Link) -> Draw | None:
    page = PAGES.get("step" if step.page == "search" else step.page)  # that page's pictures are of all results
    first = None if page is None else page.first(link.view)
    return None if first is None else partial(_declared, first)


def _declared(picture: Picture[Any], link: Link, checkpoint: Checkpoint, trace: Trace) -> Spec | None:
    run, _ = seen(checkpoint, link, trace, kind=picture.part.page.kind(link.view))
    plot = picture.of(run)
    return None if plot is None else {**plot.spec, "said": plot.words["said"]}


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
    text = handout(lesson, sheets, checkpoint=name, sentence=source, output=output, language=language, answers=answers)
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
        shown_on=None if drawn.whole else (PAGE_NAMES.get(step.page, step.page), link),
    )


def _drawn(step: Step, posed: Posed, checkpoint: Checkpoint, source: str) -> Drawn:
    """What belongs to a step; a question stays without it if it cannot be made."""
    trace = loading.runner().trace(checkpoint, lesson_questions.own_query(checkpoint, source))
    try:
        return figures_of(step, posed.link(), checkpoint, trace)
    except (GlassformerError, BusyError):
        return Drawn()
