"""All attention maps of a sentence against BertViz: bytes, and the time until the picture is complete in Chromium.

A made-up encoder-decoder of 6+6 layers with 8 heads (tests/browser/made_up.py) reads and writes n pieces. BertViz's
`model_view` gets the maps of the same run; ours is the Attention page with all heads. Bytes are those of the HTML, or
of the WebSocket for us: files that a browser keeps (Streamlit's and Plotly's scripts; d3, jQuery and require.js) are
left out, and come from this machine on both sides. BertViz's time includes building the HTML, ours the server's run of
the page; the model has run before.

    pip install bertviz==1.4.1 && npm pack d3@5.7.0 jquery@2.1.0 requirejs@2.3.6 --pack-destination DIR
    python -m benchmarks attention_maps --folder DIR --only 30 128
"""

from __future__ import annotations

import contextlib
import functools
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import torch
from playwright.sync_api import Browser, Page, Route

from benchmarks.harness import Comparison, Settings, app, chromium, turns, worker
from glassformer.attention.map_pictures import GRIDS
from tests.browser.made_up import LONG_NAME, long_source, write_long_model
from transformer.checkpoint.load import load
from transformer.runs.query import Query
from transformer.runs.running import run

PIECES = ("30", "60", "128", "512")
TIMEOUT_MS = 180_000
SCRIPTS = {  # on the CDN -> npm package and file in it
    "require.js/2.3.6/require.min.js": ("requirejs-2.3.6.tgz", "package/require.js"),
    "d3/5.7.0/d3.min.js": ("d3-5.7.0.tgz", "package/dist/d3.min.js"),
    "jquery/2.0.0/jquery.min.js": ("jquery-2.1.0.tgz", "package/dist/jquery.min.js"),
}
# Looks at every frame until all stands, then waits for the frame after it.
WATCH = """(() => {
  const stands = () => %s;
  const look = () => requestAnimationFrame(!stands() ? look
    : () => requestAnimationFrame(() => { window.__painted = performance.now(); }));
  look();
})()"""
BERTVIZ = WATCH % "document.querySelector('#vis svg line')"  # draws in one go: after the first line there are all
OURS = WATCH % f"{[one.key for one in GRIDS.values()]}.every((key) => document.querySelector(`.st-key-${{key}} image`))"


def measure(settings: Settings) -> Iterator[Comparison]:
    """The table."""
    if find_spec("bertviz") is None or settings.folder is None:
        raise SystemExit(
            "attention_maps needs BertViz and --folder with its scripts: see benchmarks/attention_maps.py."
        )
    with tempfile.TemporaryDirectory() as work, chromium() as browser:
        root = write_long_model(Path(work))
        with app(arguments=["--checkpoints", str(root)]) as (server, _):
            for n in map(int, settings.chosen(PIECES, PIECES[:1] if settings.quick else ("30", "128"))):
                maps = _write_maps(root / LONG_NAME, n, Path(work) / "maps.npz")
                query = urlencode({"model": LONG_NAME, "src": long_source(n), "max": n})
                address, scripts = f"{server.url}/attention?{query}", settings.folder
                _ours(browser, address)  # the model runs, and a browser would have the scripts
                sides: dict[str, Callable[[], tuple[float, float]]] = {
                    "ours": functools.partial(_ours, browser, address),
                    "bertviz": functools.partial(_bertviz, browser, maps, scripts),
                }
                found = turns(sides, settings.n_turns(3))
                for what, unit, i in (("bytes", "MB", 0), ("until they are painted", "s", 1)):
                    mine, theirs = ([turn[i] for turn in found[side]] for side in ("ours", "bertviz"))
                    yield Comparison(
                        what=f"all heads, {n} pieces: {what}", ours=mine, peer=theirs, unit=unit,
                        peer_name="BertViz, `model_view`", aim="at most 0.01 times" if not i and n > 100 else "",
                    )  # fmt: skip


def _write_maps(checkpoint: Path, n: int, path: Path) -> Path:
    """Write the maps of a run for BertViz: both sides show the same ones."""
    model = load(checkpoint)
    trace = run(model, Query(checkpoint=model.content_hash, source=long_source(n), max_new=n))
    assert (len(trace.src_ids), trace.n_steps) == (n, n)
    src, tgt = np.array(trace.src_tokens), np.array(trace.read_tokens)
    np.savez(path, encoder=trace.encoder_self, decoder=trace.decoder_self, cross=trace.cross, src=src, tgt=tgt)
    return path


def _painted(page: Page) -> float:
    """Seconds since the page was asked for."""
    return float(page.wait_for_function("window.__painted", polling=20, timeout=TIMEOUT_MS).json_value()) / 1000


def _ours(browser: Browser, address: str) -> tuple[float, float]:
    """Megabytes over the WebSocket and seconds until all heads are painted, in a browser that has the scripts."""
    with contextlib.closing(browser.new_context(viewport={"width": 1280, "height": 720})) as context:
        page, received = context.new_page(), list[int]()
        page.goto(address, wait_until="networkidle")  # fetches what a browser keeps
        page.goto("about:blank")
        page.add_init_script(OURS)
        page.on("websocket", lambda one: one.on("framereceived", lambda data: received.append(len(data))))
        page.goto(address, wait_until="commit")
        seconds = _painted(page)
        return sum(received) / 1e6, seconds


def _bertviz(browser: Browser, maps: Path, scripts: Path) -> tuple[float, float]:
    """Megabytes of the HTML, and seconds to build and to paint it."""
    html = maps.with_name("model_view.html")
    with worker("attention_maps", str(maps), str(html)) as ask:
        built = ask(None)
    with contextlib.closing(browser.new_context(viewport={"width": 1280, "height": 720})) as context:
        page = context.new_page()
        page.route("https://cdnjs.cloudflare.com/**", functools.partial(_from_package, scripts))
        page.add_init_script(BERTVIZ)
        page.goto(html.as_uri(), wait_until="commit", timeout=TIMEOUT_MS)
        return built.said, built.wall + _painted(page)


def side(maps: str, html: str) -> Callable[[object], float]:
    """BertViz, which answers with the megabytes of the HTML that it has built."""
    import bertviz

    def build(_: object) -> float:
        sent = np.load(maps)
        layers = {name: list(torch.from_numpy(sent[name]).unsqueeze(1)) for name in ("encoder", "decoder", "cross")}
        made: Any = bertviz.model_view(
            **{f"{name}_attention": maps for name, maps in layers.items()}, html_action="return",
            encoder_tokens=sent["src"].tolist(), decoder_tokens=sent["tgt"].tolist(),
        )  # fmt: skip
        return Path(html).write_bytes(b'<!DOCTYPE html><meta charset="utf-8">' + made.data.encode()) / 1e6

    return build


def _from_package(scripts: Path, route: Route) -> None:
    package, file = next(found for end, found in SCRIPTS.items() if route.request.url.endswith(end))
    with tarfile.open(scripts / package) as archive:
        content = archive.extractfile(file)
        route.fulfill(body=content.read() if content else b"", content_type="text/javascript")
