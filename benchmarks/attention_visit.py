"""Our side of benchmarks/views.py: a visit to the Attention page, view by view, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from playwright.sync_api import Browser, Page, WebSocket

from benchmarks.raw_client import RawClient
from glassformer.attention import map_pictures
from glassformer.attention.map_pictures import FLOW
from glassformer.runs.map_axes import KIND_NAMES
from tests.browser.idle import wait_for_idle
from tools.serve import Server

SERVER_TURNS = 5


@dataclass(frozen=True)
class View:
    """One view of a visit.

    Attributes:
        name: What it is.
        address: Its part of the address, for a visitor who comes straight to it.
        click: The control that leads to it from the view before, and the name of the choice; None for the first.
        shows: Each chart that it has, and what the chart's title says.
    """

    name: str
    address: str
    click: tuple[str, str] | None
    shows: tuple[tuple[str, str], ...]


MAP = map_pictures.one_map.key
PLACES = {kind: one.key for kind, one in map_pictures.GRIDS.items()}
GRIDS = tuple((place, KIND_NAMES[kind]) for kind, place in PLACES.items())
ENCODER, DECODER, CROSS = (KIND_NAMES[kind] for kind in PLACES)
ONE = "layer=1&head=1"
VISIT = (
    View("all heads", "", None, GRIDS),
    View("mean of all, cross", "panel=head", ("panel", "One map"), ((MAP, f"{CROSS}: mean of all"),)),
    View("a layer's mean", "panel=head&layer=1", ("layer", "Layer 1"), ((MAP, "layer 1, mean"),)),
    View("one head, cross", f"panel=head&{ONE}", ("head", "Head 1"), ((MAP, f"{CROSS}: layer 1, head"),)),
    *(
        View(f"one head, {kind}", f"panel=head&kind={kind}&{ONE}", ("kind", click), ((MAP, f"{name}:"),))
        for kind, click, name in (("encoder", "Encoder self", ENCODER), ("decoder", "Decoder self", DECODER))
    ),
    *(
        View(f"flow of 8 heads, {kind}", f"panel=flow&kind={kind}&{ONE}", click, ((FLOW, f"{name}, layer"),))
        for kind, click, name in (
            ("decoder", ("panel", "Flow"), DECODER),
            ("encoder", ("kind", "Encoder self"), ENCODER),
            ("cross", ("kind", "Cross-attention"), CROSS),
        )
    ),
    View("all heads again", ONE, ("panel", "All heads"), GRIDS),
)

# Looks at every frame whether the view stands, then waits for the frame after it; looks into shadow roots too.
WATCH = """shows => {
  const find = (key, selector) => [...document.querySelectorAll(`.st-key-${key}, .st-key-${key} *`)]
    .map((element) => element.shadowRoot?.querySelector(selector) ?? (element.matches(selector) ? element : null))
    .find(Boolean);
  const plain = (text) => text.replace(/\\s/g, "");
  const stands = ([key, title]) => {
    const named = find(key, ".gtitle") ?? find(key, ".gf-flow-title");
    const drawn = find(key, ".heatmaplayer image") ?? find(key, "[data-lines]:not([data-lines='0'])");
    return drawn && plain(named?.textContent ?? "").includes(plain(title));
  };
  window.__painted = undefined;
  const look = () => (shows.every(stands)
    ? requestAnimationFrame(() => requestAnimationFrame(() => { window.__painted = performance.now(); }))
    : requestAnimationFrame(look));
  look();
}"""
CLICK = "button => { window.__clicked = performance.now(); button.click(); }"


@dataclass
class Seen:
    """What one of our views took, one number a turn: bytes over the WebSocket, milliseconds until it was painted."""

    nbytes: list[int] = field(default_factory=list)
    painted_ms: list[float] = field(default_factory=list)


@dataclass
class Ours:
    """What our page took.

    Attributes:
        views: Each view of the visit, by name.
        cold_ms: The first view in a browser that has nothing of the app yet.
        static_bytes: What that browser fetched once and keeps.
        server_ms: A rerun of the whole page for each view, by name.
    """

    views: dict[str, Seen] = field(default_factory=lambda: {view.name: Seen() for view in VISIT})
    cold_ms: list[float] = field(default_factory=list)
    static_bytes: float = 0
    server_ms: dict[str, float] = field(default_factory=dict)

    def visit_bytes(self) -> float:
        """Bytes of the whole visit."""
        return sum(median(seen.nbytes) for seen in self.views.values())


def visit(browser: Browser, server: Server, query: str, ours: Ours) -> None:
    """Open the page in an empty browser, then again, and lead it through all views."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.set_default_timeout(120_000)
    address = f"{server.url}/attention?{query}"
    with _fetched(page) as fetched:
        ours.cold_ms.append(_open(page, address, VISIT[0]))
    ours.static_bytes = sum(fetched)
    page.goto("about:blank")
    received: list[int] = []
    page.on("websocket", lambda socket: _count(socket, received))
    for view in VISIT:
        before = sum(received)
        milliseconds = _click(page, view) if view.click else _open(page, address, view)
        seen = ours.views[view.name]
        seen.painted_ms.append(milliseconds)
        seen.nbytes.append(sum(received) - before)
    context.close()


def _open(page: Page, address: str, view: View) -> float:
    page.goto(address, wait_until="commit")
    page.evaluate(WATCH, view.shows)
    painted = float(page.wait_for_function("window.__painted", polling=20).json_value())
    wait_for_idle(page)
    return painted


def _click(page: Page, view: View) -> float:
    key, name = view.click or ("", "")
    page.evaluate(WATCH, view.shows)
    menu = page.locator(f".st-key-{key}").get_by_role("combobox")
    if menu.count():
        menu.click()
        page.get_by_role("option", name=name, exact=True).evaluate(CLICK)
    else:
        page.locator(f".st-key-{key} button").get_by_text(name, exact=True).evaluate(CLICK)
    page.wait_for_function("window.__painted", polling=20)
    wait_for_idle(page)
    return float(page.evaluate("window.__painted - window.__clicked"))


@contextmanager
def _fetched(page: Page) -> Iterator[list[float]]:
    """Collect the bytes of every file that a page loads, as they travel."""
    sizes: list[float] = []
    client = page.context.new_cdp_session(page)
    client.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    client.send("Network.enable")
    yield sizes
    client.detach()


def _count(socket: WebSocket, received: list[int]) -> None:
    socket.on("framereceived", lambda payload: received.append(len(payload)))


def ask_server(server: Server, query: str, ours: Ours) -> None:
    """Measure a rerun of the whole page for each view."""
    for view in VISIT:
        with RawClient(server.url) as client:
            times = [
                client.rerun(page="attention", query=f"{query}&{view.address}").seconds for _ in range(SERVER_TURNS)
            ]
        ours.server_ms[view.name] = 1000 * median(times)
