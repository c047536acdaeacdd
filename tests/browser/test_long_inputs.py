"""With 512 pieces on each side of 6+6 layers of 8 heads every page works, says what it pools, and stays light."""

from __future__ import annotations

import urllib.parse

import pytest
from playwright.sync_api import Page, expect

from benchmarks.harness import memory_mb
from benchmarks.raw_client import RawClient
from tests.browser.helpers import turn_to, wait_for_idle
from tests.browser.made_up import LONG_NAME, long_source, write_long_model
from tools.serve import Server, serve
from transformer.checkpoint.load import Checkpoint, load
from transformer.runs.query import Query
from transformer.runs.running import run
from transformer.runs.trace import Trace

N = 512
MOST_BYTES = {512: 1_300_000, 128: 400_000}
HEAD = "attention?panel=head&kind=decoder&layer=2&head=3"  # of which every weight is looked at
VIEWS = {
    "step": "Step 200 of 512",
    "attention": "Pooled: each cell is the largest of 15 × 15 weights",
    HEAD: "Numbers are rounded to three significant digits",
    "attention?panel=flow&kind=encoder&layer=2": "More than 6,000 lines cannot be distinguished",
    "attention?panel=walk&layer=2&head=3": "The map has 512 × 512 cells, too many to choose one by clicking",
    "attention?panel=table": "over 512 rows",
    "positions?positions=sentence": "Size of embedding and position vectors",
    "positions?positions=similarity": "Positions",
    "masks?mask=decoder": "The mask has shape [2, 1, 512, 512]",
    "masks?masks=one_row&mask=source": "over the 512 open keys",
    "masks?masks=checks": "Rows 1 to 256 changed by exactly 0",
}
IN_THE_BROWSER = ("step", "attention?panel=flow&kind=encoder&layer=2", HEAD)  # says so, not the server
# A chart in a folded part has no width and is drawn when that opens.
DRAWN = """() => [...document.querySelectorAll(".gf-chart")].every(
  chart => !chart.clientWidth || chart.querySelector(".main-svg"))"""
# The weights that the browser has for a row of a map.
ROW = """([key, row]) => Array.from(document.querySelector(`.st-key-${key} .js-plotly-plot`).calcdata[0][0].z[row])"""


@pytest.fixture(scope="module")
def long_server(tmp_path_factory: pytest.TempPathFactory):
    """The app with the model of long inputs, and that model's checkpoint."""
    root = write_long_model(tmp_path_factory.mktemp("long"))
    log = tmp_path_factory.mktemp("server") / "app.log"
    with serve(log=log, arguments=["--checkpoints", str(root)]) as running:
        yield running, load(root / LONG_NAME)


@pytest.fixture(scope="module")
def trace(long_server: tuple[Server, Checkpoint]) -> Trace:
    checkpoint = long_server[1]
    made = run(checkpoint, Query(checkpoint=checkpoint.content_hash, source=long_source(N), max_new=N))
    assert (len(made.src_ids), made.n_steps) == (N, N)
    return made


def look(page: Page, server: Server, view: str) -> None:
    path, _, options = view.partition("?")
    source = urllib.parse.quote(long_source(N))
    turn_to(page, f"{server.url}/{path}?model={LONG_NAME}&src={source}&max={N}&step=200&{options}")
    page.wait_for_function(DRAWN)
    wait_for_idle(page)


def test_a_map_of_512_pieces_has_every_weight_and_is_light(page, long_server, trace):
    server, _ = long_server
    sizes: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: sizes.append(len(data))))
    look(page, server, HEAD)
    expect(page.get_by_test_id("stMain")).to_contain_text(VIEWS[HEAD])
    assert 0 < sum(sizes) < MOST_BYTES[N]
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    weights = trace.decoder_self[1, 2]
    for row in (0, 300, 511):
        drawn = page.evaluate(ROW, ["head_map", row])
        assert len(drawn) == N
        assert drawn[: row + 1] == pytest.approx(weights[row, : row + 1].tolist(), rel=6e-4, abs=1e-7)
        assert set(drawn[row + 1 :]) <= {None}  # masked, not 0
    assert memory_mb(server.pid) < 4000  # it takes 950; what counts as resident differs between machines


@pytest.mark.deep
def test_a_saved_run_of_512_pieces_opens_and_steps(page, offline, long_server, tmp_path):
    look(page, long_server[0], "step")
    page.get_by_role("button", name="Save this run").click()
    expect(page.get_by_role("button", name="Pictures of all pages")).to_be_disabled()
    with page.expect_download(timeout=120_000) as coming:
        page.get_by_role("button", name="Pictures of this page").click()
    file = tmp_path / "long.html"
    coming.value.save_as(file)
    assert file.stat().st_size < 8_000_000
    alone, _ = offline(file)
    title = alone.locator(".gf-plot .gtitle").first
    expect(title).to_have_text("Step 200: candidates for the next token")
    alone.keyboard.press("ArrowRight")
    expect(title).to_have_text("Step 201: candidates for the next token")
    assert alone.locator(".gf-chart-frame").count() == 3


@pytest.mark.parametrize("n", [512, pytest.param(128, marks=pytest.mark.deep)])
def test_no_view_is_heavy_for_who_comes_by_its_address(long_server, n):
    server, _ = long_server
    for view in VIEWS:
        path, _, options = view.partition("?")
        with RawClient(server.url) as visitor:
            step = {512: 200, 128: 100}[n]
            query = f"model={LONG_NAME}&src={urllib.parse.quote(long_source(n))}&max={n}&step={step}&{options}"
            found = visitor.rerun(page=path, query=query)
            assert found.received_bytes < MOST_BYTES[n], view
            told = " ".join([*found.texts, *found.alerts, *found.drawn.values()])
            told = told.replace("\\u00d7", "×").replace("\\", "")  # of JSON and of Markdown
            assert VIEWS[view] in told or view in IN_THE_BROWSER or n != N, view
