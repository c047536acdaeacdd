"""A made-up task that a tiny model learns perfectly: write a sequence of letters backwards."""

import random
import string
from pathlib import Path

SHORTEST, LONGEST = 2, 12


def write_reverse(folder: Path, *, train: int = 60_000, dev: int = 500, test: int = 1_000, seed: int = 1) -> None:
    """Write train.tsv, dev.tsv and test.tsv with `letters TAB srettel` lines; no sequence occurs twice.

    Args:
        folder: Where to write; made if it is missing.
        train, dev, test: Number of lines of each file.
        seed: Decides the letters.
    """
    rng = random.Random(seed)
    seen: dict[str, None] = {}
    while len(seen) < train + dev + test:
        length = rng.randint(SHORTEST, LONGEST)
        seen["".join(rng.choices(string.ascii_lowercase, k=length))] = None
    letters = list(seen)
    folder.mkdir(parents=True, exist_ok=True)
    # Dev and test are drawn from all lengths alike: the many that are only two letters long come early.
    rng.shuffle(letters)
    for name, rows in (("dev", letters[:dev]), ("test", letters[dev : dev + test]), ("train", letters[dev + test :])):
        text = "".join(f"{row}\t{row[::-1]}\n" for row in rows)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
