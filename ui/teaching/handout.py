"""A lesson on paper: one HTML file that opens offline, with its charts and questions.

A teacher's has the answers at its end, with the charts that show them. What students get has none anywhere.

Its script is Plotly's, inside the file, as a printed chart is drawn when the file is opened. Every text in it goes
through an escape. What has no chart on paper has a link to the app instead; nothing is fetched by itself.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from plotly.offline import get_plotlyjs

from charts.theme import Spec, figure_in
from transformer.lessons import Lesson, Posed
from words import Sentence, said, say

_STYLE: Final = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
_DRAW: Final = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
_TAGS: Final = {"zh": "zh-CN"}


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One step on paper."""

    posed: Posed | None  # the question with its answer; None where it makes no sense for the sentence
    why: Sentence | None  # then the reason
    charts: tuple[Spec, ...] = ()  # what belongs to it and stands beside the question
    closed: tuple[Spec, ...] = ()  # charts that hold the answer, and stand with it
    covered: bool = False  # whether what the app shows of it holds the answer
    about: Sentence | None = None  # which model and sentence it is of, if not those of the handout
    # Of what is not on paper, the name of the page that shows it, and its address.
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
    """The file.

    Args:
        lesson: The lesson.
        sheets: Its steps, in order.
        checkpoint: What the model is called.
        sentence: What it was given.
        output: What it wrote; "" where it writes nothing.
        language: One of `words.languages()`.
        answers: Whether they stand in it.

    Returns:
        HTML with everything in it.
    """

    def told(text: str) -> str:
        return escape(said(text, language))

    title = told(lesson.title.said({}))
    about = [
        told(say("Model: {name}", name=checkpoint)),
        f'<span class="sentence">{told(say("Sentence: {sentence}", sentence=sentence))}</span>',
    ]
    if output:
        about.append(told(say("Output: {output}", output=output)))
    named = f'<p class="name">{told(say("Name:"))}<span class="line"></span></p>'
    body = [f"<h1>{title}</h1>", named, f'<p class="about">{told(lesson.teaches.said({}))}</p>']
    body += [f'<p class="about">{line}</p>' for line in about[:2]]
    drawn = _Charts(language, closed=[chart for sheet in sheets for chart in sheet.closed])
    body += [_question(number, sheet, language, drawn) for number, sheet in enumerate(sheets, 1)]
    if answers:
        drawn = _Charts(language, closed=[])
        body.append(f'<div class="answers"><h1>{told(say("Answers"))}</h1>')
        body += [f'<p class="about">{line}</p>' for line in about[2:]]
        body += [_answer(number, sheet, language, drawn) for number, sheet in enumerate(sheets, 1)]
        body.append("</div>")
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style><script>{get_plotlyjs()}</script>'
    page = f"<head>{head}</head><body>{''.join(body)}<script>{_DRAW}</script></body>"
    return f'<!doctype html><html lang="{_TAGS.get(language, language)}">{page}</html>'


class _Charts:
    """The charts of one half of the paper: each once, and none that a question of the other half is about.

    Args:
        language: Of their texts.
        closed: Those that hold an answer.
    """

    def __init__(self, language: str, *, closed: Sequence[Spec]) -> None:
        self._language = language
        self._seen = {self._written(spec) for spec in closed}

    def once(self, spec: Spec) -> str:
        """A chart, if it was not drawn before."""
        if (written := self._written(spec)) in self._seen:
            return ""
        self._seen.add(written)
        return f'<div class="chart"><script type="application/json">{written}</script></div>'

    def _written(self, spec: Spec) -> str:
        return str(figure_in(spec, self._language).to_json()).replace("<", "\\u003c")  # no text ends the script


def _question(number: int, sheet: Sheet, language: str, drawn: _Charts) -> str:
    if sheet.posed is None:
        return ""
    posed = sheet.posed
    parts = [f"<h2>{number}. {escape(said(posed.question, language))}</h2>"]
    if sheet.about is not None:
        parts.append(f'<p class="about">{escape(said(sheet.about, language))}</p>')
    parts += map(drawn.once, sheet.charts)
    if not sheet.covered:
        parts.append(_elsewhere(sheet, language))
    labels = [f"<li>{escape(said(option.label, language))}</li>" for option in posed.options]
    parts.append(f"<ul>{''.join(labels)}</ul>" if labels else '<div class="line"></div>')
    why = escape(said(say("Why?"), language))
    parts.append(f'<p class="why">{why}<span class="line"></span></p><div class="line whole"></div>')
    return f"<section>{''.join(parts)}</section>"


def _answer(number: int, sheet: Sheet, language: str, drawn: _Charts) -> str:
    if sheet.posed is None:
        why = "" if sheet.why is None else escape(said(sheet.why, language))
        return f'<div class="answer"><h2>{number}.</h2><p>{why}</p></div>'
    parts = [f"<h2>{number}. {escape(said(_right(sheet.posed), language))}</h2>"]
    if sheet.posed.step.ask.form != "piece":  # its text answers what somebody typed
        parts.append(f"<p>{escape(said(sheet.posed.reveal, language))}</p>")
    parts += map(drawn.once, sheet.closed)
    if sheet.covered:
        parts.append(_elsewhere(sheet, language))
    return f'<div class="answer">{"".join(parts)}</div>'


def _elsewhere(sheet: Sheet, language: str) -> str:
    """Where what is not on paper is shown."""
    if sheet.shown_on is None:
        return ""
    page, address = sheet.shown_on
    more = say("The app shows more on the page “{page}”.", page=page)
    told = escape(
        said(
            more if sheet.charts or sheet.closed else say("The app shows it on the page “{page}”.", page=page),
            language,
        )
    )
    return f'<p class="about"><a href="{escape(address)}">{told}</a></p>'


def _right(posed: Posed) -> str:
    """The right answer, as a reader sees it."""
    right = posed.answer.right
    if posed.options:
        return posed.label(str(right))
    return right if isinstance(right, str) else f"{right:.4g}"
