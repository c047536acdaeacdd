"""Which checkpoints there are, without loading any: a look at each folder's config, header and card.

A broken folder is listed with what is wrong with it. Hidden folders, the state of a running training
(`*.training`), links that leave the root, and names that could not be shown on one line are left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.checkpoint import tensorfile
from transformer.checkpoint.agreement import check_tensors, most_bytes
from transformer.checkpoint.card import MAX_BYTES as MAX_CARD
from transformer.checkpoint.card import read_card
from transformer.checkpoint.files import FolderFiles
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, MAX_TOKENIZER, TOKENIZER_NAMES, WEIGHTS, read_config
from transformer.errors import CheckpointError


@dataclass(frozen=True)
class Entry:
    """One checkpoint folder.

    Attributes:
        name: Tells it from all others in the list; the folder's name, with a number where that occurs twice.
        folder: Where it is.
        error: Why it cannot be loaded, None if nothing was found.
        title: What its card calls it; its name if the card does not say.
    """

    name: str
    folder: Path
    error: str | None
    title: str


def listing(folders: Sequence[Path]) -> list[Entry]:
    """Look at every sub-folder of the given folders.

    Args:
        folders: Folders of checkpoint folders; those that do not exist are passed over.

    Returns:
        One entry a checkpoint, in the order of the folders, by name within each.
    """
    entries: list[Entry] = []
    names: set[str] = set()
    for root in folders:
        for folder in _sub_folders(root):
            name, number = folder.name, 1
            while name in names:
                number += 1
                name = f"{folder.name} ({number})"
            names.add(name)
            entries.append(_look(folder, name))
    return entries


def _sub_folders(root: Path) -> Iterator[Path]:
    try:
        inside = root.resolve(strict=True)
        found = sorted(inside.iterdir())
    except (OSError, ValueError, RuntimeError):
        return
    for folder in found:
        try:
            found_at = folder.resolve(strict=True)
            # One that leads to the root or above it is no checkpoint of its own.
            stays = found_at != inside and found_at.is_relative_to(inside) and folder.is_dir()
        except (OSError, RuntimeError):  # a link to nowhere or in a circle
            continue
        hidden = folder.name.startswith(".") or folder.name.endswith(".training")
        if stays and not hidden and folder.name.isprintable():
            yield folder


def _look(folder: Path, name: str) -> Entry:
    try:
        files = FolderFiles(folder)
        title = _title(files)
    except CheckpointError as error:
        return Entry(name, folder, error.sentence, name)
    try:
        _check(files)
    except CheckpointError as error:
        return Entry(name, folder, error.sentence, title or name)
    return Entry(name, folder, None, title or name)


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
        header = tensorfile.read_header(file, size, label=files.label(WEIGHTS))
    check_tensors(config, header, label=files.label(WEIGHTS))
