"""A user's answers to what a report asks, by the names of the fields: checked before anything is done with them."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

from glassformer.extensions.importers.library.report import Field, ImportReport
from transformer.errors import ClauseError, shown, within
from transformer.i18n import Sentence, say
from transformer.model.config import ModelConfig

NO_ANSWERS: Mapping[str, Any] = MappingProxyType({})
CONFIG_FIELDS = frozenset(field.name for field in fields(ModelConfig))


def check_names(answers: Mapping[str, Any], allowed: Collection[str], *, label: str) -> None:
    """Refuse answers to what is never asked."""
    with within(label):
        for name in answers:
            if name not in allowed:
                raise ClauseError(
                    "there is no question named {name}; expected one of {names}",
                    name=shown(name),
                    names=", ".join(sorted(allowed)),
                )


def check_choice(field: Field, value: Any) -> None:
    """Refuse an answer that is none of the choices, where there are some."""
    possible = [choice.value for choice in field.choices]
    if possible and not any(type(value) is type(one) and value == one for one in possible):
        raise ClauseError(
            "{field}: found {found}, expected one of {choices}",
            field=field.name,
            found=shown(value),
            choices=", ".join(map(as_said, possible)),
        )


def answered(report: ImportReport, answers: Mapping[str, Any]) -> ImportReport:
    """The report with the answers, those to fields that it lacks at its end; one that is no choice is refused."""
    for field in report.fields:
        if field.name in answers and not field.is_assumed:
            with within(report.source):
                check_choice(field, answers[field.name])
    there = {field.name for field in report.fields}
    new = tuple(Field(name, "answered", value, YOU) for name, value in answers.items() if name not in there)
    return replace(report.answered(answers), fields=(*report.answered(answers).fields, *new))


def as_said(value: Any) -> str:
    """A value as `--set` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def as_told(name: str, value: Any) -> str:
    """A value as a sentence names it: as `--set` takes it, but a scale of q·k by the root that it divides by."""
    if name != "score_scale" or isinstance(value, bool) or not isinstance(value, int | float | None):
        return as_said(value)
    if value is None:
        return "1/√d_head"
    root = round(value**-2) if value > 1e-9 else 0
    return f"1/√{root}" if root > 1 and math.isclose(value, root**-0.5, rel_tol=1e-9) else f"{value:.6g}"


def value_of(text: str) -> Any:
    """The value that a text after `--set FIELD=` stands for: JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


YOU: Sentence = say("Your answer.")
