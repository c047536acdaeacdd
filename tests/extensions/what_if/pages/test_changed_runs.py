"""A link asks for a changed run, chips say what is changed, and one click drops it."""

from glassformer.extensions.what_if.what_if_panels import CHANGES, UNTOUCHED
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import check
from tests.pages.reading import address, force, opened, output, run_of, type_source
from transformer.runs.interventions import parse

CHANGE = "zero-cross.2.1"


ALL_HEADS = "_".join(f"zero-cross.{layer}.{head}" for layer in (1, 2) for head in (1, 2, 3, 4))


def chips(test):
    """What the chips of a page say."""
    return [one.label.replace("\\", "") for one in test.button if (one.key or "").startswith(f"{CHANGES}_")]


def test_a_link_changes_the_model_and_one_click_drops_that(reverse):
    test, checkpoint = reverse(src="abcdef", do=ALL_HEADS), opened("reverse")
    query = checkpoint.query("abcdef", interventions=parse(ALL_HEADS))
    assert output(test) == loading.runner().trace(checkpoint, query).output_text != "fedcba"
    assert ALL_HEADS in address(test)["do"]
    assert chips(test)[0] == "Cross-attention, layer 1, head 1: writes nothing"
    assert len(chips(test)) == 8
    test.button(key=f"{CHANGES}_0").click()
    check(test.run())
    assert address(test)["do"] == ALL_HEADS.partition("_")[2]
    test.button(key=UNTOUCHED).click()
    check(test.run())
    assert output(test) == "fedcba"
    assert not chips(test)
    assert "do" not in address(test)


def test_forced_pieces_beams_and_another_sentence_keep_a_change_and_another_model_drops_it(reverse):
    test = force(reverse(src="abcdef", do=CHANGE, how="beam", beam=2), "a")
    assert CHANGE in address(test)["do"]
    assert run_of(test)["target"][0]["piece"].endswith("a")
    query = test.session_state[session.STANDING].last_query
    assert (query.forced, query.decoding.size) == ((run_of(test)["target"][0]["id"],), 2)
    assert query.interventions == parse(CHANGE)
    test = type_source(test, "abc")
    assert CHANGE in address(test)["do"]
    check(test.sidebar.selectbox(key=session.MODEL).set_value("en-fr").run())
    assert "do" not in address(test)
    assert not chips(test)
