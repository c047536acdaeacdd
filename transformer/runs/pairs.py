"""Files of sentence pairs: one a line, `source TAB target`, UTF-8."""

from pathlib import Path

from transformer.errors import DataError
from transformer.i18n import say_n
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.text.line_files import read_lines

Pair = tuple[str, str]


def read_pairs(path: Path, config: ModelConfig | None = None) -> list[Pair]:
    """Read a file of `source TAB target` lines; empty lines are skipped.

    For an encoder-only model a line is one text, and its target is empty. A `DataError` as of `read_lines`, or if the
    file is empty, or a line has no or more than one tab (of one text: any).
    """
    return [pair for _, pair in read_numbered_pairs(path, config)]


def read_numbered_pairs(path: Path, config: ModelConfig | None = None) -> list[tuple[int, Pair]]:
    """The same, each pair with the number of its line, from 1."""
    alone = config is not None and not anatomy(config).writes
    pairs: list[tuple[int, Pair]] = []
    for number, columns in read_lines([path]):
        if not any(column.strip() for column in columns):
            continue
        if alone and len(columns) == 1:
            pairs.append((number, (columns[0].strip(), "")))
            continue
        if alone:
            raise DataError(
                say_n(
                    "{file}, line {number}: expected one text without a tab, found {n} column.",
                    "{file}, line {number}: expected one text without a tab, found {n} columns.",
                    len(columns),
                    file=str(path),
                    number=number,
                )
            )
        if len(columns) != 2 or not columns[0].strip() or not columns[1].strip():
            raise DataError(
                say_n(
                    "{file}, line {number}: expected `source TAB target`, found {n} column.",
                    "{file}, line {number}: expected `source TAB target`, found {n} columns.",
                    len(columns),
                    file=str(path),
                    number=number,
                )
            )
        pairs.append((number, (columns[0].strip(), columns[1].strip())))
    if not pairs:
        raise DataError("{file}: contains no pairs.", file=str(path))
    return pairs
