"""The part Over training of the Attention page shows one head of all snapshots reading the finished output."""

from dataclasses import replace

import numpy as np
import pytest

from glassformer.charts.theme import figure_in
from glassformer.extensions.snapshots import snapshot_run_jobs, snapshot_runs
from glassformer.extensions.snapshots.film_pictures import film_of, strip
from glassformer.runs import loading
from glassformer.runs.open_run import seen
from glassformer.server import server_options
from glassformer.state.link import Link
from glassformer.state.view import View
from tests.glassformer.runs.test_loading import forget as forget
from tests.glassformer.runs.test_loading import own as own
from tests.glassformer.waiting import WAIT
from tests.pages.conftest import ATTENTION, check
from tests.pages.reading import figure, numbers, sentences
from tests.transformer.grown import STEPS, write_grown
from tests.transformer.stand_in import DEVICE
from transformer.checkpoint.load import load
from transformer.checkpoint.snapshots import AT
from transformer.errors import QueryError
from transformer.runs.running import run

KEY = strip.key


@pytest.fixture(scope="module")
def of_grown(tmp_path_factory):
    """A folder with a checkpoint that has snapshots."""
    return write_grown(tmp_path_factory.mktemp("own"))


@pytest.fixture
def page(open_page, of_grown, monkeypatch):
    """A function that opens the part."""
    monkeypatch.setenv(loading.ENVIRONMENT, str(of_grown))
    monkeypatch.setattr(snapshot_run_jobs, "PATIENCE_SECONDS", WAIT)
    return lambda **more: open_page(ATTENTION, **{"model": "grown", "panel": "training", "src": "abcdef"} | more)


def tiles(test):
    """The maps of the strip [snapshot, query, key]."""
    sheet, sent = numbers(figure(test, KEY)["data"][0]["z"]), figure(test, KEY)["layout"]["meta"]["film"]
    height, width, columns = len(sent["queries"]) + 1, len(sent["keys"]) + 1, sent["columns"]
    cells = sheet.reshape(-1, height, columns, width).swapaxes(1, 2).reshape(-1, height, width)
    return cells[: len(sent["names"]), :-1, :-1]


def test_each_tile_is_that_head_of_a_snapshot_that_reads_the_finished_output(page, of_grown):
    test = page(model="grown@219", kind="cross", layer=2, head=1)
    finished = load(of_grown / "grown")
    output = run(finished, finished.query("abcdef")).tgt_ids
    for step, drawn in zip(STEPS, tiles(test), strict=True):
        snapshot = load(of_grown / f"grown{AT}{step}")
        trace = run(snapshot, snapshot.query("abcdef", forced=output))
        np.testing.assert_allclose(drawn, trace.cross[1, 0], atol=1e-3)
    film_sent = figure(test, KEY)["layout"]["meta"]["film"]
    assert (film_sent["names"][2], film_sent["chosen"]) == ("Step 219<br>dev loss 3.00", 2)
    np.testing.assert_array_equal(tiles(page(kind="cross", layer=2, head=1)), tiles(test))  # in every snapshot


def test_tiles_of_snapshots_that_have_not_been_run_are_empty(of_grown):
    checkpoint = load(of_grown / "grown")
    link = Link(model="grown", source="abc", view=View(kind="cross", layer=0, head=0))
    trace = loading.run(checkpoint, link.query(checkpoint.content_hash))
    found = snapshot_runs.growth(seen(checkpoint, link, trace)[0])
    metas = []
    for n in (2, len(STEPS)):
        there = replace(found, found=(*found.found[:n], *[None] * (len(STEPS) - n)))
        spec = strip.plot(film_of(there)).spec
        assert np.isfinite(figure_in(spec, "en").data[0].z).sum() == n * 4 * 4
        metas.append(spec["layout"]["meta"])
    assert metas[0] == metas[1], "nothing moves as more comes"


def test_a_job_that_fails_is_not_begun_again_by_itself(page, monkeypatch):
    begun = []

    def fail(*_):
        begun.append(1)
        raise QueryError("it fails.")

    monkeypatch.setattr(snapshot_run_jobs, "_at", fail)
    test = page(kind="cross", src="failing")
    assert "it fails." in sentences(test)
    check(test.run())
    assert len(begun) == 1
    check(test.button(key="growth_begin").click().run())
    assert len(begun) == 2


def test_a_snapshot_is_on_the_device_of_the_app(own, monkeypatch):
    monkeypatch.setattr(server_options, "device", lambda: DEVICE)
    loading.let_go(lambda which: True)
    there = loading.open_checkpoint(loading.usable()["reverse"])
    assert there.device == snapshot_runs.opened(there, 1022).device == DEVICE
    loading.let_go(lambda which: True)
