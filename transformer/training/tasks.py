"""A made-up task that a tiny model learns perfectly: write a sequence of letters backwards."""

import os
import random
import string
from collections.abc import Mapping
from pathlib import Path

from transformer.errors import DataError
from words import say

SHORTEST, LONGEST = 2, 12


def write_reverse(folder: Path, *, train: int = 60_000, dev: int = 500, test: int = 1_000, seed: int = 1) -> None:
    """Write train.tsv, dev.tsv and test.tsv with `letters TAB srettel` lines; no sequence occurs twice.

    The folder is made if it is missing. A `DataError` where it has other files of these names, or cannot be written
    to.
    """
    rng = random.Random(seed)
    seen: dict[str, None] = {}
    while len(seen) < train + dev + test:
        length = rng.randint(SHORTEST, LONGEST)
        seen["".join(rng.choices(string.ascii_lowercase, k=length))] = None
    letters = list(seen)
    # Dev and test are drawn from all lengths alike: the many that are only two letters long come early.
    rng.shuffle(letters)
    parts = {"dev": letters[:dev], "test": letters[dev : dev + test], "train": letters[dev + test :]}
    texts = {f"{name}.tsv": "".join(f"{row}\t{row[::-1]}\n" for row in rows) for name, rows in parts.items()}
    try:
        _write(folder, {name: text.encode() for name, text in texts.items()})
    except OSError as error:
        raise DataError(
            "{folder}: cannot be written ({reason}).",
            folder=str(folder),
            reason=error.strerror or say("unknown reason"),
        ) from None


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the files that are not there; one of other content is somebody else's."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in contents if not os.path.lexists(folder / name)]
    for name in contents.keys() - missing:
        if (folder / name).read_bytes() != contents[name]:
            raise DataError(
                "{file}: already exists with different content; choose another folder.", file=str(folder / name)
            )
    for name in missing:
        partial = folder / f".{name}.partial"
        partial.write_bytes(contents[name])
        os.replace(partial, folder / name)
