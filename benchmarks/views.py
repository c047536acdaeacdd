"""The attention maps of a 6-layer, 8-head encoder-decoder: our Attention page against BertViz's two views.

    npm pack d3@5.7.0 jquery@2.1.0 requirejs@2.3.6 --pack-destination DIR
    python -m benchmarks.views --scripts DIR --tokens 30 60 128 512

A made-up model (tests/browser/long_model.py) reads n pieces and writes n. BertViz gets the maps of the same run. Its
head view and its model view hold encoder, decoder and cross-attention together, every weight as decimal text. Our
page is opened on all heads and then taken through nine more views, one per click on a control.

Bytes are those of the HTML for BertViz, and those over the WebSocket for us; files that a browser caches (Streamlit's
and Plotly's scripts, and BertViz's three) are counted separately. Server time is that of the call that returns the
HTML, or of a rerun of the whole page for a visitor who opens its address (the model has run before, as for BertViz).
"Painted" is a person's waiting time in Chromium, from the request or click until the picture is complete. For BertViz
add the time to build, because nothing is sent before.

Needs: pip install bertviz==1.4.1 playwright, and Chromium.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from benchmarks import bertviz_side
from benchmarks.attention_visit import VISIT, Ours, ask_server, visit
from tests.browser.helpers import BROWSER_FLAGS
from tests.browser.long_model import N_HEADS, N_LAYERS, NAME, long_source, write_long_model
from tools.browser import REMEDY, find_browser
from tools.serve import Server, serve
from transformer.checkpoint.load import Checkpoint, load
from transformer.runs.query import Query
from transformer.runs.running import run
from transformer.runs.trace import Trace

LONG = 256  # above this BertViz takes minutes, so one turn must do


@dataclass
class Theirs:
    """What one view of BertViz took, one number a turn; `failed` says what did not work."""

    nbytes: int = 0
    build_ms: list[float] = field(default_factory=list)
    painted_ms: list[float] = field(default_factory=list)
    peak_mb: float = float("nan")
    failed: str = ""

    def ready_ms(self) -> float:
        """Milliseconds until a person sees it: built, sent and painted."""
        return median(self.build_ms) + median(self.painted_ms) if self.painted_ms else float("nan")


# ---------------------------------------------------------------- BertViz's side


def let_bertviz(browser: Browser, maps: Path, view: str, *, scripts: Path, timeout: float, theirs: Theirs) -> None:
    """Build one view of BertViz and paint it; what fails once is not tried again."""
    if theirs.failed:
        return
    html = maps.with_name(f"{view}.html")
    built = bertviz_side.build(view, maps, html, timeout=timeout)
    theirs.failed = built.failed
    if built.failed:
        return
    theirs.nbytes, theirs.peak_mb = built.nbytes, built.peak_mb
    theirs.build_ms.append(1000 * built.seconds)
    painted = bertviz_side.paint(browser, html, scripts, timeout=timeout)
    html.unlink()
    if isinstance(painted, str):
        theirs.failed = f"not painted: {painted}"
    else:
        theirs.painted_ms.append(painted)


def save_maps(trace: Trace, path: Path) -> Path:
    """Write the maps of a run for BertViz: both sides show the same ones."""
    np.savez(
        path,
        encoder=trace.encoder_self,
        decoder=trace.decoder_self,
        cross=trace.cross,
        src=np.array(trace.src_tokens),
        tgt=np.array(trace.read_tokens),
    )
    return path


# ---------------------------------------------------------------- the report


def report(n: int, ours: Ours, theirs: dict[str, Theirs]) -> None:
    """Print the table of one length, and the ratios."""
    print(f"\n### {n} tokens on each side\n")
    print("| | sent | ms on the server | ms until painted |")
    print("|---|---|---|---|")
    for name, one in theirs.items():
        built = f"{median(one.build_ms):,.0f}" if one.build_ms else one.failed
        painted = f"{median(one.painted_ms):,.0f} after that" if one.painted_ms else one.failed
        print(f"| BertViz `{name}` | {_size(one.nbytes)} | {built} | {painted} |")
    print(f"| our page, browser empty | | | {median(ours.cold_ms):,.0f} |")
    for name, seen in ours.views.items():
        numbers = f"{_size(median(seen.nbytes))} | {ours.server_ms[name]:,.0f} | {median(seen.painted_ms):,.0f}"
        print(f"| {name} | {numbers} |")
    largest = max(median(seen.nbytes) for seen in ours.views.values())
    print(f"| the whole visit | {_size(ours.visit_bytes())}, at most {_size(largest)} a view | | |")
    sent = sum(one.nbytes for one in theirs.values())
    if sent:
        print(f"\nBertViz sends {_size(sent)}, {sent / ours.visit_bytes():,.0f} times as much as our whole visit.")
    overview, flow = VISIT[0].name, VISIT[6].name
    for name, view in (("model_view", overview), ("head_view", flow)):
        ready = theirs[name].ready_ms() if name in theirs else float("nan")
        if ready == ready:  # not NaN
            mine = median(ours.views[view].painted_ms)
            cold = f", {ready / median(ours.cold_ms):.1f} times with an empty browser" if view == overview else ""
            print(f"`{name}` takes {ready:,.0f} ms, {ready / mine:.1f} times as long as “{view}”{cold}.")
    peaks = ", ".join(f"`{name}` {one.peak_mb:,.0f} MB" for name, one in theirs.items() if one.build_ms)
    kept = _size(ours.static_bytes)
    print(f"A browser keeps {kept} of our scripts." + (f" Peak memory of building: {peaks}." if peaks else ""))


def _size(nbytes: float) -> str:
    return f"{nbytes / 1e6:,.1f} MB" if nbytes >= 1e6 else f"{nbytes / 1e3:,.0f} KB"


def measure(
    browser: Browser, server: Server, checkpoint: Checkpoint, n: int, options: argparse.Namespace
) -> tuple[Ours, dict[str, Theirs]]:
    """Measure both sides at one length, in turns."""
    source = long_source(n)
    query = urllib.parse.urlencode({"model": NAME, "src": source, "max": n})
    ours, theirs = Ours(), {view: Theirs() for view in bertviz_side.VIEWS if not options.ours_alone}
    with tempfile.TemporaryDirectory() as folder:
        trace = run(checkpoint, Query(checkpoint=checkpoint.content_hash, source=source, max_new=n))
        assert (len(trace.src_ids), trace.n_steps) == (n, n)
        maps = save_maps(trace, Path(folder) / "maps.npz")
        ask_server(server, query, ours)
        for _ in range(options.turns if n <= LONG else 1):
            visit(browser, server, query, ours)
            for view, one in theirs.items():
                let_bertviz(browser, maps, view, scripts=options.scripts, timeout=options.timeout, theirs=one)
    return ours, theirs


def main() -> None:
    """Measure and print, one length after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[30, 60, 128, 512])
    parser.add_argument("--turns", type=int, default=3, help=f"turns of both sides; one above {LONG} tokens")
    parser.add_argument("--scripts", type=Path, required=True, help="folder with BertViz's three npm packages")
    parser.add_argument("--ours-alone", action="store_true", help="leave BertViz out")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds to build or paint one view of BertViz")
    options = parser.parse_args()
    executable = find_browser() or sys.exit(REMEDY)
    version = sys.version.split()[0]
    print(f"{N_LAYERS}+{N_LAYERS} layers, {N_HEADS} heads; {os.cpu_count()} cores, Python {version}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root = write_long_model(Path(folder))
        checkpoint = load(root / NAME)
        arguments = ["--checkpoints", str(root)]
        browser = playwright.chromium.launch(executable_path=executable, args=BROWSER_FLAGS)
        with serve("app.py", log=Path(folder) / "log", arguments=arguments) as server:
            for n in options.tokens:
                print(f"load {os.getloadavg()[0]:.1f}", file=sys.stderr)
                report(n, *measure(browser, server, checkpoint, n, options))
        browser.close()


if __name__ == "__main__":
    main()
