"""A few texts that a model is tried with: pairs of source and target, or lines alone.

They come from a file or from what somebody typed: `source TAB target` a line, or only texts. Where a model has no
tokenizer, a text is a row of ids such as 12 7 5.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from transformer.errors import DataError, shown
from transformer.files import texts
from transformer.i18n import say_n

MOST_SAMPLES = 32
"""More lines are not read: those that are make a difference of 0.1 nats plain, and each costs time."""
MAX_BYTES, MAX_LINE = 1_000_000, 5_000


@dataclass(frozen=True)
class Samples:
    """What a model is tried with."""

    sources: tuple[str, ...]  # texts
    targets: tuple[str, ...] = ()  # what should come out, one for each source; empty if nobody knows

    def __len__(self) -> int:
        return len(self.sources)

    def only(self, places: range | list[int]) -> "Samples":
        """Some of them."""
        targets = tuple(self.targets[i] for i in places) if self.targets else ()
        return replace(self, sources=tuple(self.sources[i] for i in places), targets=targets)


def read_samples(path: Path) -> Samples:
    """Read the first lines of a file; DataError if it cannot be read, is not UTF-8, or as `samples_of` says."""
    content = texts.read(path, MAX_BYTES + 1)
    whole = content if len(content) <= MAX_BYTES else content[:MAX_BYTES].rpartition(b"\n")[0]
    return samples_of(texts.decoded(whole, label=str(path)), label=str(path))


def samples_of(text: str, *, label: str) -> Samples:
    """The first lines of a text, without empty ones.

    DataError if there are none, one is too long, has an empty half, or has more or fewer tabs than the first one.
    """
    rows: list[tuple[str, ...]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if len(rows) == MOST_SAMPLES:
            break
        if not line.strip():
            continue
        columns = tuple(column.strip() for column in line.split("\t"))
        _check(columns, len(rows[0]) if rows else len(columns), label=label, number=number, length=len(line))
        rows.append(columns)
    if not rows:
        raise DataError("{file}: contains no texts.", file=label)
    sources, *targets = zip(*rows, strict=True)
    return Samples(sources, *targets)


def _check(columns: tuple[str, ...], expected: int, *, label: str, number: int, length: int) -> None:
    if length > MAX_LINE:
        raise DataError(
            "{file}, line {number}: has {n:,} characters; the limit is {most:,}. Shorten it.",
            file=label,
            number=number,
            n=length,
            most=MAX_LINE,
        )
    if len(columns) > 2 or not all(columns):
        raise DataError(
            say_n(
                "{file}, line {number}: expected `source TAB target` or a text, found {n} column: {found}.",
                "{file}, line {number}: expected `source TAB target` or a text, found {n} columns: {found}.",
                len(columns),
                file=label,
                number=number,
                found=shown(columns),
            )
        )
    if len(columns) != expected:
        raise DataError(
            "{file}, line {number}: some lines are `source TAB target`, others contain only one text; use one form "
            "for all lines.",
            file=label,
            number=number,
        )
