"""A user's answers to what a report asks: checked, and kept beside the model that they open.

`import` and `doctor` write them once the model opens with them. Later opens read them, and the report says so; a new
answer takes precedence. The file names its model and works for no other: answers for a `model.safetensors` are in
`model.safetensors.answers.json`.
"""

import json
import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from glassformer.extensions.importers.library.readers import SUFFIXES
from glassformer.extensions.importers.library.report import Field, ImportReport
from glassformer.extensions.weight_files.weight_folder import chosen
from transformer.errors import CheckpointError, ClauseError, shown, within
from transformer.files.atomic_saves import write_whole
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say
from transformer.model.config import ModelConfig

ENDING: Final = ".answers.json"
WRITTEN_FOR: Final = "written_for"  # the file's key for the name of the model; files of earlier versions have none
MOST_BYTES: Final = 64_000
_ENDINGS: Final = (*SUFFIXES, ".tar")


@dataclass(frozen=True)
class KeptAnswers:
    """Answers that are kept; none if there is no file."""

    file: str  # its name
    answers: Mapping[str, Any]  # by the names of the fields
    unused: tuple[Sentence, ...] = ()  # what is said of files beside it that were written for other models

    def told(self, report: ImportReport, given: Mapping[str, Any]) -> ImportReport:
        """The report that says which of its answers are kept ones, and not `given` anew."""
        said = say("Your answer, kept in {file}.", file=self.file)
        used = {one.name for one in report.fields if one.how == "answered" and one.name in {*self.answers} - {*given}}
        fields = tuple(replace(one, evidence=said) if one.name in used else one for one in report.fields)
        return replace(report, fields=fields, notes=(*report.notes, *self.unused), unused_answers=self.unused)


def paths_of(source: Path) -> list[Path]:
    """Where the answers of a file or folder may be kept, usual places first; in a folder under any name."""
    if source.is_dir():
        names = ("model", own := model_of(source) or "model", f"{own}.own")
        return [*sorted(source.glob(f"*{ENDING}")), *(source / f"{name}{ENDING}" for name in names)]
    bare = source
    while bare.suffix.lower() in _ENDINGS:  # an upload is called `model.pt.safetensors`
        bare = bare.with_suffix("")
    return [source.with_name(name + ENDING) for name in (bare.name, source.name, f"{source.name}.own")]


def read(source: Path, *, inside: Path | None = None) -> KeptAnswers:
    """The answers that are kept for a file or folder; a `CheckpointError` where their file is damaged."""
    own, others = _own(source, inside)
    answers = {name: value for name, value in _content(own, inside).items() if name != WRITTEN_FOR}
    unused = [
        say(
            "The answers in {file} are not used, as they were written for {other}. If they are right for this "
            "model, too, copy them into {own} without the line {key}.",
            file=path.name,
            other=str(other),
            own=own.name,
            key=WRITTEN_FOR,
        )
        for path, other in others.items()
    ]
    return KeptAnswers(own.name, answers, () if answers else tuple(unused))


def not_asked(name: str, value: Any) -> Sentence:
    """What is wrong with an answer that nothing asks for, as a clause: it would have no effect."""
    return say(
        "{field}: the answer {found} is not needed, because nothing asks for this field; remove the answer",
        field=name,
        found=shown(value),
    )


def write(source: Path, answers: Mapping[str, Any]) -> Path:
    """Keep answers of a file or folder, and return where; what was written for another model stays as it is."""
    path, _ = _own(source)
    write_whole(path, (json.dumps({WRITTEN_FOR: model_of(source), **answers}, indent=1) + "\n").encode())
    return path


def _own(source: Path, inside: Path | None = None) -> tuple[Path, dict[Path, Any]]:
    """Where a model's answers are, or may be written; and which places others' answers take, and whose."""
    paths = sorted(dict.fromkeys(paths_of(source)), key=lambda path: not path.is_file())
    there = {path: _content(path, inside).get(WRITTEN_FOR) for path in paths}
    others = {path: name for path, name in there.items() if name not in (None, model_of(source, inside))}
    return next((path for path in paths if path not in others), paths[-1]), others


def model_of(source: Path, inside: Path | None = None) -> str:
    """The name of the file that is meant by itself or by its folder; empty if the folder does not say."""
    name = source.name
    if source.is_dir():
        name = ""
        with suppress(CheckpointError):
            name = chosen(FolderFiles(source, inside=inside), source)
    kept, last = Path(name).stem, Path(name).suffix
    return kept if last == SUFFIXES[0] and Path(kept).suffix.lower() in _ENDINGS else name  # of an upload


def _content(path: Path, inside: Path | None = None) -> dict[str, Any]:
    """What a file of answers holds; nothing if it is not there."""
    files = FolderFiles(path.parent, inside=inside)
    answers = files.json(path.name, limit=MOST_BYTES) if files.has(path.name) else {}
    if not isinstance(answers, dict):
        raise CheckpointError(
            "{label}: expected answers by the names of fields, such as {example}; delete the file to answer anew.",
            label=files.label(path.name),
            example='{"n_heads": 4}',
        )
    return answers


NO_ANSWERS: Mapping[str, Any] = {}
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
    """The report with the answers, those to unknown fields at its end; an answer outside the choices is refused."""
    for field in report.fields:
        if field.name in answers and not field.is_assumed:
            with within(report.source):
                check_choice(field, answers[field.name])
    there = {field.name for field in report.fields}
    known = (one.answered(answers[one.name]) if one.name in answers else one for one in report.fields)
    new = (Field(name, "answered", value, YOU) for name, value in answers.items() if name not in there)
    return replace(report, fields=(*known, *new))


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
