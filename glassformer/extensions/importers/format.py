"""Other programs' models among checkpoints: which files and folders are listed, and loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from glassformer.extensions.importers.library import opening
from glassformer.extensions.importers.library.import_inputs import NOTHING
from glassformer.extensions.importers.library.readers import (
    ARRAYS,
    is_foreign_file,
    is_foreign_folder,
    is_marians,
    why_unopened,
)
from transformer.checkpoint.free_memory import CPU, Device, Progress, silent
from transformer.checkpoint.listing import Entry, Format
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.files.kinds import UNPACK
from transformer.files.untrusted_folder import FolderFiles, as_typed
from transformer.i18n import say

HOLDS = "foreign"  # it may or may not be a model


class ForeignFormat(Format):
    """Folders of Hugging Face's, and files of weights."""

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a file is called as weights are, or is another model, and stays in its folder."""
        try:
            known = is_foreign_file(file) or why_unopened(file) not in (None, UNPACK)
            return known and inside in file.resolve(strict=True).parents
        except (OSError, RuntimeError):
            return False

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry, with an error where such a format does not open here."""
        if (problem := why_unopened(place)) is not None:
            said = say("{label}: {problem}", label=as_typed(place, root), problem=problem)
            return Entry(name, place, said, name, root, holds=HOLDS)
        try:
            found = _is_foreign(place, root)
        except GlassformerError:
            return None
        return Entry(name, place, None, name, root, holds=HOLDS) if found else None

    def reads(self, source: Path, *, inside: Path | None) -> bool:
        """Whether it comes from another program."""
        return opening.kind_of(source, inside=inside)[0] != "native"

    def load(
        self,
        source: Path,
        *,
        answers: Mapping[str, Any],
        given: Any,
        inside: Path | None,
        progress: Progress = silent,
        device: Device = CPU,
    ) -> Checkpoint:
        """The model that it is understood to be."""
        return opening.load(
            source, answers=answers, given=given or NOTHING, inside=inside, progress=progress, device=device
        )


def _is_foreign(place: Path, root: Path) -> bool:
    if place.is_dir():
        return is_foreign_folder(FolderFiles(place, inside=root), place)
    if place.suffix != ARRAYS:
        return is_foreign_file(place)
    with FolderFiles(root, inside=root).open(place.name) as (content, size):
        return is_marians(content, size)


FORMAT = ForeignFormat()
