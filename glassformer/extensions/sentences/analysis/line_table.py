"""The results of many lines as a table: its columns, a summary of all lines, and the table as a CSV file.

Missing values (the chrF of an output without a reference, everything about a line that could not be run) are empty.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.extensions.sentences.analysis.many import LineResult
from transformer.analysis.chrf import chrf, together
from transformer.text.cells import cell


@dataclass(frozen=True)
class Summary:
    """A summary of all lines; None for what no line has."""

    n: int  # lines
    n_failed: int  # of them, those that could not be run
    chrf: float | None  # of all outputs that have a reference, their counts added up, 0 to 100
    log_prob: float | None  # mean of a piece, over all pieces, in nats
    entropy: float | None  # mean of the lines' means, in bits
    ended: float | None  # share of the outputs that ended by themselves
    unknown: float | None  # share of the sources' pieces that the model has never seen
    n_unknown_lines: int  # lines with such a piece
    length_ratio: float | None  # pieces written for each piece read, over all lines
    repeated: float | None  # mean of the outputs' shares of repeated pairs of pieces


def summary(results: Sequence[LineResult]) -> Summary:
    """The summary of some results."""
    ran = [one for one in results if one.problem is None]
    counts = [one.counts for one in ran if one.counts is not None]
    wrote = [one for one in ran if one.n_output is not None]
    scored = [one for one in ran if one.log_prob is not None]
    return Summary(
        n=len(results),
        n_failed=len(results) - len(ran),
        chrf=chrf(together(counts)) if counts else None,
        log_prob=_ratio(sum(one.log_prob or 0.0 for one in scored), sum(one.n_counted for one in scored)),
        entropy=_mean([one.entropy for one in ran]),
        ended=_mean([one.ended for one in ran]),
        unknown=_ratio(sum(one.n_unknown for one in ran), sum(one.n_source for one in ran)),
        n_unknown_lines=sum(one.n_unknown > 0 for one in ran),
        length_ratio=_ratio(sum(one.n_output or 0 for one in wrote), sum(one.n_source for one in wrote)),
        repeated=_mean([one.repeated for one in ran]),
    )


def columns(results: Sequence[LineResult], *, ordered: bool = True) -> dict[str, list[Any]]:
    """The table's columns by name, in the order of the file or of the results; empty ones are left out."""
    rows = [_row(one) for one in (sorted(results, key=lambda one: one.line.number) if ordered else results)]
    found = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    return {name: values for name, values in found.items() if any(value not in (None, "") for value in values)}


def as_csv(results: Sequence[LineResult]) -> str:
    """The table as CSV (RFC 4180); a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    table = columns(results)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow(table)
    writer.writerows([_cell(value) for value in row] for row in zip(*table.values(), strict=True))
    return file.getvalue()


def _row(one: LineResult) -> dict[str, Any]:
    return {
        "line": one.line.number,
        "source": one.line.source,
        "reference": one.line.reference,
        "output": one.output,
        "chrf": one.chrf,
        "score": one.score,
        "log_prob": one.log_prob,
        "pieces": one.n_counted or None,
        "log_prob_per_piece": one.mean_log_prob,
        "entropy_bits": one.entropy,
        "length_ratio": one.length_ratio,
        "repeated": one.repeated,
        "source_pieces": one.n_source or None,
        "unknown": one.n_unknown if one.problem is None else None,
        "ended": one.ended,
        "problem": one.problem,
    }


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return cell(str(value))
    return repr(value) if isinstance(value, float) else value


def _ratio(total: float, count: float) -> float | None:
    return total / count if count else None


def _mean(values: Sequence[float | None]) -> float | None:
    there = [float(value) for value in values if value is not None]
    return _ratio(sum(there), len(there))
