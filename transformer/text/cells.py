"""Texts in the cells of a table that somebody opens in a spreadsheet.

A spreadsheet computes what looks like a formula, so that a text from anywhere could run there. Full-width signs
count: some read them as the plain ones. Source: OWASP, "CSV Injection"
(https://owasp.org/www-community/attacks/CSV_Injection).
"""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def cell(text: str) -> str:
    """The text; one that a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{text}" if text.startswith(_FORMULA) else text
