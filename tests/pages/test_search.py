"""How pieces are chosen: a tree, sliders that only look, and draws by their seeds, none still hidden."""

import pytest

from glassformer.search import sampling_pictures, search_panels, tree_pictures
from glassformer.search.tree_panel import DECODE_SO, DRAW_BESIDE, WHOLE
from tests.pages.conftest import SEARCH, check
from tests.pages.reading import address, choose, figure, keys_of, numbers, output, press, told
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer.runs.query import Beam

BEAM = {"how": "beam", "beam": 3}
SEPARATE = "The tree shows a separate one"


@pytest.fixture(autouse=True)
def no_draws_of_other_tests():
    search_panels.jobs.clear()


@pytest.fixture
def search(open_page):
    return lambda **more: open_page(SEARCH, **{"model": "reverse", "src": "glasses"} | more)


def buttons(test):
    return {button.key for button in test.button}


def results(test):
    """What is written at the right of the tree."""
    traces = figure(test, tree_pictures.tree.key)["data"]
    return next(one["text"] for one in traces if one["mode"] == "markers+text" and "customdata" in one)


def test_the_search_beside_the_run_becomes_the_run(search):
    test = search()
    assert SEPARATE in told(test)
    press(test, DECODE_SO)
    assert address(test)["how"] == "beam"
    assert SEPARATE not in told(test)


def test_of_a_large_model_a_search_is_offered(search, monkeypatch):
    monkeypatch.setattr(tree_pictures, "SMALL", 0)
    test = search()
    assert tree_pictures.tree.key not in keys_of(test)
    press(test, DRAW_BESIDE)
    assert len(results(test)) == Beam().size
    assert address(test)["with_beam"] == "1"


@pytest.mark.usefixtures("made_up_changes")
def test_the_search_of_a_changed_model_is_another_one(search):
    own, changed = search(**BEAM), search(**BEAM, do="silent-cross.1.1_silent-cross.1.2_silent-cross.1.3")
    assert results(own) != results(changed)
    assert results(changed)[0].startswith(f"1. {output(changed)}")


def test_a_forced_beginning_can_be_dropped(search):
    test = search(**BEAM, forced="5.6")
    assert "is forced here" in told(test)
    press(test, WHOLE)
    assert "is forced here" not in told(test)
    assert "forced" not in address(test)


def shares(test):
    return numbers(figure(test, sampling_pictures.shares.key)["data"][0]["x"])


def test_the_sliders_only_look(search):
    test = search(search="sampling", how="sampling", temp=1, seed=4)
    before, text = shares(test), output(test)
    assert search_panels.TAKE not in buttons(test)
    choose(test, "try_temperature", 3.0)
    assert shares(test)[0] < before[0]
    assert output(test) == text
    assert (address(test)["temp"], address(test)["try_temp"]) == ("1", "3")
    assert "the likeliest token at every temperature" in told(test)
    choose(test, "try_k", 1)
    assert list(shares(test)[:2]) == [1.0, 0.0]
    assert "Only one token is left" in told(test)


def test_a_button_makes_them_the_runs(search):
    test = search(search="sampling", try_temp=2.5, try_k=4, try_p=0.9)
    assert "how" not in address(test)
    press(test, search_panels.TAKE)
    assert address(test).items() >= {"how": "sampling", "temp": "2.5", "k": "4", "p": "0.9"}.items()
    assert "try_temp" not in address(test)
    assert search_panels.TAKE not in buttons(test)


def drawn(test):
    """Wait until all draws have come."""
    while search_panels.CANCEL in buttons(test):
        check(test.run())
    return test


def test_many_draws_open_with_fifty_where_that_is_quick(search):
    test = search(search="draws")
    assert search_panels.START not in buttons(test)
    assert "50 draws gave" in told(drawn(test))
    long = search(model="en-fr", src="My brother and I walk to the old school every Monday.", search="draws")
    assert search_panels.START in buttons(long)
    assert "This takes about 1 second with" in told(long) or "This takes about 2 seconds with" in told(long)


def test_other_seeds_are_other_draws(search):
    test = drawn(press(search(src="ab", search="draws", draws=20), search_panels.START))
    press(test, search_panels.FURTHER)
    assert address(test)["first_seed"] == "20"
    assert "Seeds 20 to 39" in told(test)
    assert search_panels.START in buttons(test)
