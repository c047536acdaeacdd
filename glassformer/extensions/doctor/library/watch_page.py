"""The page that a watched training leaves: each test's verdicts over time, and what stands at the end, in full.

One file of HTML without scripts and without anything from elsewhere; all text is escaped. In English, as a terminal.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from glassformer.extensions.doctor.library.findings import VERDICTS, Finding
from glassformer.extensions.doctor.library.whole import Report, follows

MOST = 40  # examinations that have a column
SIGNS = {"broken": "✗", "look": "?", "well": "✓", "not_applicable": "·"}
_STYLE = """<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
th, td { padding: 2px 6px; text-align: center; border-bottom: 1px solid #8884 }
th:first-child { text-align: left; font-weight: normal; white-space: nowrap }
.broken { background: #b00020; color: white } .look { background: #f2c14e; color: black }
.well { background: #2e7d3226 } h1 { font-size: 1.5rem } h2 { font-size: 1.1rem } h2 span { padding: 0 .4em }
</style>"""


def page(name: str, records: Sequence[Mapping[str, Any]], report: Report | None) -> str:
    """The page of a training: its examinations, as their lines have them, and the last verdict of each test."""
    said = records[-1]["summary"] if report is None else str(report.summary())
    parts = ['<!doctype html><html lang="en"><meta charset="utf-8">', f"<title>{escape(name)}: doctor</title>"]
    parts += [_STYLE, f"<h1>{escape(said)}</h1>"]
    findings = () if report is None else report.worst_first
    parts += [
        f"<p>Step {one['step']}: {escape(one['summary'])}" for one in records if one["verdict"] == "not_examined"
    ]
    for one in findings:
        if one.verdict in ("broken", "look"):
            parts += _in_full(one)
    parts += ["<h2>Steps</h2><table>", *_rows(records, findings), "</table>"]
    if report is not None and report.pairs:
        parts.append("<h2>Pairs</h2><table><tr><th>source<th>right<th>written")
        parts += [f"<tr><th>{escape(p.source)}<td>{escape(p.right)}<td>{escape(p.written)}" for p in report.pairs]
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def _rows(records: Sequence[Mapping[str, Any]], findings: Sequence[Finding]) -> Iterator[str]:
    """A row for each test, a column for each examination; of many, some are left out."""
    apart = -(-len(records) // MOST)
    columns = records[::-1][::apart][::-1] if apart else []
    yield "<tr><th>step" + "".join(f"<th>{one['step']}" for one in columns)
    yield "<tr><th>loss" + "".join(f"<td>{_short(one['loss'])}" for one in columns)
    for finding in findings:
        cells = [one["tests"].get(finding.test, {}) for one in columns]
        yield f"<tr><th>{escape(str(finding.title))}{''.join(map(_cell, cells))}"


def _cell(found: Mapping[str, Any]) -> str:
    verdict = found.get("verdict", "")
    return f'<td class="{verdict}" title="{_short(found.get("number"))}">{SIGNS.get(verdict, "")}'


def _short(number: float | None) -> str:
    return "" if number is None else f"{number:.3g}"


def _in_full(finding: Finding) -> Iterator[str]:
    measured = finding.measured
    verdict = f'<span class="{finding.verdict}">{escape(str(VERDICTS[finding.verdict]))}</span>'
    yield f"<h2>{verdict} {escape(str(finding.title))}</h2>"
    cause = follows(finding.follows) if finding.follows else ""
    places = ", ".join(measured.places)
    texts = (measured.headline, cause, measured.said, places, measured.meaning, measured.causes, measured.why)
    yield from (f"<p>{escape(str(text))}" for text in texts if text)
