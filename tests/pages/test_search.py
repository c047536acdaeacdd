"""How pieces are chosen, without a browser: its parts, models of one stack, and what stays hidden."""

import pytest

from tests.pages.conftest import ROOT, check
from tests.pages.reading import address, figure, go_to, output, sentences, view
from transformer.runs.query import Beam
from ui.search import tree
from ui.state import session

SEARCH = ROOT / "pages" / "explore" / "search.py"
BEAM = {"how": "beam", "beam": 3}


@pytest.fixture
def beam(open_page):
    return lambda **more: open_page(SEARCH, model="reverse", src="glasses", **(BEAM | more))


def marks(test):
    """The places that the tree's marks carry."""
    traces = figure(test, tree.TREE)["data"]
    return {place for trace in traces if trace["mode"] == "markers" for place in trace["customdata"]}


def results(test):
    """What is written at the right of the tree."""
    found = next(trace for trace in figure(test, tree.TREE)["data"] if trace["mode"] == "markers+text"
                 and "customdata" in trace)  # fmt: skip
    return found["text"]


def said(test):
    return "\n".join(one.value.replace("\\", "") for one in (*test.markdown, *test.caption))


def test_the_tree_ends_in_the_results_of_the_run(beam):
    test = beam()
    assert len(results(test)) == 3
    assert results(test)[0].startswith(f"1. {output(test)}")
    assert "Step 1: of" in said(test)


def test_stepping_moves_the_tree(beam):
    test = beam(rounds="step")
    before = marks(test)
    check(go_to(test, 4))
    assert len(before) < len(marks(test))
    assert max(before) < max(marks(test))
    assert "Step 4: of" in said(test)
    assert all("open, score" in text for text in results(test))
    assert figure(test, tree.TREE)["layout"]["shapes"][0]["x0"] == 3.5


def test_what_comes_next_stays_hidden(beam):
    test = beam(guess=1, rounds="all")
    assert "begins with the first piece that you reveal" in sentences(test)
    check(go_to(test, 3))
    assert len({trace["x"][0] for trace in figure(test, tree.TREE)["data"] if trace["mode"] == "markers"}) <= 3
    assert all("open, score" in text for text in results(test))


def test_a_run_that_decodes_otherwise_offers_a_search(open_page):
    test = open_page(SEARCH, model="reverse", src="glasses")
    assert "does not decode by beam search" in sentences(test)
    assert not [one for one in test.get("bidi_component") if one.key == tree.TREE]
    check(test.button(key=tree.DRAW_BESIDE).click().run())
    assert len(results(test)) == Beam().size
    assert address(test)["beside"] == "1"
    check(test.button(key=tree.DECODE_SO).click().run())
    assert address(test)["how"] == "beam"
    assert "does not decode" not in sentences(test)


def test_the_search_of_a_changed_model_is_another_one(beam):
    own, changed = beam(), beam(do="zero-cross.1.1_zero-cross.1.2_zero-cross.1.3")
    assert results(own) != results(changed)
    assert results(changed)[0].startswith(f"1. {output(changed)}")


def test_a_forced_beginning_can_be_dropped(beam):
    test = beam(forced="5.6")
    assert "is forced here" in said(test)
    check(test.button(key=tree.WHOLE).click().run())
    assert "is forced here" not in said(test)
    assert "forced" not in address(test)


def test_a_decoder_alone_has_a_tree_of_its_prompt(open_one_stack):
    test = open_one_stack("decoder", SEARCH, **BEAM)
    assert len(results(test)) == 3


def test_an_encoder_alone_says_why_there_is_nothing(open_one_stack):
    test = open_one_stack("encoder", SEARCH)
    assert "encoder alone: it reads, and writes no pieces" in sentences(test)
    assert view(test).search_panel == "tree"
    assert not [one for one in test.get("bidi_component") if one.key != session.STEPPER]
