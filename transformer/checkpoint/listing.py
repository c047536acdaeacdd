"""List checkpoints without loading them: from each folder's config, header and card.

What extensions have formats for is listed, too, such as models of other programs; it is not opened.

A broken folder is listed with its fault, and so is one that a killed save left under a hidden name. Left out are
other hidden folders, the state of a running training (`*.training`), snapshots (`*.snapshots`), links that leave the
root, and names that do not fit on one line.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.checkpoint import snapshots
from transformer.checkpoint.agreement import check_tensors, expected_shapes, most_bytes
from transformer.checkpoint.card import MAX_BYTES as MAX_CARD
from transformer.checkpoint.card import Card, read_card
from transformer.checkpoint.device import CPU, Device
from transformer.checkpoint.filling import Progress, silent
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, WEIGHTS, Checkpoint, read_config
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES, file_names, tokenizer_files
from transformer.errors import CheckpointError
from transformer.extensions import provided
from transformer.files import hidden, tensorfile
from transformer.files.files import FolderFiles

Signature = tuple[tuple[int, ...], ...]
MOST_EXAMPLES = 4  # of each folder, as a list may have thousands
LONGEST_EXAMPLE = 200
_OWN = (name for names in TOKENIZER_NAMES.values() for name in names)
_LOOKED_AT = ("", CONFIG, WEIGHTS, CARD, *_OWN)


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


class Format:
    """Another format of files and folders than a checkpoint folder's; the field `formats` of an extension names one.

    What the methods do here is what a format does that has nothing to say.
    """

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a list has a file; asked of all in a folder of checkpoints, which is `inside`, a real path."""
        return False

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry of a file or folder that is no checkpoint folder; None if it is not of this format."""
        return None

    def reads(self, source: Path, *, inside: Path | None) -> bool:
        """Whether `load` opens it. Raises `CheckpointError` if that cannot be said."""
        return False

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
        """The model as a checkpoint; arguments and errors as of `transformer.checkpoint.opening.load`."""
        raise NotImplementedError


class Seen:
    """What earlier calls found in folders, so unchanged ones need not be read again."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Path, str], tuple[Signature, Entry]] = {}


def listing(folders: Sequence[Path], *, seen: Seen | None = None) -> list[Entry]:
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
            entry = known[1] if known and known[0] == sign else _look(folder, name, inside)
            entries[folder, name] = sign, entry
    if seen is not None:
        seen.entries = entries
    return [entry for _, entry in entries.values()]


def entry_at(place: Path, name: str, root: Path) -> Entry:
    """The entry of one file or folder, anywhere in the folder of checkpoints; both are real paths."""
    return _look(place, name, root)


def signature(folder: Path, names: Iterable[str] | None = None) -> Signature:
    """A value that changes when a file is changed or replaced.

    `names` are files in the folder, by default those that `_look` reads; "" is the folder itself, or a file.
    """
    looked_at = (*_LOOKED_AT, *sorted(file_names())) if names is None else names
    return tuple(_version(folder / name) for name in looked_at)


def _version(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except (OSError, RuntimeError):
        return ()
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _candidates(root: Path) -> Iterator[tuple[Path, Path]]:
    """The real path of the root with each folder of a checkpoint, then with each file of another format.

    A checkpoint may be only there in a hidden copy.
    """
    try:
        inside = root.resolve(strict=True)
        lost = {inside / name for name in hidden.missing(inside)}
        there = sorted(inside.iterdir())
    except (OSError, ValueError, RuntimeError):
        return
    yield from ((inside, folder) for folder in sorted({*there, *lost}) if _is_of_a_checkpoint(folder, inside, lost))
    formats = provided("formats")
    yield from ((inside, file) for file in there if any(one.lists(file, inside) for one in formats))


def _is_of_a_checkpoint(folder: Path, inside: Path, lost: Collection[Path]) -> bool:
    try:
        # One that leads to the root or above it is no checkpoint of its own.
        stays = folder in lost or (inside in folder.resolve(strict=True).parents and folder.is_dir())
    except (OSError, RuntimeError):  # a link to nowhere or in a circle
        return False
    left_out = folder.name.startswith(".") or folder.name.endswith((".training", snapshots.FOLDER))
    return stays and not left_out and folder.name.isprintable()


def _look(place: Path, name: str, root: Path) -> Entry:
    """A checkpoint folder's entry; of what is none, that of the first format which finds no fault in it."""
    own = _look_at_folder(place, name, root)
    if own.error is None:
        return own
    others = [entry for one in provided("formats") if (entry := one.look(place, name, root)) is not None]
    return min([*others, own], key=lambda entry: entry.error is not None)


def _look_at_folder(folder: Path, name: str, root: Path) -> Entry:
    try:
        files = FolderFiles(folder, inside=root)
        card = card_of(files)
    except CheckpointError as error:
        return Entry(name, folder, error.sentence, name, root)
    try:
        _check(files)
    except CheckpointError as error:
        return Entry(name, folder, error.sentence, card.title or name, root)
    examples = tuple(example for example in card.tried() if len(example) <= LONGEST_EXAMPLE)[:MOST_EXAMPLES]
    language = card.source_language if card.source_code else ""
    gloss = card.glosses.get(examples[0], "") if examples else ""
    return Entry(name, folder, None, card.title or name, root, language, examples, gloss, card.source_code)


def card_of(files: FolderFiles) -> Card:
    """What the card of a folder says; nothing if there is none, or it cannot be read."""
    if not files.has(CARD):
        return Card()
    try:
        return read_card(files.read(CARD, limit=MAX_CARD))[0]
    except CheckpointError:
        return Card()  # a card is for people; loading warns of it


def _check(files: FolderFiles) -> None:
    """What can be found wrong without reading parameters or trying tokenizers out."""
    config, _ = read_config(files.read(CONFIG, limit=MAX_CONFIG), label=files.label(CONFIG))
    for name, limit in tokenizer_files(files, config).items():
        files.check_size(name, limit=limit)
    files.check_size(WEIGHTS, limit=most_bytes(config))
    with files.open(WEIGHTS) as (file, size):
        most = len(expected_shapes(config))
        header = tensorfile.read_header(file, size, label=files.label(WEIGHTS), most=most)
    check_tensors(config, header, label=files.label(WEIGHTS))
