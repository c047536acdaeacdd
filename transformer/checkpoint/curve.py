"""The learning curve of a checkpoint: its `training.csv`, one row per epoch.

Columns (see `extensions.training.library.state.Row`): epoch, step (optimizer steps so far), loss and dev_loss
(nats per target piece), dev_bleu and dev_chrf (0 to 100), dev_exact (share of outputs equal to their reference, 0 to
1; or in an encoder-only model, whose BLEU and chrF say nothing, of hidden pieces guessed right), learning_rate,
tokens (target pieces so far), seconds (so far). Older files lack some of them.

The file is for people, so errors in it are tolerated: an unreadable number is a gap, and unknown columns are skipped.
It does not know which epoch a checkpoint holds; the card does.
"""

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformer.checkpoint.save import CURVE
from transformer.errors import ClauseError, shown, within
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import say, say_n

MAX_BYTES = 1_000_000
MAX_ROWS = 5_000
NUMBERS = (
    "step", "loss", "dev_loss", "dev_bleu", "dev_chrf", "dev_exact", "learning_rate", "tokens", "seconds",
)  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """A learning curve."""

    epochs: tuple[int, ...]  # number of each row's epoch, increasing
    # The other numbers by column, one per row, NaN where the file has none; only columns with a number.
    columns: Mapping[str, tuple[float, ...]]
    notes: tuple[str, ...] = ()  # A sentence for each thing that was odd

    def best_epoch(self) -> int | None:
        """The epoch that training keeps: highest dev BLEU, then chrF, then lowest dev loss; None without scores."""
        signs = {"dev_bleu": 1.0, "dev_chrf": 1.0, "dev_loss": -1.0}
        there = [
            [-math.inf if math.isnan(value) else sign * value for value in self.columns[name]]
            for name, sign in signs.items()
            if name in self.columns
        ]
        qualities = list(zip(*there, strict=True))
        return self.epochs[qualities.index(max(qualities))] if qualities else None


def load_curve(folder: Path, *, inside: Path | None = None) -> Curve | None:
    """Read the `training.csv` of a checkpoint folder; None if it has none.

    `inside` is the real path of a folder that no link may leave; None for no such limit. A CheckpointError if the file
    is too large, or holds no learning curve.
    """
    files = FolderFiles(folder, inside=inside)
    if not files.has(CURVE):
        return None
    return read_curve(files.read(CURVE, limit=MAX_BYTES), label=files.label(CURVE))


def read_curve(content: bytes, *, label: str = CURVE) -> Curve:
    """The learning curve in the bytes of training.csv, at most `MAX_BYTES`; a CheckpointError if they hold none."""
    with within(label):
        header, rows = _table(content)
        known = {name: place for place, name in enumerate(header) if name in NUMBERS}
        if not known:
            raise ClauseError(
                "has no column that can be plotted; found {found}, expected at least one of {expected}, and "
                "optionally epoch",
                found=shown(", ".join(header)),
                expected=", ".join(NUMBERS),
            )
        if not rows:
            raise ClauseError("has no rows yet; each epoch of training adds one")
        if len(rows) > MAX_ROWS:
            raise ClauseError(
                "has {n:,} row, one per epoch; the limit is {most:,}",
                "has {n:,} rows, one per epoch; the limit is {most:,}",
                len(rows),
                most=MAX_ROWS,
            )
        epochs, notes = _epochs(header, rows)
        columns = {name: tuple(_number(row, place) for row in rows) for name, place in known.items()}
        gaps = sum(math.isnan(value) for values in columns.values() for value in values)
        if gaps:
            notes.append(
                say_n(
                    "{n} number in {file} is missing, NaN or infinite; the curves have gaps there.",
                    "{n:,} numbers in {file} are missing, NaN or infinite; the curves have gaps there.",
                    gaps,
                    file=CURVE,
                )
            )
        if any(value > 0 for value in columns.get("dev_exact", ())) and not any(columns.get("dev_chrf", (1.0,))):
            # An output that equals its reference has a chrF, so none was written: this model is encoder-only.
            columns = {name: values for name, values in columns.items() if name not in ("dev_bleu", "dev_chrf")}
        columns = {name: values for name, values in columns.items() if not all(map(math.isnan, values))}
        if not columns:
            raise ClauseError("has no numbers that can be plotted")
        return Curve(epochs, columns, tuple(notes))


def _table(content: bytes) -> tuple[list[str], list[list[str]]]:
    """The header and the rows that are not empty."""
    try:
        text = content.decode("utf-8-sig")
        lines = [row for row in csv.reader(io.StringIO(text, newline="")) if any(cell.strip() for cell in row)]
    except (UnicodeDecodeError, csv.Error):
        raise ClauseError("is not comma-separated text (CSV) in UTF-8") from None
    if not lines:
        raise ClauseError("has no rows yet; each epoch of training adds one")
    return [name.strip() for name in lines[0]], lines[1:]


def _epochs(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], list[str]]:
    """The epochs; rows that do not say them, or not in order, are numbered."""
    numbered = tuple(range(1, len(rows) + 1))
    if "epoch" not in header:
        return numbered, [say("{file} has no epoch column; its rows are numbered instead.", file=CURVE)]
    found = [_number(row, header.index("epoch")) for row in rows]
    whole = all(math.isfinite(value) and value == int(value) and 0 <= value < 1e9 for value in found)
    if not whole or any(after <= before for before, after in itertools.pairwise(found)):
        note = say("The epochs in {file} are not increasing whole numbers; its rows are numbered instead.", file=CURVE)
        return numbered, [note]
    return tuple(map(int, found)), []


def _number(row: Sequence[str], place: int) -> float:
    """A cell as a finite number; NaN if it is none."""
    try:
        value = float(row[place])
    except (ValueError, IndexError):
        return math.nan
    return value if math.isfinite(value) else math.nan
