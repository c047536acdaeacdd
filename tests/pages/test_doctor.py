"""The Doctor page: what it says of examinations that are done, under way, stopped and refused."""

import re
import time

import pytest

from tests.pages.conftest import DOCTOR
from transformer.doctor.patient import Test
from transformer.doctor.report import Measured, Shown, not_applicable
from ui.doctor import asking
from ui.doctor.examinations import Examinations
from words import say

SECONDS = 20.0
BROKEN = Measured(
    verdict="broken",
    number=0.25,
    threshold=0.0,
    said=say("Earlier logits moved by 0.25."),
    why=say("Nothing but 0 is right."),
    meaning=say("The model sees the future."),
    causes=say("No causal mask."),
    places=("decoder.0", "*decoder*"),
    shown=Shown(page="masks", panel="checks", source="ab", layer=1, head=2),
)


def named(name, measured, area="wiring"):
    return Test(name, area, say("A test called {name}", name=name), lambda patient: measured)


WELL = named("well", Measured(verdict="well", said=say("As it should be."), why=say("A reason.")))
LOOK = named("look", Measured(verdict="look", said=say("Odd.")), area="attention")
NOT = named("not", not_applicable(say("There is no decoder.")))


@pytest.fixture
def examine_with(monkeypatch):
    """A function that has the page examine with these tests alone."""

    def use(*tests, **options):
        found = Examinations(is_busy=lambda: False, tests=tests, **options)
        monkeypatch.setattr(asking, "examinations", lambda: found)
        return found

    return use


def until_done(test):
    """Run the page until its examination is over."""
    end = time.monotonic() + SECONDS
    while any(button.key == "stop_examination" for button in test.button):
        assert time.monotonic() < end
        time.sleep(0.02)
        test.run()
        assert not test.exception
    return test


def plain(texts):
    return [re.sub(r"\\(.)", r"\1", one.value).replace("\u2060", "") for one in texts]


def link_of(test):
    return next(one for one in test.get("page_link") if "Masks" in one.proto.label).proto


def test_it_begins_with_the_sentence_that_sums_up_and_says_what_is_wrong_first(open_page, examine_with):
    examine_with(WELL, LOOK, named("broken", BROKEN), NOT)
    test = until_done(open_page(DOCTOR, model="reverse"))
    assert plain(test.error) == ["reverse is broken: 1 test says so."]
    assert [one.value for one in test.subheader] == [
        ":material/error: Broken: 1 test",
        ":material/visibility: Look at this: 1 test",
    ]
    shown = plain(test.markdown)
    assert ":material/error: **A test called broken**: broken" in shown
    assert "**What it means.** The model sees the future." in shown
    assert "**Usual causes.** No causal mask." in shown
    assert "**Where.** “decoder.0”, “*decoder*”" in shown
    assert "Measured: 0.25. Threshold: 0. Nothing but 0 is right." in plain(test.caption)
    assert [one.label for one in test.expander][:2] == ["Well: 1 test", "Not applicable: 1 test"]


def test_a_healthy_model_is_said_to_be(open_page, examine_with):
    examine_with(WELL, NOT)
    test = until_done(open_page(DOCTOR, model="reverse"))
    assert plain(test.success) == ["reverse is healthy: 1 test found nothing wrong."]
    assert not test.error
    assert not test.warning
    assert any("5 sentences of the checkpoint's examples were used." in one for one in plain(test.caption))
