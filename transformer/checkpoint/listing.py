"""List checkpoints without loading them: from each folder's config, header and card.

Files of attention maps (`.npz`) next to the folders are listed, too, and so are models of other programs (see
`transformer.checkpoint.foreign`), which are not opened.

A broken folder is listed with its fault, and so is one that a killed save left under a hidden name. Left out are
other hidden folders, the state of a running training (`*.training`), snapshots (`*.snapshots`), links that leave the
root, and names that do not fit on one line.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transformer.checkpoint import snapshots
from transformer.checkpoint.agreement import check_tensors, expected_shapes, most_bytes
from transformer.checkpoint.card import MAX_BYTES as MAX_CARD
from transformer.checkpoint.card import Card, read_card
from transformer.checkpoint.foreign import is_foreign_file, is_foreign_folder, is_marians, why_unopened
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, WEIGHTS, read_config
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES, tokenizer_files
from transformer.errors import CheckpointError, GlassformerError
from transformer.files import hidden, tensorfile
from transformer.files.files import FolderFiles, as_typed
from transformer.files.kinds import UNPACK
from transformer.maps.npzfile import SUFFIX, check_maps
from transformer.text.vocabularies import FILE_NAMES, VOCABULARY
from words import say

Signature = tuple[tuple[int, ...], ...]
MOST_EXAMPLES = 4  # of each folder, as a list may have thousands
LONGEST_EXAMPLE = 200
_OWN = (name for names in TOKENIZER_NAMES.values() for name in names)
_LOOKED_AT = ("", CONFIG, WEIGHTS, CARD, *_OWN, VOCABULARY, *sorted(FILE_NAMES))


@dataclass(frozen=True)
class Entry:
    """One checkpoint folder, one file of maps, or one file or folder of another program."""

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
    # A model, given maps, or a file of another program, which may or may not be a model.
    holds: Literal["model", "maps", "foreign"] = "model"


class Seen:
    """What earlier calls found in folders, so unchanged ones need not be read again."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Path, str], tuple[Signature, Entry]] = {}


def listing(folders: Sequence[Path], *, seen: Seen | None = None) -> list[Entry]:
    """Look at every sub-folder of some folders, and at their files of maps and weights: an entry for each checkpoint.

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


def signature(folder: Path, names: Iterable[str] = _LOOKED_AT) -> Signature:
    """A value that changes when a file is changed or replaced.

    `names` are files in the folder, by default those that `_look` reads; "" is the folder itself, or a file.
    """
    return tuple(_version(folder / name) for name in names)


def _version(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except (OSError, RuntimeError):
        return ()
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _candidates(root: Path) -> Iterator[tuple[Path, Path]]:
    """The real path of the root with each folder of a checkpoint, then with each file called as maps or weights are.

    A checkpoint may be only there in a hidden copy.
    """
    try:
        inside = root.resolve(strict=True)
        lost = {inside / name for name in hidden.missing(inside)}
        there = sorted(inside.iterdir())
    except (OSError, ValueError, RuntimeError):
        return
    yield from ((inside, folder) for folder in sorted({*there, *lost}) if _is_of_a_checkpoint(folder, inside, lost))
    for file in there:
        maps = file.suffix == SUFFIX and not file.name.startswith(".") and file.name.isprintable()
        if (maps and not file.is_dir()) or _is_foreign(file, inside):
            yield inside, file


def _is_of_a_checkpoint(folder: Path, inside: Path, lost: Collection[Path]) -> bool:
    try:
        # One that leads to the root or above it is no checkpoint of its own.
        stays = folder in lost or (inside in folder.resolve(strict=True).parents and folder.is_dir())
    except (OSError, RuntimeError):  # a link to nowhere or in a circle
        return False
    left_out = folder.name.startswith(".") or folder.name.endswith((".training", snapshots.FOLDER))
    return stays and not left_out and folder.name.isprintable()


def _is_foreign(file: Path, inside: Path) -> bool:
    """Whether a file is called as weights are, or is another model, and stays in its folder."""
    try:
        return (is_foreign_file(file) or why_unopened(file) not in (None, UNPACK)) and inside in file.resolve(
            strict=True
        ).parents
    except (OSError, RuntimeError):
        return False


def _look_at_arrays(file: Path, name: str, root: Path) -> Entry:
    try:
        files = FolderFiles(root, inside=root)
        with files.open(file.name) as (content, size):
            if is_marians(content, size):
                return Entry(name, file, None, name, root, holds="foreign")
            title = check_maps(content, size, label=files.label(file.name))
    except GlassformerError as error:
        return Entry(name, file, error.sentence, name, root, holds="maps")
    return Entry(name, file, None, title or name, root, holds="maps")


def _look(folder: Path, name: str, root: Path) -> Entry:
    if folder.suffix == SUFFIX and not folder.is_dir():
        return _look_at_arrays(folder, name, root)
    if not folder.is_dir() and is_foreign_file(folder):
        return Entry(name, folder, None, name, root, holds="foreign")
    if (problem := why_unopened(folder)) is not None:
        said = say("{label}: {problem}", label=as_typed(folder, root), problem=problem)
        return Entry(name, folder, said, name, root, holds="foreign")
    try:
        files = FolderFiles(folder, inside=root)
        card = card_of(files)
    except CheckpointError as error:
        return Entry(name, folder, error.sentence, name, root)
    try:
        _check(files)
    except CheckpointError as error:
        if is_foreign_folder(files, folder):
            return Entry(name, folder, None, name, root, holds="foreign")
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
