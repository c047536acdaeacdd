"""The `Reader` that an importer extension implements, and cheap detection of other programs' models.

An extension's `readers` names a `Reader`. Only names, config.json and the end of a file of arrays are read, never a
pickle: listing must be cheap and run no code. `extensions.importers.library.opening` finds out what a file holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from transformer.extensions import provided
from transformer.files import kinds
from transformer.i18n import Sentence

if TYPE_CHECKING:
    from glassformer.extensions.importers.library.import_inputs import ImportRequest
    from glassformer.extensions.importers.library.report import Imported
    from glassformer.extensions.weight_files.weights import Weights


class Reader:
    """One family of them; each method does here what a reader does that has nothing to say."""

    keys: Collection[str] = frozenset()  # of a config.json, any of which means a folder of it
    files: Collection[str] = ()  # names of files that mean one, too

    def import_folder(self, folder: Path, asked: ImportRequest) -> Imported:
        """What a folder of it holds, and errors as of `opening.preview`."""
        raise NotImplementedError

    def import_weights(self, weights: Weights, asked: ImportRequest) -> Imported | None:
        """What open weights of it hold, from a file or folder; None where they are not of it."""
        return None

    def told(self) -> tuple[Sentence, str, Mapping[str, str]] | None:
        """What the page of checkpoints says of it: a paragraph, how one is saved, families with details."""
        return None


def readers() -> tuple[Reader, ...]:
    """Those of all extensions."""
    return provided("readers")


SUFFIXES = (".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".npz")
ARRAYS, SETTINGS = ".npz", ".yml"  # a file of arrays with settings beside it is Marian's; without, it may be of maps
_MARIANS = b"special:model.yml.npy"  # Marian's file of arrays lists this one; a file of maps never does
_END = 1_000_000  # bytes; the list of arrays ends the file, and Marian's options stand last in it


def is_foreign_file(file: Path) -> bool:
    """Whether a file has a name of weights, or begins like them; a hidden one is not listed."""
    if file.suffix not in SUFFIXES:
        return kinds.looked_at(file)[0] is not None
    known = file.suffix != ARRAYS or any(file.parent.glob(f"*{SETTINGS}"))
    return known and not file.name.startswith(".") and file.name.isprintable() and file.is_file()


def why_unopened(file: Path) -> Sentence | None:
    """What is said of a model in a format that does not open here; None of any other file."""
    return kinds.looked_at(file)[1] if file.suffix not in SUFFIXES else None


def is_marians(file: BinaryIO, size: int) -> bool:
    """Whether a file of arrays says that Marian wrote it; only its end is read, and nothing is parsed."""
    file.seek(max(0, size - _END))
    return _MARIANS in file.read(_END)
