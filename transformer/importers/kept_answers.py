"""Answers that are kept beside the model that they open: those of `model.pt` are in `model.answers.json`.

`import` and `doctor` write them once the model opens with them. Whatever opens the model reads them, and its report
says so. An answer that is given anew counts more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from transformer.checkpoint.foreign import SUFFIXES
from transformer.errors import CheckpointError
from transformer.files.files import FolderFiles
from transformer.importers.report import ImportReport
from words import say

ENDING: Final = ".answers.json"
MOST_BYTES: Final = 64_000


@dataclass(frozen=True)
class Kept:
    """Answers that are kept; none if there is no file."""

    file: str  # its name
    answers: Mapping[str, Any]  # by the names of the fields

    def told(self, report: ImportReport, given: Mapping[str, Any]) -> ImportReport:
        """The report that says which of its answers are kept ones, and not `given` anew."""
        said = say("Your answer, kept in {file}.", file=self.file)
        used = {one.name for one in report.fields if one.how == "answered" and one.name in {*self.answers} - {*given}}
        fields = tuple(replace(one, evidence=said) if one.name in used else one for one in report.fields)
        return replace(report, fields=fields)


def path_of(source: Path) -> Path:
    """Where the answers of a file or folder are kept; in a folder under any name."""
    if source.is_dir():
        return min(source.glob(f"*{ENDING}"), default=source / f"model{ENDING}")
    bare = source.with_suffix("")
    while bare.suffix.lower() in SUFFIXES:  # an upload is called `model.pt.safetensors`
        bare = bare.with_suffix("")
    return bare.with_name(bare.name + ENDING)


def read(source: Path, *, inside: Path | None = None) -> Kept:
    """The answers that are kept beside a file or folder; a `CheckpointError` where their file is damaged."""
    path = path_of(source)
    files = FolderFiles(path.parent, inside=inside)
    answers = files.json(path.name, limit=MOST_BYTES) if files.has(path.name) else {}
    if not isinstance(answers, dict):
        raise CheckpointError(
            "{label}: expected answers by the names of fields, such as {example}; delete the file to answer anew.",
            label=files.label(path.name),
            example='{"n_heads": 4}',
        )
    return Kept(path.name, answers)
