"""The state of a training on disk: what `--resume` goes on from.

It lies beside the checkpoint folder, in `<name>.training/state.pt`, as it is for the trainer alone: float32
parameters, the optimizer's moments, the rows so far, the vocabularies, and what the training was started with.
"""

import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import torch

from transformer.errors import DataError
from words import joined, say


def write_state(out: Path, state: Mapping[str, object]) -> None:
    """Replace the state that belongs to the checkpoint folder `out`."""
    path = _path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    torch.save(dict(state), partial)
    os.replace(partial, path)


def read_state(out: Path, identity: Mapping[str, str]) -> dict[str, object]:
    """Read the state that belongs to the checkpoint folder `out`.

    Args:
        out: The checkpoint folder.
        identity: What the training that goes on was started with, by name; the state holds its own under "job".

    Raises:
        DataError: There is none, it is damaged, or it belongs to another training; names the differences.
    """
    path = _path(out)
    if not path.exists():
        raise DataError("{file}: nothing to resume; leave out --resume to start anew.", file=str(path))
    try:
        state: dict[str, object] = torch.load(path, weights_only=True, map_location="cpu")
        before: dict[str, str] = state["job"]  # type: ignore[assignment]
    except (OSError, RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError):
        raise DataError(
            "{file}: damaged or of another version; leave out --resume to start anew.", file=str(path)
        ) from None
    names = (*before, *(name for name in identity if name not in before))
    none = say("none")
    changed = [
        say("{name} was {before}, is {now}", name=name, before=before.get(name, none), now=identity.get(name, none))
        for name in names
        if before.get(name) != identity.get(name)
    ]
    if changed:
        raise DataError(
            "{file} belongs to another training: {changes}.", file=str(path), changes=joined("; ", changed)
        )
    return state


def has_state(out: Path) -> bool:
    """Whether there is a state to go on from."""
    return _path(out).exists()


def _path(out: Path) -> Path:
    return out.with_name(out.name + ".training") / "state.pt"
