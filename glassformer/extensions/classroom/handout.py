"""Printable HTML handout of a lesson: questions with their charts, and the answers in a teacher's copy.

A teacher's copy has the answers at its end, with their charts; a student's copy has no answers.

The file contains Plotly's script, all texts are escaped, and nothing is fetched. The charts are those that the step
outlines. Other texts, tables and new runs are not on paper: the sheet links to the app instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any, Final

from glassformer.charts.theme import Spec, figure_in
from glassformer.components.embedding import chart_element, embedded
from glassformer.extensions.classroom.lesson import LessonStepRef, own_query, posed
from glassformer.extensions.classroom.teaching_links import PAGE_NAMES, whole
from glassformer.extensions.lessons.library import Lesson, LessonStep, Posed
from glassformer.runs import loading
from glassformer.runs.open_run import seen
from glassformer.runs.picture import PAGES, PICTURES, Picture, declare_all
from glassformer.server.model_runner import BusyError
from glassformer.shared.cover_box import ALL, PART
from glassformer.state.link import Link, read_link
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence, said, say
from transformer.runs.trace import Trace

declare_all()

_STYLE: Final = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
_TAGS: Final = {"zh": "zh-CN"}


@dataclass(frozen=True, kw_only=True)
class HandoutCharts:
    """The charts of a step."""

    beside: tuple[Spec, ...] = ()  # next to the question
    closed: tuple[Spec, ...] = ()  # with the answer, which they hold
    whole: bool = False  # whether they are all that the step looks at


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One step on paper."""

    posed: Posed | Sentence  # the question with its answer, or why it makes no sense for the sentence
    charts: HandoutCharts = HandoutCharts()
    covered: bool = False  # whether what the app shows of it holds the answer
    about: Sentence | None = None  # which model and sentence it is of, if not those of the handout
    # For what is not on paper: the page's name and its URL.
    shown_on: tuple[str, str] | None = None


def handout(
    lesson: Lesson,
    sheets: Sequence[Sheet],
    *,
    checkpoint: str,
    sentence: str,
    output: str,
    language: str,
    answers: bool = True,
) -> str:
    """The HTML file; `checkpoint` is the model's name, `output` is "" if it writes nothing."""
    made: dict[int, str] = {}
    half = _Half(language, closed=[chart for sheet in sheets for chart in sheet.charts.closed], made=made)
    told = half.told
    title = told(lesson.title.said({}))
    about = [
        told(say("Model: {name}", name=checkpoint)),
        f'<span class="sentence">{told(say("Sentence: {sentence}", sentence=sentence))}</span>',
    ]
    named = f'<p class="name">{told(say("Name:"))}<span class="line"></span></p>'
    body = [f"<h1>{title}</h1>", named, f'<p class="about">{told(lesson.teaches.said({}))}</p>']
    body += [f'<p class="about">{line}</p>' for line in about]
    body += [half.question(number, sheet) for number, sheet in enumerate(sheets, 1)]
    if answers:
        half = _Half(language, closed=[], made=made)
        body.append(f'<div class="answers"><h1>{told(say("Answers"))}</h1>')
        if output:
            body.append(f'<p class="about">{told(say("Output: {output}", output=output))}</p>')
        body += [half.answer(number, sheet) for number, sheet in enumerate(sheets, 1)]
        body.append("</div>")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    page = f"<head>{head}</head><body>{''.join(body)}{embedded()}</body>"
    return f'<!doctype html><html lang="{_TAGS.get(language, language)}">{page}</html>'


