"""BertViz's side of benchmarks/views.py: build its HTML in a separate process, and paint it in a browser.

BertViz's page loads three scripts from a CDN; here they come from local copies, so no network time counts against it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import resource
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import torch
from playwright.sync_api import Browser, Route
from playwright.sync_api import Error as BrowserError

VIEWS = ("head_view", "model_view")
MOST_MEMORY = 12 * 2**30  # bytes; a build that needs more fails instead of taking the machine with it
# Script on the CDN -> npm package and file in it.
SCRIPTS = {
    "require.js/2.3.6/require.min.js": ("requirejs-2.3.6.tgz", "package/require.js"),
    "d3/5.7.0/d3.min.js": ("d3-5.7.0.tgz", "package/dist/d3.min.js"),
    "jquery/2.0.0/jquery.min.js": ("jquery-2.1.0.tgz", "package/dist/jquery.min.js"),
}
# Both views draw in one go, so a frame after the first line there are all; the next frame comes after it was painted.
WATCH = """(() => {
  const look = () => document.querySelector("#vis svg line")
    ? requestAnimationFrame(() => requestAnimationFrame(() => { window.__painted = performance.now(); }))
    : requestAnimationFrame(look);
  look();
})()"""


@dataclass(frozen=True)
class Built:
    """What building took: seconds, bytes of HTML, peak memory of the process in megabytes; or why there is none."""

    seconds: float = float("nan")
    nbytes: int = 0
    peak_mb: float = float("nan")
    failed: str = ""


def build(view: str, maps: Path, html: Path, *, timeout: float) -> Built:
    """Build one view of BertViz in a fresh process.

    Args:
        view: One of VIEWS.
        maps: What `numpy.savez` wrote: encoder, decoder, cross [layer, head, query, key]; src, tgt pieces.
        html: Where the HTML goes.
        timeout: Seconds after which it is given up.
    """
    command = [sys.executable, "-m", "benchmarks.bertviz_side", view, str(maps), str(html)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return Built(failed=f"not built within {timeout:.0f} s")
    if done.returncode:
        return Built(failed=(done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"])[-1])
    return Built(**json.loads(done.stdout))


def paint(browser: Browser, html: Path, scripts: Path, *, timeout: float) -> float | str:
    """Open a built view and return the milliseconds from asking for it until it is painted, or why it is not.

    Args:
        browser: A running browser.
        html: What `build` wrote.
        scripts: A folder with the npm packages of SCRIPTS.
        timeout: Seconds after which it is given up.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    try:
        page = context.new_page()
        page.set_default_timeout(timeout * 1000)
        page.route("https://cdnjs.cloudflare.com/**", functools.partial(_answer, scripts))
        page.add_init_script(WATCH)
        with _served(html.parent) as address:
            page.goto(f"{address}/{html.name}", wait_until="commit")
            return float(page.wait_for_function("window.__painted", polling=100).json_value())
    except BrowserError as error:
        return str(error).splitlines()[0]
    finally:
        with contextlib.suppress(BrowserError):
            context.close()


def _answer(scripts: Path, route: Route) -> None:
    package, file = next(found for end, found in SCRIPTS.items() if route.request.url.endswith(end))
    with tarfile.open(scripts / package) as archive:
        content = archive.extractfile(file)
        route.fulfill(body=content.read() if content else b"", content_type="text/javascript")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a folder on loopback while the block lasts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Build one view and print what it took, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("view", choices=VIEWS)
    parser.add_argument("maps", type=Path)
    parser.add_argument("html", type=Path)
    options = parser.parse_args()
    import bertviz  # the peer; only this process needs it

    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    sent = np.load(options.maps)
    # BertViz wants a list of layers, each [1, head, query, key].
    layers = {name: list(torch.from_numpy(sent[name]).unsqueeze(1)) for name in ("encoder", "decoder", "cross")}
    started = time.perf_counter()
    made = getattr(bertviz, options.view)(
        encoder_attention=layers["encoder"],
        decoder_attention=layers["decoder"],
        cross_attention=layers["cross"],
        encoder_tokens=sent["src"].tolist(),
        decoder_tokens=sent["tgt"].tolist(),
        html_action="return",
    )
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    # As Streamlit's components.html would send it, and a notebook would keep it.
    nbytes = options.html.write_bytes(b'<!DOCTYPE html><meta charset="utf-8">' + made.data.encode())
    print(json.dumps({"seconds": seconds, "nbytes": nbytes, "peak_mb": peak}))


if __name__ == "__main__":
    main()
