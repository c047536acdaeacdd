"""What pages tell their readers, as text: `python -m tests.pages.transcript` (`make transcripts`) writes it again.

A file `transcripts/*.txt`, beside the tests of pages and of each extension, has sections that begin with an address:

    === masks?model=reverse&src=glass&masks=one_row

Below it stands what a reader of that address is told: titles, texts, choices, inputs, notes, and of each chart its
title, axes, numbers' ends, what its hover says, its alternative text and its legend. To add a state, add its first
line and run the command; then read the diff. Numbers may differ by one in their last place, as processors round
differently.
"""

import html
import json
import math
import re
import sys
import time
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qsl

import numpy as np
import pyarrow as pa
from streamlit.testing.v1 import AppTest

from glassformer.runs import loading
from glassformer.runs.measurement_jobs import studies
from glassformer.server.jobs import JobRegistry
from tests.pages.reading import numbers

ROOT = Path(__file__).resolve().parents[2]
HEAD = "=== "
MOST_LETTERS = 400  # of one text
RELATIVE = 1e-4  # by which numbers with more digits may differ
LONGEST_SECONDS = 120.0  # that a job of a page may take
WAIT_SECONDS = 0.1  # between two looks at a job
MOST_OPTIONS = 12  # of a choice that are written out
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# What differs in every session, on every machine or at every time.
VOLATILE = (
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "#"),
    (re.compile(r"\d+(?:\.\d+)? (?:seconds|ms|秒|毫秒)(?!\w)|(?<=about )[\d.]+ s\b"), "~ s"),
    (re.compile(re.escape(str(ROOT))), "."),
    (re.compile(r"\d(?:\.\d+)? × 10⁻(?:[⁵⁶⁷⁸⁹]|[¹²].)|\d\.\d+e-(?:0[5-9]|[1-9]\d)"), "≈ 0"),  # of rounding alone
)
# Attributes of elements that a reader sees, in the order in which they are written.
SHOWN = ("label", "body", "heading", "placeholder", "default", "value", "text", "code_text", "raw_value", "help")


def files():
    """All transcripts."""
    return sorted(ROOT.glob("tests/**/transcripts/*.txt"))


def sections(text):
    """The lines of each address of a file."""
    found = {}
    for line in text.splitlines():
        if line.startswith(HEAD):
            lines = found.setdefault(line.removeprefix(HEAD), [])
        elif line:
            lines.append(line)
    return found


def joined(found):
    """The text of a file."""
    return "\n\n".join("\n".join([HEAD + address, *lines]) for address, lines in found.items()) + "\n"


def transcript(script, query):
    """The lines of one address: what its page tells a new visitor, when all that it measures has been measured."""
    loading.runner.clear()  # pages tell what other addresses had measured
    return at_rest(lambda: _visit(script, query))


def at_rest(visit):
    """The lines of a visit once the page's work in the background, if it has any, is done."""
    with looked_for_jobs() as looked:
        lines, until = visit(), time.monotonic() + LONGEST_SECONDS
    while looked and time.monotonic() < until:
        if studies().n_under_way() or "progress:" in "".join(lines):
            time.sleep(WAIT_SECONDS)
            while studies().n_under_way() and time.monotonic() < until:
                time.sleep(WAIT_SECONDS)
        before, lines = lines, visit()
        if lines == before and "progress:" not in "".join(lines):
            break
    return lines


@contextmanager
def looked_for_jobs():
    """Where a page looks for jobs meanwhile: a page that looks for none is told at once."""
    looked, find = [], JobRegistry.find
    with patch.object(JobRegistry, "find", lambda self, *of: looked.append(self) or find(self, *of)):
        yield looked


def _visit(script, query):
    asked = dict(parse_qsl(query, keep_blank_values=True))
    test = AppTest.from_file(str(script), default_timeout=300)
    test.query_params.update(asked)
    test.run()
    assert not test.exception, (query, test.exception)
    there = {name: test.query_params[name] for name in test.query_params}
    after = {name: value if isinstance(value, str) else ",".join(value) for name, value in sorted(there.items())}
    notes = [f"address: {name}={value}" for name, value in after.items() if value != asked.get(name)]
    notes += [f"address: no {name}" for name in asked if name not in after]
    return [_clean(line) for line in (*notes, *_lines(test._tree, 0)) if line.strip()]


def _clean(line):
    for pattern, instead in VOLATILE:
        line = pattern.sub(instead, line)
    return line.rstrip()


def _lines(node, depth):
    if hasattr(node, "children"):
        label = _label(getattr(node, "proto", None))
        if label:
            yield "  " * depth + label
        for key in sorted(node.children):
            yield from _lines(node.children[key], depth + bool(label))
    else:
        for line in _element(node.type, node.proto) if node.type != "empty" else ():
            yield "  " * depth + line


def _label(proto):
    """What a box that unfolds is called."""
    if type(proto).__name__ == "Block":
        proto = proto.popover
    fields = [field.name for field in proto.DESCRIPTOR.fields] if hasattr(proto, "DESCRIPTOR") else []
    label = next((text for name in ("label", "title") if name in fields and (text := getattr(proto, name))), "")
    return f"[{type(proto).__name__.lower()}] {label}" if label else ""


