"""Files and folders of other programs that extensions read, beside weights of anybody's own code.

An extension's `readers` names a `Reader`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer.extensions import provided
from transformer.files.files import FolderFiles
from transformer.i18n import Sentence

if TYPE_CHECKING:
    from glassformer.extensions.importers.library.handed_pieces import Given
    from glassformer.extensions.importers.library.imported import Imported
    from glassformer.extensions.weight_files.library.weights import Weights


class Reader:
    """One family of them; each method does here what a reader does that has nothing to say."""

    keys: Collection[str] = frozenset()  # of a config.json, any of which means a folder of it
    files: Collection[str] = ()  # names of files that mean one, too

    def import_folder(self, folder: Path, *, answers: Mapping[str, Any], also: Given, inside: Path | None) -> Imported:
        """What a folder of it holds; arguments and errors as of `opening.preview`."""
        raise NotImplementedError

    def import_weights(
        self,
        weights: Weights,
        open_again: Callable[[], AbstractContextManager[Weights]],
        *,
        source: Path,
        answers: Mapping[str, Any],
        also: Given,
        inside: Path | None,
    ) -> Imported | None:
        """What open weights of it hold, from a file or folder; None where they are not of it."""
        return None

    def told(self) -> tuple[Sentence, str, Mapping[str, str]] | None:
        """What the page of checkpoints says of it: a paragraph, how one is saved, families with details."""
        return None


def readers() -> tuple[Reader, ...]:
    """Those of all extensions."""
    return provided("readers")


def by_file(files: FolderFiles) -> Reader | None:
    """The reader of a folder that has a file which only folders of it have."""
    return next((one for one in readers() if any(map(files.has, one.files))), None)


def by_keys(keys: Collection[str]) -> Reader | None:
    """The reader of a folder whose config.json has these keys."""
    return next((one for one in readers() if any(key in one.keys for key in keys)), None)