class _Half:
    """One half of the paper: each chart once, and none that a question of the other half is about (`closed`)."""

    def __init__(self, language: str, *, closed: Sequence[Spec], made: dict[int, str]) -> None:
        self._language, self._made = language, made  # what was written of each chart, by its identity
        self._seen = {self._written(spec) for spec in closed}

    def told(self, text: str) -> str:
        """A text in the reader's language, escaped."""
        return escape(said(text, self._language))

    def question(self, number: int, sheet: Sheet) -> str:
        """A question with its charts."""
        if not isinstance(sheet.posed, Posed):
            return ""
        posed, about = sheet.posed, ""
        if sheet.about is not None:
            about = f'<p class="about">{self.told(sheet.about)}</p>'
        parts = [f"<h2>{number}. {self.told(posed.question)}</h2>{about}", *map(self._once, sheet.charts.beside)]
        if not sheet.covered:
            parts.append(self._elsewhere(sheet))
        labels = [f"<li>{self.told(option.label)}</li>" for option in posed.options]
        parts.append(f"<ul>{''.join(labels)}</ul>" if labels else '<div class="line"></div>')
        why = f'<p class="why">{self.told(say("Why?"))}<span class="line"></span></p>'
        return f'<section>{"".join(parts)}{why}<div class="line whole"></div></section>'

    def answer(self, number: int, sheet: Sheet) -> str:
        """The answer, with the charts that hold it."""
        if not isinstance(sheet.posed, Posed):
            return f'<div class="answer"><h2>{number}.</h2><p>{self.told(sheet.posed)}</p></div>'
        posed = sheet.posed
        parts = [f"<h2>{number}. {self.told(posed.right)}</h2>"]
        if posed.step.ask.form != "piece":  # its text answers what somebody typed
            parts.append(f"<p>{self.told(posed.reveal)}</p>")
        parts += map(self._once, sheet.charts.closed)
        if sheet.covered:
            parts.append(self._elsewhere(sheet))
        return f'<div class="answer">{"".join(parts)}</div>'

    def _elsewhere(self, sheet: Sheet) -> str:
        """Where what is not on paper is shown."""
        if sheet.shown_on is None:
            return ""
        page, address = sheet.shown_on
        line = say("To see this in the app, open the “{page}” page.", page=page)
        return f'<p class="about"><a href="{escape(address)}">{self.told(line)}</a></p>'

    def _once(self, spec: Spec) -> str:
        """A chart, if it was not drawn before."""
        if (written := self._written(spec)) in self._seen:
            return ""
        self._seen.add(written)
        words = spec.get("said") or {}
        above, below = (f"<p>{self.told(words[part])}</p>" if words.get(part) else "" for part in ("above", "below"))
        return above + written + self._table(words.get("table")) + below

    def _table(self, table: Mapping[str, Any] | None) -> str:
        if table is None:
            return ""
        rows = ("".join(f"<td>{self.told(cell)}</td>" for cell in row) for row in (table["columns"], *table["rows"]))
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def _written(self, spec: Spec) -> str:
        if id(spec) not in self._made:
            self._made[id(spec)] = chart_element(figure_in(spec, self._language))
        return self._made[id(spec)]


def figures_of(step: LessonStep, parameters: Mapping[str, str], checkpoint: Checkpoint, trace: Trace) -> HandoutCharts:
    """The charts of a step: all that it outlines (if nothing, covers) and that paper can show, else one of its page.

    Raises:
        GlassformerError: The run cannot be changed as the address says.
        BusyError: The model has too much to do.
    """
    link, _ = read_link({name: (text,) for name, text in parameters.items()})
    link = replace(link, source=trace.query.source, max_new=trace.query.max_new)
    if link.interventions:
        trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    looks = step.look or step.cover
    chosen = {key: _declared(PICTURES[key], link, checkpoint, trace) for key in looks if key in PICTURES}
    page = PAGES.get("step" if step.page == "search" else step.page)  # that page's pictures are of all results
    if not chosen and page is not None and (first := page.first(link.view)) is not None:
        chosen = {next(iter(step.cover), ""): _declared(first, link, checkpoint, trace)}
    closed = {key for key in chosen if not {key, ALL, PART}.isdisjoint(step.cover)}
    return HandoutCharts(
        beside=tuple(spec for key, spec in chosen.items() if spec is not None and key not in closed),
        closed=tuple(spec for key, spec in chosen.items() if spec is not None and key in closed),
        whole=all(chosen.get(key) is not None for key in looks) and any(chosen.values()),
    )


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
    trace = loading.runner().trace(checkpoint, own_query(checkpoint, source))
    on_paper = [number for number, step in enumerate(lesson.steps, 1) if step.paper]
    sheets = [_sheet(lesson, number, checkpoint, source, app) for number in on_paper]
    name, output = checkpoint.card.title or checkpoint.name, trace.output_text
    text = handout(lesson, sheets, checkpoint=name, sentence=source, output=output, language=language, answers=answers)
    return text.encode("utf-8")


def _sheet(lesson: Lesson, number: int, checkpoint: Checkpoint, source: str, app: str) -> Sheet:
    """One step; what goes wrong with it is said in its place."""
    step, place = lesson.steps[number - 1], LessonStepRef(lesson.name, number)
    about: Sentence | None = None
    try:
        if step.on not in ("", checkpoint.name):
            if (entry := loading.found(step.on)) is None:
                raise KeyError(step.on)
            checkpoint = loading.open_checkpoint(entry)
            source = checkpoint.card.first_example()
            about = say("With the model {name}: {sentence}", name=checkpoint.card.title, sentence=source)
        found = posed(place, checkpoint, source)
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
        charts=drawn,
        covered=bool(step.cover),
        about=about,
        shown_on=None if drawn.whole else (PAGE_NAMES.get(step.page, step.page), link),
    )


def _drawn(step: LessonStep, posed: Posed, checkpoint: Checkpoint, source: str) -> HandoutCharts:
    """What belongs to a step; a question stays without it if it cannot be made."""
    trace = loading.runner().trace(checkpoint, own_query(checkpoint, source))
    try:
        return figures_of(step, posed.link(), checkpoint, trace)
    except (GlassformerError, BusyError):
        return HandoutCharts()
