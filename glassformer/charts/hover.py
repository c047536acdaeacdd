"""Hover texts and Plotly hover templates: sentences on lines, escaped names, bold numbers, cells of a map.

A hover template of Plotly's has fields such as `%{y:.3f}`. They are values of a sentence like any other, so a
translation can place them as its language needs: `say("token {place}", place="%{x}")`.
"""

from glassformer.charts.theme import literal
from transformer.i18n import joined, say, through
from transformer.i18n.sentence import written


@through
def bold(text: str) -> str:
    """A text letter by letter, and bold; not yet escaped."""
    return f"<b>{literal(text)}</b>"


@through
def italic(text: str) -> str:
    """A text letter by letter, and in italics, such as the reason for a missing number; not yet escaped."""
    return f"<i>{literal(text)}</i>"


def with_number(name: str, number: str) -> str:
    """A value on hover: its name, escaped already, and its number in bold, as text or a field such as "%{z:.3f}"."""
    return say("{name} {number}", name=name, number=_strong(written(number) if type(number) is str else number))


@through
def _strong(escaped: str) -> str:
    return f"<b>{escaped}</b>"


def on_lines(*parts: str) -> str:
    """Text of several lines, such as what hover says of one mark.

    Each part is a whole sentence or data, already escaped; empty parts are left out.
    """
    return joined("<br>", filter(None, parts))


def hover(*parts: str) -> str:
    """A hover template, without the box in which Plotly puts a trace's name.

    Its lines are sentences, whose values may be fields of Plotly's as in `say("weight {weight}", weight="%{z}")`, or
    data; already escaped.
    """
    return _without_name(on_lines(*parts))


@through
def _without_name(template: str) -> str:
    return f"{template}<extra></extra>"


LOGIT = say("Amount added to the logit")


def adds_to_logit(name: str, value: float) -> str:
    """A part of a sum that is a logit, on hover; its name is not yet escaped."""
    return on_lines(bold(name), with_number(LOGIT, f"{value:+.4g}"))


def of_axis(axis: str, which: str) -> str:
    """One row or column on hover, such as "Query 3"; the axis is already escaped."""
    return say("{axis} {which}", axis=axis, which=which)


def of_cell(names: tuple[str, str], last_line: str) -> str:
    """A template for a cell: its row and its column, as `layout.meta.cells` names them, and its content.

    The `names` are those of the axes, "" where rows or columns speak for themselves.
    """
    fields = ("%{customdata[0]}", "%{customdata[1]}")
    places = [of_axis(literal(name), field) if name else field for name, field in zip(names, fields, strict=True)]
    return hover(*places, last_line)
