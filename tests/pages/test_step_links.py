"""The Step page follows its address and the Back button, says what is wrong in a link, and hides what comes."""

import pytest

from glassformer.runs import loading
from glassformer.state import session
from glassformer.step import step_panels, step_pictures
from tests.pages.conftest import PAGES, STEP, check
from tests.pages.reading import (
    address,
    choose,
    everything,
    figure,
    force,
    go_back,
    go_to,
    labels,
    output,
    payload,
    run_of,
    sentences,
    step,
    type_source,
)

MARKUP = "<img src=x onerror=alert(1)>"


# ---------------------------------------------------------------- sources that need a word


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("a" * 5_000, "The source has 5,000 characters; the limit is 4,000."),
        ("abcdefghijklmnop", "The source has 17 tokens; reverse reads at most 13."),
    ],
)
def test_a_source_that_is_too_long_keeps_the_last_result(reverse, source, said):
    test = type_source(type_source(reverse(), "abcdef"), source)
    assert said in sentences(test)
    assert "The previous result is still shown below." in [caption.value for caption in test.caption]
    assert output(test) == "fedcba"
    assert address(test)["src"] == "abcdef"  # a reload shows the last result again, not an error
    assert output(type_source(test, "ab")) == "ba"
    assert not test.error


def test_unknown_writing_is_run_and_explained(reverse):
    test = reverse()
    for source in ("😀🏳️‍🌈" + "ا" * 8, "\u202ea\0b"):
        type_source(test, source)
        assert "This model has never seen" in sentences(test)
        assert any(chip.get("unknown") for chip in run_of(test)["source"])
        assert not test.error


def test_markup_is_text(open_page, checkpoint_folder, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(checkpoint_folder.parent))
    test = open_page(STEP, model="tiny", src=MARKUP)
    assert run_of(test)["source"][1]["piece"].startswith("<")
    shown = [element.value for kind in (test.info, test.markdown, test.caption) for element in kind]
    assert not any("<" in text.replace("\\<", "") for text in shown)
    assert not any(element.proto.unsafe_allow_javascript for element in test.get("html"))


# ---------------------------------------------------------------- the address


def standing(test):
    return output(test), step(test), labels(test)


def test_a_reload_and_a_pasted_link_show_the_same(reverse, open_page):
    test = force(go_to(reverse(src="abcdef", layer=1, head=2), 3), "z")
    again = open_page(STEP, **address(test))
    assert run_of(again) == run_of(test)
    assert standing(again) == standing(test)
    assert figure(again, "cross_map") == figure(test, "cross_map")
    assert sentences(again) == sentences(test)


def test_back_returns_to_the_former_state(reverse):
    test = type_source(reverse(), "abcdef")
    former = address(test)
    branch = address(force(go_to(test, 4), "z"))
    go_back(test, former)
    assert (output(test), step(test)) == ("fedcba", 1)
    assert payload(test, session.STEPPER)["step"] == 0
    assert address(test) == former
    go_back(test, branch)  # and Forward
    assert (output(test)[:4], step(test)) == ("fedz", 4)
    go_back(test, {"model": "reverse"})
    assert (output(test), test.text_input(key=session.SOURCE).value) == ("ssalg", "glass")


def test_a_step_that_overtakes_the_address_is_no_back_button(reverse):
    """The browser reports a step with the address it had before it heard of the newest one."""
    test = reverse(src="abcdef")
    stale = address(test)
    go_to(test, 2)
    for number in (3, 5):
        test.query_params.clear()
        test.query_params.update(stale)
        assert step(go_to(test, number)) == number
    assert address(test)["step"] == "5"
    assert step(go_back(test, stale)) == 1  # now nothing else has changed: this is the Back button


def test_a_page_without_a_run_says_what_is_wrong_in_a_link_and_notes_go_when_the_reader_goes_on(open_page, reverse):
    says_what_is_wrong_in_a_link(open_page, "checkpoints")
    assert sentences(type_source(reverse(step=9999), "abc")) == ""


def says_what_is_wrong_in_a_link(open_page, name):
    """Check what a page says of a link to a model that there is not and a step that is none."""
    test = check(open_page(PAGES[name], model="nope", step="9999x", doctor="findings"))
    assert "The checkpoint “nope” does not exist or cannot be opened" in sentences(test)
    assert "9999x" in sentences(test)
    assert not check(open_page(PAGES[name], model="reverse", doctor="findings")).info


def test_that_the_app_is_presented_is_nothing_that_a_link_asks_for(reverse):
    test = force(go_to(reverse(src="abcdef", present=1), 2), "z")
    assert sentences(test) == ""
    before = standing(test)
    for presented in ({"present": "1"}, {}):
        assert standing(go_back(test, address(test) | presented)) == before


# ---------------------------------------------------------------- guessing


def reveal(test, text):
    test.text_input(key=step_panels.GUESSED_PIECE).set_value(text)
    return check(next(button for button in test.button if button.label == "Reveal").click().run())


def test_a_guess_that_cannot_be_judged_is_asked_again_and_one_that_can_reveals_the_step(reverse):
    test = reveal(reverse(src="abcdef", guess=1, step=3), "她")
    assert "“她” does not begin with any token of this model's vocabulary. Guess again" in sentences(test)
    assert not test.success
    assert payload(test, session.STEPPER)["revealed_step"] is None
    assert test.text_input(key=step_panels.GUESSED_PIECE).value == "她"
    assert "e → d" not in everything(test)
    reveal(test, "d")
    assert "does not begin with any token" not in sentences(test)
    assert len(test.success) == 1
    assert "Right. The model gave “d” a probability of" in sentences(test)
    assert payload(test, session.STEPPER)["revealed_step"] == 2
    assert payload(test, step_pictures.candidates.key)
    assert "e → d" in everything(test)
    assert "d → c" not in everything(test)
    go_to(test, 4)
    assert payload(test, session.STEPPER)["revealed_step"] is None
    assert "Right." not in sentences(test)
    reveal(test, "")  # nobody has to guess
    assert payload(test, session.STEPPER)["revealed_step"] == 3
    assert not test.success


def test_guess_mode_does_not_name_a_later_branch(reverse):
    test = choose(force(go_to(reverse(src="abcdef"), 5), "z"), "guess", True)
    for number, piece in ((2, "?"), (6, "z")):
        assert labels(go_to(test, number))[1].startswith(f"**Step 5: {piece}**")
