"""The page What goes wrong: the menu has what changes the sentence first, links lead on, old addresses open."""

import re
from html import unescape
from urllib.parse import parse_qs

import pytest

from glassformer.extensions.effects.mistake_panels import MAP
from glassformer.extensions.effects.mistake_runs import all_changes, shown
from glassformer.extensions.wirings.catalogue import texts
from glassformer.state import session
from tests.extensions.effects.test_cards import Job
from tests.extensions.scripts import WRONG
from tests.pages.conftest import MASKS, check
from tests.pages.reading import address, figure, opened
from transformer.i18n.sentence import digits
from transformer.runs.interventions import parse, write

NOTHING = " – changes nothing in this sentence"


def said(test):
    """All that is said on the page, without the marks of Markdown."""
    texts = [one.value for kind in (test.markdown, test.caption, test.info, test.error, test.warning) for one in kind]
    return " ".join(texts).replace("\\", "").replace("\u2060", "")


def metrics(test):
    return [one.value for one in test.metric]


def menu(test):
    """The options of the menu of mistakes."""
    return test.selectbox(key="mistake").options


def links(test):
    """The links to other cards: the label of each, and what its address says."""
    rows = " ".join(one.proto.body for one in test.get("html"))
    return {label: parse_qs(unescape(query)) for query, label in re.findall(r'href="wrong\?([^"]*)">([^<]*)<', rows)}


def test_mistakes_that_change_the_sentence_come_first_each_one_click_from_the_next(open_page):
    test = open_page(WRONG, model="reverse", src="glass")
    checkpoint = opened("reverse")
    there = shown(checkpoint.config)
    flags = dict(zip(there, all_changes(checkpoint, checkpoint.query("glass"), Job()), strict=True))
    order = sorted(there, key=lambda name: not flags[name])
    for _ in range(60):  # until the job has found all
        if menu(test) == [texts()[one].title + NOTHING * (not flags[one]) for one in order]:
            break
        check(test.run())
    else:
        pytest.fail(str(menu(test)))
    assert test.button(key="mistake_before").disabled
    for name, button in ((order[1], "after"), (order[2], "after"), (order[1], "before")):
        check(test.button(key=f"mistake_{button}").click().run())
        assert address(test)["mistake"] == name
        assert str(texts()[name].about)[:60] in said(test)
    assert open_page(WRONG, model="reverse", src="glass", mistake=order[-1]).button(key="mistake_after").disabled


def test_the_way_a_mistake_is_made_and_the_map_are_chosen_and_forgotten_with_it(open_page):
    asked = {"variant": "miswired-decoder.2.future", "map": "decoder.2.1"}
    test = open_page(WRONG, model="reverse", src="glass", mistake="no-causal-mask", **asked)
    assert {name: address(test)[name] for name in asked} == asked
    assert "layer 2, head 1" in figure(test, f"{MAP}_no-causal-mask_0")["layout"]["title"]["text"]
    check(test.selectbox(key="variant").set_value("causal-off").run())
    assert address(test)["variant"] == "causal-off"
    check(test.selectbox(key="mistake").set_value("causal-inverted").run())
    assert not {"variant", "map"} & set(address(test))


def test_what_is_changed_already_stays_changed_on_both_sides(open_page):
    test = open_page(WRONG, model="reverse", src="zxcvb", mistake="heads-number", do="unplaced-all")
    checkpoint, changes = opened("reverse"), parse("unplaced-all")
    trace = checkpoint.run(checkpoint.query("zxcvb", interventions=changes))
    both = (*changes, *shown(checkpoint.config)["heads-number"][0].changes)
    wrong = checkpoint.run(checkpoint.query("zxcvb", interventions=both, forced=trace.tgt_ids))
    assert metrics(test) == [digits(-one.log_prob / one.n_steps) for one in (trace, wrong)]
    assert "unplaced-all" in address(test)["do"]


def test_a_card_leads_to_those_that_look_alike_and_to_a_model_that_was_trained_so(open_page):
    test = open_page(WRONG, model="zh-en", mistake="no-causal-mask")
    found = links(test)
    trained = found.pop("A model that was trained so")
    assert (trained["model"], trained["mistake"]) == (["reverse-leak"], ["no-causal-mask"])
    there = [one for one in texts()["no-causal-mask"].alike if one in shown(opened("zh-en").config)]
    assert {label: query["mistake"] for label, query in found.items()} == {texts()[one].title: [one] for one in there}
    leak = open_page(WRONG, **{name: value for name, (value,) in trained.items()})
    assert leak.session_state[session.MODEL] == "reverse-leak"
    assert "A model that was trained so" not in links(leak)
    before, after = metrics(leak)
    assert float(before) > 1
    assert "10⁻" in after


def test_links_to_other_pages_make_the_mistake_there(open_page, monkeypatch):
    made = {}
    monkeypatch.setattr("glassformer.shared.menu.link", lambda path, label, there, **_: made.setdefault(path, there))
    open_page(WRONG, model="reverse", src="glass", mistake="padding-on-rows")
    own = shown(opened("reverse").config)["padding-on-rows"][0].changes
    assert set(made) == {"compare", texts()["padding-on-rows"].page}
    there = made[texts()["padding-on-rows"].page]
    assert write(there.interventions) == "pads-4_" + write(own)
    assert there.view.get("masks_panel") == texts()["padding-on-rows"].panel
    open_page(MASKS, model="reverse", src="glass", do=write(there.interventions))
    back = made.pop("wrong")
    assert (back.view.get("mistake"), back.interventions) == ("padding-on-rows", ())
    open_page(MASKS, model="reverse", src="glass", do="zero-cross.1.1")  # no mistake that anybody makes
    assert "wrong" not in made


@pytest.mark.parametrize(
    ("stack", "name", "why"),
    [
        ("encoder", "no-causal-mask", "generates no output"),
        ("decoder", "padding-on-rows", "Choose another mistake"),
        ("decoder", "targets-not-shifted", "Choose another mistake"),
    ],
)
def test_a_model_of_one_stack_says_why_it_cannot_make_a_mistake_and_keeps_the_code(open_one_stack, stack, name, why):
    test = open_one_stack(stack, WRONG, mistake=name)
    assert why in said(test)
    assert not metrics(test)
    assert texts()[name].right.strip() in [one.value.strip() for one in test.code]
