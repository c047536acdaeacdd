"""Which checkpoints there are, without loading any: a look at each folder's config, header and card.

A broken folder is listed with what is wrong with it, and so is one that a killed save left under a hidden name. Other
hidden folders, the state of a running training (`*.training`), links that leave the root, and names that could not be
shown on one line are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.checkpoint import hidden, tensorfile
from transformer.checkpoint.agreement import check_tensors, expected_shapes, most_bytes
from transformer.checkpoint.card import MAX_BYTES as MAX_CARD
from transformer.checkpoint.card import read_card
from transformer.checkpoint.files import FolderFiles
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, MAX_TOKENIZER, TOKENIZER_NAMES, WEIGHTS, read_config
from transformer.errors import CheckpointError

Signature = tuple[tuple[int, ...], ...]
_LOOKED_AT = ("", CONFIG, WEIGHTS, CARD, *(name for names in TOKENIZER_NAMES.values() for name in names))


@dataclass(frozen=True)
class Entry:
    """One checkpoint folder.

    Attributes:
        name: Tells it from all others in the list; the folder's name, with a number where that occurs twice.
        folder: Where it is.
        error: Why it cannot be loaded, None if nothing was found.
        title: What its card calls it; its name if the card does not say.
        root: The real path of the folder of checkpoints that it was found in; `load` checks that it still is there.
    """

    name: str
    folder: Path
    error: str | None
    title: str
    root: Path


class Seen:
    """What was found in folders before, so that those which did not change need not be looked at again."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Path, str], tuple[Signature, Entry]] = {}


def listing(folders: Sequence[Path], *, seen: Seen | None = None) -> list[Entry]:
    """Look at every sub-folder of the given folders.

    Args:
        folders: Folders of checkpoint folders; those that do not exist are passed over.
        seen: What earlier calls found; it then holds what this one did.

    Returns:
        One entry a checkpoint, in the order of the folders, by name within each.
    """
    before = {} if seen is None else seen.entries
    entries: dict[tuple[Path, str], tuple[Signature, Entry]] = {}
    names: set[str] = set()
    for root in folders:
        for inside, folder in _sub_folders(root):
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


def signature(folder: Path) -> Signature:
    """What changes when somebody changes a file that `_look` reads, or puts another in its place."""
    return tuple(_version(folder / name) for name in _LOOKED_AT)


def _version(file: Path) -> tuple[int, ...]:
    try:
        found = file.stat()
    except (OSError, RuntimeError):
        return ()
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _sub_folders(root: Path) -> Iterator[tuple[Path, Path]]:
    """The real path of the root, and each folder of a checkpoint, be it only there in a hidden copy."""
    try:
        inside = root.resolve(strict=True)
        lost = {inside / name for name in hidden.missing(inside)}
        found = sorted({*inside.iterdir(), *lost})
    except (OSError, ValueError, RuntimeError):
        return
    for folder in found:
        try:
            # One that leads to the root or above it is no checkpoint of its own.
            stays = folder in lost or (inside in folder.resolve(strict=True).parents and folder.is_dir())
        except (OSError, RuntimeError):  # a link to nowhere or in a circle
            continue
        left_out = folder.name.startswith(".") or folder.name.endswith(".training")
        if stays and not left_out and folder.name.isprintable():
            yield inside, folder


def _look(folder: Path, name: str, root: Path) -> Entry:
    try:
        files = FolderFiles(folder, inside=root)
        title = _title(files)
    except CheckpointError as error:
        return Entry(name, folder, error.sentence, name, root)
    try:
        _check(files)
    except CheckpointError as error:
        return Entry(name, folder, error.sentence, title or name, root)
    return Entry(name, folder, None, title or name, root)


def _title(files: FolderFiles) -> str:
    if not files.has(CARD):
        return ""
    try:
        card, _ = read_card(files.read(CARD, limit=MAX_CARD))
    except CheckpointError:
        return ""  # a card is for people; loading warns of it
    return card.title


def _check(files: FolderFiles) -> None:
    """What can be found wrong without reading parameters or trying tokenizers out."""
    config, _ = read_config(files.read(CONFIG, limit=MAX_CONFIG), label=files.label(CONFIG))
    for name in TOKENIZER_NAMES[1 if config.shared_vocab else 2]:
        files.check_size(name, limit=MAX_TOKENIZER)
    files.check_size(WEIGHTS, limit=most_bytes(config))
    with files.open(WEIGHTS) as (file, size):
        most = len(expected_shapes(config))
        header = tensorfile.read_header(file, size, label=files.label(WEIGHTS), most=most)
    check_tensors(config, header, label=files.label(WEIGHTS))
