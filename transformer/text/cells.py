"""CSV files for spreadsheets, and cell texts that no spreadsheet takes for formulas (CSV injection).

A spreadsheet computes what looks like a formula, so text from anywhere could run there. Full-width signs count: some
spreadsheets read them as plain ones. Source: OWASP, "CSV Injection"
(https://owasp.org/www-community/attacks/CSV_Injection).
"""

from pathlib import Path

from transformer.errors import DataError

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell(text: str) -> str:
    """The text; one that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_csv(file: Path, text: str) -> None:
    """Write a table for spreadsheets."""
    try:
        # With a byte order mark: without it spreadsheets do not read UTF-8.
        file.write_text(text, encoding="utf-8-sig", errors="replace", newline="")
    except OSError as error:
        raise DataError("{file}: cannot be written ({reason}).", file=str(file), reason=error.strerror) from None
