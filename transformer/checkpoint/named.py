"""Checkpoints by name: `zh-en` and `reverse@1200` mean those that come along, whatever folder Python runs in."""

import os
from pathlib import Path

from transformer.errors import CheckpointError
from transformer.extensions import shipped
from transformer.files.atomic_saves import replaced
from transformer.files.untrusted_folder import as_typed


def names() -> list[str]:
    """The checkpoints that come along."""
    folder = shipped()
    return [] if folder is None else sorted(one.parent.name for one in folder.glob("*/config.json"))


def named(source: Path | str) -> Path:
    """The place that is meant: what is there, else the checkpoint of this name that comes along, else as it was."""
    place, folder = Path(source), shipped()
    if folder is None or place.parent not in (Path(), Path(folder.name)) or _is_there(place):
        return place
    return folder / place.name if _is_there(folder / place.name) else place


def check_name(place: Path) -> None:
    """A `CheckpointError` for a name without a folder that nothing has, with the names that come along."""
    if shipped() is None or place.parent != Path() or _is_there(place) or replaced(place):
        return
    raise CheckpointError(
        "{path}: there is no such file or folder, and no checkpoint of this name comes along; there are {names}.",
        path=as_typed(place, None),
        names=", ".join(names()),
    )


def _is_there(place: Path) -> bool:
    """Whether there is something of this name, or, for `reverse@1200`, a checkpoint that may have such a snapshot."""
    name = place.name.partition("@")[0]
    return os.path.lexists(place) or (name != "" and (place.parent / name).is_dir())
