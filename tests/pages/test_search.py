"""How pieces are chosen: a tree, sliders that only look, and draws by their seeds, none still hidden."""

import pytest

from glassformer.search import sampling_pictures, tree_pictures
from glassformer.search import search_panels as draws
from glassformer.search import search_panels as sampling
from glassformer.search.tree_panel import DECODE_SO, DRAW_BESIDE, WHOLE
from tests.pages.conftest import SEARCH, check
from tests.pages.reading import address, figure, numbers, output, told
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer.runs.query import Beam

BEAM = {"how": "beam", "beam": 3}


@pytest.fixture(autouse=True)
def no_draws_of_other_tests():
    draws.jobs.clear()


@pytest.fixture
def beam(open_page):
    return lambda **more: open_page(SEARCH, model="reverse", src="glasses", **(BEAM | more))


def results(test):
    """What is written at the right of the tree."""
    found = next(trace for trace in figure(test, tree_pictures.tree.key)["data"] if trace["mode"] == "markers+text"
                 and "customdata" in trace)  # fmt: skip
    return found["text"]


def captions(test):
    return " ".join(one.value for one in test.caption)


def test_the_search_beside_the_run_becomes_the_run(open_page):
    test = open_page(SEARCH, model="reverse", src="glasses")
    assert "The tree shows a separate one" in captions(test)
    check(test.button(key=DECODE_SO).click().run())
    assert address(test)["how"] == "beam"
    assert "The tree shows a separate one" not in captions(test)


def test_of_a_large_model_a_search_is_offered(open_page, monkeypatch):
    monkeypatch.setattr(tree_pictures, "SMALL", 0)
    test = open_page(SEARCH, model="reverse", src="glasses")
    assert not [one for one in test.get("bidi_component") if one.key == tree_pictures.tree.key]
    check(test.button(key=DRAW_BESIDE).click().run())
    assert len(results(test)) == Beam().size
    assert address(test)["with_beam"] == "1"


def test_many_draws_open_with_fifty_where_that_is_quick(open_page):
    test = open_page(SEARCH, model="reverse", src="glasses", search="draws")
    assert not [button for button in test.button if button.key == draws.START]
    while [button for button in test.button if button.key == draws.CANCEL]:
        check(test.run())
    assert "50 draws gave" in told(test)
    long = open_page(SEARCH, model="en-fr", src="My brother and I walk to the old school every Monday.", search="draws")
    assert [button for button in long.button if button.key == draws.START]
    assert "This takes about 1 second with" in captions(long) or "This takes about 2 seconds with" in captions(long)


@pytest.mark.usefixtures("made_up_changes")
def test_the_search_of_a_changed_model_is_another_one(beam):
    own, changed = beam(), beam(do="silent-cross.1.1_silent-cross.1.2_silent-cross.1.3")
    assert results(own) != results(changed)
    assert results(changed)[0].startswith(f"1. {output(changed)}")


def test_a_forced_beginning_can_be_dropped(beam):
    test = beam(forced="5.6")
    assert "is forced here" in told(test)
    check(test.button(key=WHOLE).click().run())
    assert "is forced here" not in told(test)
    assert "forced" not in address(test)


def bars(test, key):
    return numbers(figure(test, key)["data"][0]["x"])


def test_the_sliders_only_look(open_page):
    test = open_page(SEARCH, model="reverse", src="glasses", search="sampling", how="sampling", temp=1, seed=4)
    before, text = bars(test, sampling_pictures.shares.key), output(test)
    assert not [button for button in test.button if button.key == sampling.TAKE]
    check(test.slider(key="try_temperature").set_value(3.0).run())
    after = bars(test, sampling_pictures.shares.key)
    assert after[0] < before[0]
    assert output(test) == text
    assert (address(test)["temp"], address(test)["try_temp"]) == ("1", "3")
    assert "the likeliest token at every temperature" in told(test)
    check(test.select_slider(key="try_k").set_value(1).run())
    assert list(bars(test, sampling_pictures.shares.key)[:2]) == [1.0, 0.0]
    assert "Only one token is left" in told(test)


def test_a_button_makes_them_the_runs(open_page):
    test = open_page(SEARCH, model="reverse", src="glasses", search="sampling", try_temp=2.5, try_k=4, try_p=0.9)
    assert "how" not in address(test)
    check(test.button(key=sampling.TAKE).click().run())
    found = address(test)
    assert (found["how"], found["temp"], found["k"], found["p"]) == ("sampling", "2.5", "4", "0.9")
    assert "try_temp" not in found
    assert not [button for button in test.button if button.key == sampling.TAKE]


def drawn(test):
    """Press the button, and wait until all have come."""
    check(test.button(key=draws.START).click().run())
    for _ in range(200):
        if not [button for button in test.button if button.key == draws.CANCEL]:
            break
        check(test.run())
    return test


def test_other_seeds_are_other_draws(open_page):
    test = drawn(open_page(SEARCH, model="reverse", src="ab", search="draws", draws=20))
    check(test.button(key=draws.FURTHER).click().run())
    assert address(test)["first_seed"] == "20"
    assert "Seeds 20 to 39" in told(test)
    assert [button for button in test.button if button.key == draws.START]
