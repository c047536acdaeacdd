"""A checkpoint's card: the file given as `train --card`, and scores written into `card.json`.

A record is about one file under certain settings; writing it again replaces the earlier one. Everything else in the
card is unchanged. The new file is complete before it replaces the old one.

The card is read more strictly than on loading: what loading would skip with a warning is refused here, because it can
still be corrected.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer.checkpoint import card
from transformer.checkpoint.card import MAX_BYTES, MAX_ITEMS
from transformer.checkpoint.load import CARD, Checkpoint, load
from transformer.errors import ClauseError, DataError
from transformer.files import strictjson, untrusted_folder
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import say_n

Record = Mapping[str, Any]

# What makes two records be about the same thing; a field that is missing in both is equal.
IDENTITY = ("sha256", "measure", "decoding", "beam_size", "length_penalty", "max_pairs", "source", "target")


def record_scores(checkpoint: Checkpoint, records: Sequence[Record]) -> None:
    """Add records, each with its file's name and SHA-256, to the scores of a checkpoint's card.

    A `CheckpointError` if the card cannot be read; a `DataError` if the folder now holds another checkpoint, or its
    card cannot be extended or written.
    """
    if load(checkpoint.folder).content_hash != checkpoint.content_hash:
        raise DataError(
            "{model}: was replaced while it was being scored, so nothing was recorded. Score it again.",
            model=checkpoint.name,
        )
    card = read_open_card(checkpoint.folder)
    scores = merged(card.get("scores", []), records)
    if len(scores) > MAX_ITEMS:
        raise DataError(
            say_n(
                "{model}/{card}: would contain {n} score; the limit is {most}.",
                "{model}/{card}: would contain {n} scores; the limit is {most}.",
                len(scores),
                model=checkpoint.name,
                card=CARD,
                most=MAX_ITEMS,
            )
        )
    content = (json.dumps(card | {"scores": scores}, indent=2, ensure_ascii=False) + "\n").encode()
    if len(content) > MAX_BYTES:
        raise DataError(
            say_n(
                "{model}/{card}: would be {n:,} byte long; the limit is {most:,}.",
                "{model}/{card}: would be {n:,} bytes long; the limit is {most:,}.",
                len(content),
                model=checkpoint.name,
                card=CARD,
                most=MAX_BYTES,
            )
        )
    try:
        _replace(checkpoint.folder / CARD, content)
    except OSError as error:
        file = f"{checkpoint.name}/{CARD}"
        raise DataError("{file}: cannot be written ({reason}).", file=file, reason=error.strerror) from None


def read_open_card(folder: Path) -> dict[str, Any]:
    """Read every field of a card; empty if there is no card.

    A `CheckpointError` if it is unreadable or too large; a `DataError` if it is not a JSON object, or its scores are
    not a list: adding to it would lose something.
    """
    there = FolderFiles(folder)
    if not there.has(CARD):
        return {}
    content = there.read(CARD, limit=MAX_BYTES)
    try:
        card = strictjson.parse(content)
    except ClauseError as error:
        raise DataError(
            "{label}: {problem}; correct this file before you record scores.",
            label=there.label(CARD),
            problem=error.sentence,
        ) from None
    if not isinstance(card, dict) or not isinstance(card.get("scores", []), list):
        raise DataError(
            "{label}: expected a JSON object in which scores is a list; correct this file first.",
            label=there.label(CARD),
        )
    return card


def merged(earlier: Iterable[Any], records: Sequence[Record]) -> list[Any]:
    """The earlier scores with the new ones: each replaces the earlier one in place, or is appended."""
    scores = list(earlier)
    for record in records:
        places = [i for i, old in enumerate(scores) if isinstance(old, Mapping) and _about(old) == _about(record)]
        if places:
            scores[places[0]] = dict(record)
            scores = [old for i, old in enumerate(scores) if i not in places[1:]]
        else:
            scores.append(dict(record))
    return scores


def _about(record: Record) -> list[Any]:
    return [record.get(name) for name in IDENTITY]


def _replace(path: Path, content: bytes) -> None:
    """Write a file next to the old one, flush it to disk, and rename it over the old one."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o644)  # mkstemp made it private
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


MOST_CARD = card.MAX_BYTES // 4  # of --card; written with indents and with what training adds it is larger


def read_card(path: Path | None) -> dict[str, object]:
    """What the file given as --card says; a `DataError` where loading the checkpoint would leave some of it out."""
    if path is None:
        return {}
    content = untrusted_folder.read_start(path, MOST_CARD + 1)
    if len(content) > MOST_CARD:
        raise DataError("{file}: is longer than {most:,} bytes; shorten it.", file=str(path), most=MOST_CARD)
    _, problems = card.read_card(content)
    if problems:
        raise DataError("{file}: cannot be used as a checkpoint's card. {problem}", file=str(path), problem=problems[0])
    given: dict[str, object] = strictjson.parse(content)
    return given
