"""List of checkpoints without loading them: the record `Entry`, the interface `Format`, file signatures.

Formats of extensions are listed, too, such as models of other programs; they are not opened. A broken folder is listed
with its fault, and so is one that a killed save left under a hidden name. Left out are other hidden folders, the state
of a running training (`*.training`), snapshots (`*.snapshots`), links that leave the root, and names that do not fit on
one line.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from transformer.checkpoint.free_memory import CPU, Device, Progress, silent
from transformer.checkpoint.snapshot_names import FOLDER, SnapshotInfo
from transformer.extensions import imported, provided
from transformer.files import atomic_saves
from transformer.files.atomic_saves import Version, version_now
from transformer.i18n import Sentence

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

Signature = tuple[Version, ...]
OWN: Final = "transformer.checkpoint.opening:FORMAT"  # of checkpoint folders


@dataclass(frozen=True)
class Entry:
    """One checkpoint folder, or one file or folder of another format."""

    name: str  # unique in the list: the folder's name, with a number if that occurs twice
    folder: Path  # where it is; it may be a file
    error: str | None  # why it cannot be loaded; None if no fault was found
    title: str  # its title in the card; its name if the card has none
    # The real path of the folder of checkpoints where it was found; `load` checks that it is still in there.
    root: Path
    language: str = ""  # the source language in its card; empty if it is not a language
    examples: tuple[str, ...] = ()  # the first of its card's examples
    gloss: str = ""  # what the first of them means in English
    code: str = ""  # code of that language, such as "en"; empty if there is none
    holds: str = "model"  # a checkpoint folder's; of another format, that one's word


@dataclass(frozen=True)
class LoadOptions:
    """How a model is opened; what each field means says `transformer.checkpoint.opening.load`."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    given: Any = None
    inside: Path | None = None
    progress: Progress = silent
    device: Device = CPU


class Format:
    """A format of files and folders: checkpoint folders, or one of an extension's `formats`; empty by default."""

    suffix: str = ""  # the ending that means it and no other format; "" if its files are known by what is in them

    def names(self) -> Iterable[str]:
        """The files whose change makes `look` say something else; "" is the folder itself."""
        return ("",)

    def moments(self, folder: Path, *, inside: Path | None) -> tuple[tuple[SnapshotInfo, ...], tuple[Sentence, ...]]:
        """The snapshots of a model's training, and a note on each that cannot be read."""
        return (), ()

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a list has a file; asked of all in a folder of checkpoints, which is `inside`, a real path."""
        return False

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry of a file or of a folder in this format; None if it is in another."""
        return None

    def takes(self, name: str, file: BinaryIO, size: int) -> bool:
        """Whether an uploaded file, open at its start, is kept as it is; raises what is wrong with it."""
        return False

    def reads(self, source: Path, *, inside: Path | None) -> bool:
        """Whether `load` opens it. Raises `CheckpointError` if that cannot be said."""
        return False

    def load(self, source: Path, how: LoadOptions) -> Checkpoint:
        """The model as a checkpoint; errors as of `transformer.checkpoint.opening.load`."""
        raise NotImplementedError


def own_format() -> Format:
    """That of checkpoint folders."""
    found: Format = imported(OWN)
    return found


class ListingCache:
    """What earlier calls found in folders, so unchanged ones need not be read again."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Path, str], tuple[Signature, Entry]] = {}


def listing(folders: Sequence[Path], *, seen: ListingCache | None = None) -> list[Entry]:
    """Look at every sub-folder of some folders, and at the files of other formats: an entry for each checkpoint.

    Folders that do not exist are skipped; the others keep their order, with entries sorted by name in each. `seen` is
    what earlier calls found, and is updated.
    """
    before = {} if seen is None else seen.entries
    entries: dict[tuple[Path, str], tuple[Signature, Entry]] = {}
    names: set[str] = set()
    for root in folders:
        for inside, folder in _candidates(root):
            name, number = folder.name, 1
            while name in names:
                number += 1
                name = f"{folder.name} ({number})"
            names.add(name)
            sign = signature(folder)
            known = before.get((folder, name))
            entry = known[1] if known and known[0] == sign else entry_at(folder, name, inside)
            entries[folder, name] = sign, entry
    if seen is not None:
        seen.entries = entries
    return [entry for _, entry in entries.values()]


def signature(folder: Path, names: Iterable[str] | None = None) -> Signature:
    """A value that changes when a file is changed or replaced.

    `names` are files in the folder, by default those that `entry_at` reads; "" is the folder itself, or a file.
    """
    return tuple(version_now(folder / name) for name in (own_format().names() if names is None else names))


def _candidates(root: Path) -> Iterator[tuple[Path, Path]]:
    """The real path of the root with each folder of a checkpoint (even if only in a hidden copy), then other files."""
    try:
        inside = root.resolve(strict=True)
        lost = {inside / name for name in atomic_saves.missing(inside)}
        there = sorted(inside.iterdir())
    except (OSError, ValueError, RuntimeError):
        return
    yield from ((inside, folder) for folder in sorted({*there, *lost}) if _is_of_a_checkpoint(folder, inside, lost))
    formats = provided("formats")
    yield from ((inside, file) for file in there if any(one.lists(file, inside) for one in formats))


def _is_of_a_checkpoint(folder: Path, inside: Path, lost: Collection[Path]) -> bool:
    try:
        # A folder that leads to the root or above it is not a checkpoint of its own.
        stays = folder in lost or (inside in folder.resolve(strict=True).parents and folder.is_dir())
    except (OSError, RuntimeError):  # a link to nowhere or in a circle
        return False
    left_out = folder.name.startswith(".") or folder.name.endswith((".training", FOLDER))
    return stays and not left_out and folder.name.isprintable()


def entry_at(place: Path, name: str, root: Path) -> Entry:
    """A checkpoint folder's entry; of what is none, that of the first format which finds no fault in it.

    It may be anywhere in the folder of checkpoints; both are real paths.
    """
    own = own_format().look(place, name, root)
    if own is not None and own.error is None:
        return own
    formats = provided("formats")
    meant = [one for one in formats if one.suffix and one.suffix == place.suffix]
    others = [entry for one in meant or formats if (entry := one.look(place, name, root)) is not None]
    return min([*others, own] if own is not None else others, key=lambda entry: entry.error is not None)
