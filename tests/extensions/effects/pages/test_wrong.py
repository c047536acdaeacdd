"""The page What goes wrong keeps what is changed already, leads to the next mistake, and says what it cannot show."""

import pytest

from glassformer.extensions.effects.mistake_cards import CARDS
from glassformer.extensions.effects.mistake_panels import CHART, SEEN_ON
from glassformer.state import session
from tests.extensions.scripts import WRONG
from tests.pages.conftest import check
from tests.pages.reading import address, figure, opened
from transformer.runs.interventions import parse

NAMES = [card.mistake for card in CARDS]
ABOUT = {card.mistake: str(card.said.about)[:60] for card in CARDS}


def said(test):
    """All that is said on the page, without the marks of Markdown."""
    texts = [one.value for kind in (test.markdown, test.caption, test.info, test.error, test.warning) for one in kind]
    return " ".join(texts).replace("\\", "").replace("\u2060", "")


def metrics(test):
    return [one.value for one in test.metric]


def test_the_next_mistake_is_one_click_away_and_stands_in_the_address(open_page):
    test = open_page(WRONG, model="reverse", src="glass")
    assert test.button(key="mistake_before").disabled
    for name, button in ((NAMES[1], "after"), (NAMES[2], "after"), (NAMES[1], "before")):
        check(test.button(key=f"mistake_{button}").click().run())
        assert address(test)["mistake"] == name
        assert ABOUT[name] in said(test)
    assert open_page(WRONG, model="reverse", src="glass", mistake=NAMES[-1]).button(key="mistake_after").disabled


def test_what_is_changed_already_stays_changed_on_both_sides(open_page):
    test = open_page(WRONG, model="reverse", src="glass", mistake="heads", do="unplaced-all")
    checkpoint, changes = opened("reverse"), parse("unplaced-all")
    trace = checkpoint.run(checkpoint.query("glass", interventions=changes))
    both = (*changes, *CARDS[7].change(checkpoint.config))
    wrong = checkpoint.run(checkpoint.query("glass", interventions=both, forced=trace.tgt_ids))
    assert metrics(test) == [f"{-one.log_prob / one.n_steps:.3f}" for one in (trace, wrong)]
    assert "unplaced-all" in address(test)["do"]


def test_a_leak_is_offered_where_it_can_be_seen(open_page):
    test = open_page(WRONG, model="zh-en", mistake="leak")
    assert "this model was trained without one" in said(test)
    assert not test.metric
    test.button(key=SEEN_ON).click()
    check(test.run())
    assert test.session_state[session.MODEL] == "reverse-leak"
    assert len(metrics(test)) == 2


@pytest.mark.parametrize("name", ["inverted", "nan"])
def test_a_decoder_alone_shows_what_it_can(open_one_stack, name):
    test = open_one_stack("decoder", WRONG, mistake=name)
    assert len(metrics(test)) == 2, said(test)
    assert figure(test, f"{CHART}_{name}")["data"]
