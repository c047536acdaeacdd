"""A made-up task that a tiny model learns perfectly: write a sequence of letters backwards."""

import random
import string
from pathlib import Path

from transformer.errors import DataError

SHORTEST, LONGEST = 2, 12


def write_reverse(folder: Path, *, train: int = 60_000, dev: int = 500, test: int = 1_000, seed: int = 1) -> None:
    """Write train.tsv, dev.tsv and test.tsv with `letters TAB srettel` lines; no sequence occurs twice.

    Args:
        folder: Where to write; made if it is missing.
        train, dev, test: Number of lines of each file.
        seed: Decides the letters.

    Raises:
        DataError: The folder cannot be written.
    """
    rng = random.Random(seed)
    seen: dict[str, None] = {}
    while len(seen) < train + dev + test:
        length = rng.randint(SHORTEST, LONGEST)
        seen["".join(rng.choices(string.ascii_lowercase, k=length))] = None
    letters = list(seen)
    # Dev and test are drawn from all lengths alike: the many that are only two letters long come early.
    rng.shuffle(letters)
    splits = {"dev": letters[:dev], "test": letters[dev : dev + test], "train": letters[dev + test :]}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in splits.items():
            text = "".join(f"{row}\t{row[::-1]}\n" for row in rows)
            (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(
            "{folder}: cannot be written ({reason}); --out is the folder for the files.",
            folder=str(folder),
            reason=error.strerror,
        ) from None
