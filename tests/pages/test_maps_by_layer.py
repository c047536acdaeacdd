"""The Attention page on a text that is too long for its maps to be kept, without a browser: nothing is missing."""

import pytest

from glassformer.runs import loading
from glassformer.server import model_runner
from tests.pages.reading import figure
from tests.pages.test_attention import ATTENTION


@pytest.fixture
def no_room(monkeypatch):
    """No run has room for its maps."""
    monkeypatch.setattr(model_runner, "MAP_BYTES", 0)
    loading.runner.clear()
    yield
    loading.runner.clear()


def seen(open_page):
    """The charts of the Attention page that need maps of one layer, and of all."""
    view = {"model": "reverse", "src": "abcdef", "kind": "decoder"}
    head = open_page(ATTENTION, panel="head", layer=1, head=2, **view)
    tiles = open_page(ATTENTION, panel="overview", **view)
    table = open_page(ATTENTION, panel="table", **view)
    walk = open_page(ATTENTION, panel="walk", **view)
    return (
        figure(head, "head_map")["data"],
        figure(tiles, "overview_decoder")["layout"]["meta"],
        figure(tiles, "overview_cross")["layout"]["meta"],
        figure(table, "head_table_map")["data"],
        [one.value for one in walk.markdown],
    )


def test_what_is_drawn_is_what_is_drawn_of_a_run_that_keeps_its_maps(open_page, request):
    kept = seen(open_page)
    assert all(kept)
    request.getfixturevalue("no_room")
    assert seen(open_page) == kept
    assert not any(trace.keeps_maps for trace in _traces())


def _traces():
    cache = loading.runner()._cache
    found = [kept.result for key, kept in cache.items() if hasattr(kept.result, "keeps_maps")]
    assert found
    return found
