"""The Step page shows one run, each of its steps and every branch that a reader forces; a step runs no model."""

import pytest

from glassformer.runs import loading
from glassformer.state import session
from glassformer.step.step_panels import FORCE_CHOICE, FORCE_OFFER, FORCE_PLACE
from tests.pages.conftest import PAGES, STEP, check
from tests.pages.reading import (
    address,
    choose,
    force,
    go_to,
    labels,
    output,
    press,
    run_of,
    sentences,
    step,
    type_source,
)

MARKUP = "<img src=x onerror=alert(1)>"
SIX = {"src": "abcdef"}


def take(test, option):
    """Click one of the listed outputs, which the browser names by its forced pieces and its place in a beam."""
    return check(test.radio[0].set_value(option).run())


OWN = ((), 0)


# ---------------------------------------------------------------- runs


def test_another_checkpoint_brings_its_own_example(open_page, checkpoint_folder, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(checkpoint_folder.parent))
    test = open_page(STEP, model="reverse", layer=2, head=3, step=4, how="sampling", seed=7)
    choose(test, session.MODEL, "tiny")
    assert test.text_input(key=session.SOURCE).value == "ba lo mi ta"
    assert run_of(test)["source"][-1]["piece"] == "</s>"
    assert (step(test), test.slider(key=session.MAX_NEW).value) == (1, 32)
    assert address(test)["model"] == "tiny"
    choose(test, session.MODEL, "reverse")
    assert (test.text_input(key=session.SOURCE).value, test.slider(key=session.MAX_NEW).value) == ("glass", 13)
    choose(type_source(test, "abcdef"), session.MAX_NEW, 3)
    assert (output(test), step(test), run_of(test)["cut"]) == ("fed", 1, True)  # an output that was cut says so
    assert not sentences(test)


def test_beam_search_lists_its_results_and_shows_each(reverse):
    test = reverse(src="abc", how="beam", beam=3)
    before = labels(test)
    texts = [label.split()[1] for label in before]
    assert [label.split()[0] for label in before] == ["**1.**", "**2.**", "**3.**"]
    assert texts[0] == output(test) == "cba"
    ran = loading.runner().n_runs
    take(test, ((), 2))
    assert output(test) == texts[2] != "cba"
    assert address(test)["result"] == "3"
    assert loading.runner().n_runs == ran + 1  # a result is traced when it is looked at
    assert labels(take(test, OWN)) == before
    assert output(test) == "cba"


def test_the_same_seed_draws_the_same(reverse):
    request = {**SIX, "how": "sampling", "temp": 3, "seed": 5}
    test, other = reverse(**request), reverse(**request)
    assert output(test) == output(other)
    assert labels(force(test, "z"))[0] == f"**Original draw** {output(other)}"
    choose(test, session.SEED, 6)
    assert output(test) != output(other)
    assert address(test)["seed"] == "6"


# ---------------------------------------------------------------- steps and branches


def test_no_step_calls_the_model(reverse):
    test = force(reverse(**SIX), "z")
    ran = loading.runner().n_runs
    for number in (2, 7, 1):
        assert step(go_to(test, number)) == number
        assert address(test).get("step") == (str(number) if number > 1 else None)
    assert loading.runner().n_runs == ran


def test_a_forced_piece_branches_and_one_click_returns(reverse):
    test = force(go_to(reverse(**SIX), 3), "z")
    assert output(test).startswith("fez")
    assert (step(test), address(test)["step"]) == (3, "3")
    assert [chip.get("forced", False) for chip in run_of(test)["target"]][:4] == [False, False, True, False]
    assert labels(test) == ["**Model's own choice** fedcba", f"**Step 3: z** {output(test)}"]
    assert test.text_input(key=FORCE_CHOICE).value == ""
    branch = test.radio[0].value
    assert output(take(test, OWN)) == "fedcba"
    assert "forced" not in address(test)
    assert labels(test)[1].startswith("**Step 3: z** fez")  # still there to go back to
    assert output(take(test, branch)).startswith("fez")
    type_source(test, "noon")  # branches belong to their sentence
    assert (output(test), labels(test)) == ("noon", [])  # one output is no choice
    assert "forced" not in address(test)
    assert labels(type_source(test, "abcdef")) == []


def test_every_branch_that_was_tried_is_in_the_address(reverse, open_page):
    test = force(go_to(reverse(**SIX), 3), "z")
    assert "tried" not in address(test)  # it is the one that is forced
    force(go_to(take(test, OWN), 2), "q")
    assert len(labels(test)) == 3
    again = open_page(STEP, **address(test))
    assert (labels(again), output(again)) == (labels(test), output(test))
    elsewhere = open_page(PAGES["attention"], **address(test))
    assert address(elsewhere) == address(test)  # kept on the way through other pages
    assert "tried" not in address(type_source(again, "noon"))


def test_branches_of_beam_search_keep_its_results(reverse):
    test = reverse(src="abc", how="beam", beam=2, forced=12, result=2)
    assert output(test).startswith("z")
    assert [label.split()[0] for label in labels(test)] == ["**1.**", "**2.**", "**Model's", "**Step"]
    assert labels(test)[2] == "**Model's own choice** cba"
    assert [radio.value for radio in test.radio] == [((12,), 1)] * 2


# ---------------------------------------------------------------- what cannot be forced


def refusal(test):
    """What is said at the field, without the escapes."""
    place = next(block for block in test.get("flex_container") if block.proto.id.endswith(FORCE_PLACE))
    return "\n".join(caption.value.replace("\\", "").replace("\u2060", "") for caption in place.caption)


def offers(test):
    return {button.label.replace("\\", ""): button.key for button in test.button if FORCE_OFFER in button.key}


def test_what_cannot_be_forced_is_refused_at_the_field_until_the_next_try_or_step_and_the_run_stays(reverse):
    test = reverse(**SIX)
    for piece, said in ((MARKUP, "is not a single token"), ("<pad>", "never written")):
        force(test, piece)
        assert said in refusal(test)
        assert sentences(test) == ""  # nothing above the fold
        assert test.text_input(key=FORCE_CHOICE).value == piece
        assert output(test) == "fedcba"
        assert "forced" not in address(test)
    force(test, "nor this")
    assert refusal(test).startswith("“nor this” is not a single token of this model's vocabulary.")
    assert refusal(test).count("\n") == 0
    assert [*offers(test)] == ["n"]
    go_to(test, 2)
    assert (refusal(test), test.text_input(key=FORCE_CHOICE).value) == ("", "")
    force(force(test, "nor this"), "z")
    assert (refusal(test), output(test)[:2]) == ("", "fz")


@pytest.mark.parametrize(("model", "text", "first"), [("en-fr", "ordinateurs", "▁ordinateur"), ("reverse", "xyz", "x")])
def test_the_pieces_a_text_begins_with_are_offered_and_one_click_forces(open_page, model, text, first):
    test = force(open_page(STEP, model=model), text)
    assert next(iter(offers(test))) == first
    written = run_of(press(test, offers(test)[first]))["target"][0]
    assert (written["piece"], written["forced"]) == (first, True)
    assert (refusal(test), test.text_input(key=FORCE_CHOICE).value) == ("", "")
