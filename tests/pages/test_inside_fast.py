"""The speed-ups on the Inside page: tiles end where the model does, blocks fill, and gains are measured once."""

import pytest

from glassformer.inside import speedups_panel as fast
from glassformer.runs import measurement_jobs
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import charts_of, figure, go_to, keys_of, numbers, payload, told
from transformer.analysis.speed_gains import Gains

CHARTS = {"tile_scores", "tile_output", "cache_blocks", "cache_places"}


@pytest.fixture
def page(open_page):
    return lambda **options: open_page(INSIDE, **{"model": "reverse", "src": "abcdef", "inside": "fast"} | options)


@pytest.fixture
def fresh(monkeypatch):
    """No measurement of another test."""
    measurement_jobs.studies.clear()
    yield monkeypatch
    measurement_jobs.studies.clear()


def rows(test, key):
    return payload(test, key)["said"]["table"]["rows"]


def test_blocks_fill_with_the_step(page):
    test, held = page(block=2), []
    for step in (1, 2, 3, 4):
        go_to(test, step)
        cells = numbers(figure(test, "cache_blocks")["data"][0]["z"])
        assert (cells > 0).sum() == step
        assert (cells == 2).sum() == 1
        held.append(len(cells))
        filled, _ = figure(test, "cache_places")["data"]
        assert numbers(filled["x"]).tolist() == [step, step]
    assert held == [1, 1, 2, 2]


def test_models_of_one_stack_have_what_they_can_have(open_one_stack):
    test = open_one_stack("decoder", INSIDE, inside="fast")
    assert charts_of(test) >= CHARTS
    test = open_one_stack("encoder", INSIDE, inside="fast")
    assert charts_of(test) >= {"tile_scores", "tile_output"}
    assert not charts_of(test) & {"cache_blocks", "cache_places"}
    assert "keeps no KV cache" in told(test)
    assert "int8" not in told(test)


def test_what_is_measured_is_measured_once_for_all_and_only_when_asked(page, fresh, open_page):
    begun = []

    def measuring(config):
        begun.append(config)
        yield from ()
        return Gains(2.0, None, 1.0, 1.6, compile_seconds=30.0)

    fresh.setattr(fast.speed_gains, "measuring", measuring)
    test = page()
    assert begun == []
    assert f"{fast.GAINS}_table" not in keys_of(test)
    check(test.button(key=f"{fast.GAINS}_begin").click().run())
    for job in measurement_jobs.studies()._kept.values():
        job.over.wait(10)
    check(test.run())
    table = test.dataframe[0].value
    assert table["Times as fast"].tolist() == [1.0, 2.0, 1.25]
    assert "Compiling took 30 s, which pays off after about 75,000 tokens." in told(test)
    assert "about 75,000 tokens" in told(page())  # another visitor has it, too
    assert len(begun) == 1
