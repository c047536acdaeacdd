"""Made-up tasks that a tiny model learns perfectly.

reverse, sort, copy    glass -> ssalg, aglss, glass
addition               47+385= -> 432; for a decoder-only model a prompt and its continuation
palindrome             a text without a target, such as redder: each hidden letter follows from another one
"""

import os
import random
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from transformer.errors import DataError
from transformer.i18n import say

SHORTEST, LONGEST = 2, 12
DIGITS = 3  # of a summand at most
FEW = 4  # letters that a palindrome is made of


@dataclass(frozen=True)
class Task:
    """How its examples are made."""

    draw: Callable[[random.Random], str]  # what is given
    solve: Callable[[str], str] | None  # its target; None for a text alone
    train: int = 60_000  # lines to learn from

    def line(self, given: str) -> str:
        """The line of a file."""
        return f"{given}\n" if self.solve is None else f"{given}\t{self.solve(given)}\n"


def _letters(rng: random.Random) -> str:
    length = rng.randint(SHORTEST, LONGEST)
    return "".join(rng.choices(string.ascii_lowercase, k=length))


def _sum(rng: random.Random) -> str:
    """Two numbers; one to three digits are equally likely."""
    sizes = [10 ** rng.randint(1, DIGITS) for _ in range(2)]
    first, second = (rng.randrange(0 if size == 10 else size // 10, size) for size in sizes)
    return f"{first}+{second}="


def _palindrome(rng: random.Random) -> str:
    """Of even length: a single middle letter would follow from nothing.

    Its few letters often occur twice, so the hidden one follows only from its position, not as the odd one out.
    """
    letters = rng.sample(string.ascii_lowercase, FEW)
    half = "".join(rng.choices(letters, k=rng.randint(SHORTEST, LONGEST // 2)))
    return half + half[::-1]


TASKS: Final[Mapping[str, Task]] = {
    "reverse": Task(_letters, lambda row: row[::-1]),
    "sort": Task(_letters, lambda row: "".join(sorted(row))),
    "copy": Task(_letters, lambda row: row),
    # Few enough that the hundred sums of two digits count for something.
    "addition": Task(_sum, lambda row: str(sum(map(int, row.rstrip("=").split("+")))), train=30_000),
    "palindrome": Task(_palindrome, None),
}


def write_reverse(folder: Path, *, train: int = 60_000, dev: int = 500, test: int = 1_000, seed: int = 1) -> None:
    """The files of the task "reverse"; see `write_task`."""
    write_task("reverse", folder, train=train, dev=dev, test=test, seed=seed)


def write_task(
    name: str, folder: Path, *, train: int | None = None, dev: int = 500, test: int = 1_000, seed: int = 1
) -> None:
    """Write train.tsv, dev.tsv and test.tsv of a task: `given TAB target` lines, or texts; nothing is given twice.

    `train` is the number of training lines, None for the task's default. The folder is made if it is missing. A
    `DataError` if it has other files of these names, or cannot be written.
    """
    task, rng = TASKS[name], random.Random(seed)
    n_lines = (task.train if train is None else train) + dev + test
    seen: dict[str, None] = {}
    while len(seen) < n_lines:
        seen[task.draw(rng)] = None
    given = list(seen)
    # Dev and test are drawn from all lengths alike: the many that are only two letters long come early.
    rng.shuffle(given)
    parts = {"dev": given[:dev], "test": given[dev : dev + test], "train": given[dev + test :]}
    texts = {f"{part}.tsv": "".join(map(task.line, rows)) for part, rows in parts.items()}
    try:
        _write(folder, {name: text.encode() for name, text in texts.items()})
    except OSError as error:
        raise DataError(
            "{folder}: cannot be written ({reason}).",
            folder=str(folder),
            reason=error.strerror or say("unknown reason"),
        ) from None


def _write(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write the missing files; refuse one with other content."""
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