def _element(kind, proto):
    if kind == "bidi_component":
        yield from _component(proto)
        return
    if kind in ("dataframe", "table"):
        frame = pa.ipc.open_stream(proto.arrow_data.data).read_pandas()
        yield f"{kind}: {len(frame)} rows: " + " | ".join(map(str, frame.columns))
        for row in frame.head(3).itertuples(index=False):
            yield "  " + " | ".join(_plain(_number(one) if isinstance(one, float) else str(one)) for one in row)
        return
    fields = {field.name: value for field, value in proto.ListFields()}
    # Of a control, help is written as its label is.
    help = fields.pop("help", "") if kind in ("markdown", "caption", "latex") else ""
    options = [getattr(one, "content", one) for one in fields.get("options", ())]
    default = fields.get("default")
    place = str(default) if isinstance(default, int) and not isinstance(default, bool) and options else None
    said = [_plain(str(fields[name])) for name in SHOWN if isinstance(fields.get(name), str | int | float | bool)]
    said = [text for text in said if text != place]
    if options:
        rest = f" … ({len(options)})" if len(options) > MOST_OPTIONS else ""
        said.append(" | ".join(map(_plain, map(str, options[:MOST_OPTIONS]))) + rest)
    if raw := [*fields.get("raw_values", ())]:
        said.append("→ " + ", ".join(map(str, raw)))
    if said := [*dict.fromkeys(filter(None, said))]:
        yield f"{kind}: {' · '.join(said)}"
    if help:
        yield f"  help: {_plain(help)}"


def _plain(text):
    """A text without markup, on one line."""
    text = html.unescape(re.sub(r"<style.*?</style>|<[^<>]*>", " ", text, flags=re.DOTALL))
    text = " ".join(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text).split())
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}… ({len(text)})"


def _component(proto):
    name = proto.component_name.removeprefix("glassformer_")
    data = json.loads(proto.json or "[{}]")[0]
    if "figure" in data:
        yield from _chart(json.loads(data["figure"]))
        yield from (f"  {key}: {_plain(_text(data[key]))}" for key in ("alt", "caption", "said") if data.get(key))
    elif "run" in data:
        yield f"{name}: {_text([one.get('piece') for one in data['run'].get('source', ())])}"
        written = [f"{one.get('piece')} {_text(one.get('probability'))}" for one in data["run"].get("target", ())]
        yield f"  → {' · '.join(written)}"
    else:
        yield f"{name}: {_plain(_text(data))}"


def _text(value):
    """The words and numbers of some data."""
    if isinstance(value, dict):
        return " ".join(_text(one) for key, one in value.items() if not key.startswith("_"))
    if isinstance(value, list | tuple):
        return " ".join(map(_text, value))
    return "" if value is None else _number(value) if isinstance(value, float) else str(value)


def _number(value):
    if math.isnan(value):
        return "–"
    size = abs(value)
    return f"{value:.3f}" if size == 0 or 0.0995 <= size < 1000 else f"{value:.2e}"


def _some(texts):
    """The first of many, and how many there are."""
    return texts[:MOST_OPTIONS], f" … ({len(texts)})" if len(texts) > MOST_OPTIONS else ""


def _chart(figure):
    layout = figure["layout"]
    yield f"chart: {_plain(str((layout.get('title') or {}).get('text', '')))}"
    for axis in sorted(key for key in layout if re.fullmatch(r"[xy]axis\d*", key)):
        title = (layout[axis].get("title") or {}).get("text", "")
        ticks, rest = _some([_plain(str(one)) for one in layout[axis].get("ticktext") or ()])
        if title or ticks:
            yield f"  {axis}: {_plain(str(title))} [{', '.join(ticks)}{rest}]"
    for trace in figure["data"]:
        yield "  " + " · ".join(filter(None, _trace(trace)))
    notes, rest = _some([_plain(str(one.get("text", ""))) for one in layout.get("annotations") or ()])
    if any(notes):
        yield f"  notes: {' | '.join(filter(None, notes))}{rest}"


def _trace(trace):
    yield f"{trace.get('type', 'scatter')} {_plain(str(trace.get('name', '')))}".strip()
    for key in ("z", "x", "y"):
        array = trace.get(key)
        if isinstance(array, dict | list) and array:
            try:
                values = np.asarray(numbers(array), np.float64)
            except (ValueError, TypeError):
                continue
            there = values[np.isfinite(values)]
            ends = f"{_number(float(there.min()))} to {_number(float(there.max()))}" if there.size else "none"
            yield f"{key} {'×'.join(map(str, values.shape))}: {ends}"
    yield _plain(str(trace.get("hovertemplate", "")))


def alike(line, other):
    """Whether two lines say the same, but for the last place of numbers."""
    if line == other:
        return True
    if NUMBER.sub("0", line) != NUMBER.sub("0", other):
        return False
    pairs = zip(NUMBER.findall(line), NUMBER.findall(other), strict=True)
    return all(one == two or _near(one, two) for one, two in pairs)


def _near(one, two):
    if {one[0], two[0]} == {"-", "−"}:
        return False
    first, second = (float(text.replace(",", "").replace("−", "-")) for text in (one, two))
    places = min(len(text.partition("e")[0].partition(".")[2]) for text in (one, two))
    if not places:  # a whole number is counted, not measured
        return False
    scale = 10.0 ** int(one.partition("e")[2] or 0)
    return abs(first - second) <= max(1.01 * scale * 10.0**-places, RELATIVE * abs(first))


def different(stored, now):
    """The lines that differ, as a diff."""
    if len(stored) == len(now) and all(map(alike, stored, now)):
        return []
    return [one for one in unified_diff(stored, now, "stored", "now", lineterm="", n=1) if not one.startswith("@@")]


def main():
    """Write every transcript again; print how many addresses changed."""
    from tests.pages.conftest import PAGES

    changed = 0
    for file in files():
        found = sections(file.read_text(encoding="utf-8"))
        for address, lines in found.items():
            page, _, query = address.partition("?")
            now = transcript(PAGES[page], query)
            if different(lines, now):  # what only rounds differently stays
                found[address] = now
                changed += 1
        file.write_text(joined(found), encoding="utf-8")
    print(f"{changed} addresses tell something else now; read the diff.")


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    main()
