"""The page Teacher forcing judges a reference, which stands in the address, beside what the model writes."""

import re

import numpy as np
import pytest

from glassformer.forcing import ForcingLook, forcing_panels, forcing_pictures
from glassformer.state import session
from tests.pages.conftest import FORCING, check
from tests.pages.reading import address, figure, keys_of, numbers, opened, view
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer import score

pytestmark = pytest.mark.usefixtures("made_up_changes")
CHARTS = tuple(forcing_pictures.JUDGED.pictures)


@pytest.fixture
def forcing(open_page):
    return lambda **parameters: open_page(FORCING, **({"model": "reverse", "src": "abcdef"} | parameters))


def type_reference(test, text):
    return check(test.text_input(key=forcing_panels.BOX).set_value(text).run())


def said(test):
    return "\n".join(one.value for one in test.markdown).replace("\\", "")


def scored(reference, *, source="abcdef", model="reverse", **changes):
    checkpoint = opened(model)
    return score(checkpoint, checkpoint.query(source, **changes), reference)


def losses(test):
    return numbers(figure(test, forcing_pictures.losses.key)["data"][0]["y"])


def test_without_a_reference_it_asks_for_one_and_judges_the_output_meanwhile(forcing):
    test = forcing(src="fedcba")  # no example of the card, which has a reference of its own
    assert test.info[0].value == forcing_panels.ITS_OWN
    assert test.text_input(key=forcing_panels.BOX).value == ""
    assert "ref" not in address(test)
    np.testing.assert_allclose(losses(test), scored("abcdef", source="fedcba").losses, rtol=1e-4)
    check(test.button(key=forcing_panels.OWN).click().run())
    assert address(test)["ref"] == "abcdef"
    assert test.info[0].value == forcing_panels.ITS_OWN
    assert test.text_input(key=forcing_panels.BOX).label == "Text judged: the model's own output"
    assert keys_of(test) >= set(CHARTS) - {forcing_pictures.texts.key}
    judges_nothing_by_itself(test)


def judges_nothing_by_itself(test):
    """No verdict on the model's own output by itself: all of them would be good."""
    page = said(test) + "".join(one.label for one in test.text_input)
    assert not re.search("on its own, the model writes|first choice is the right|right token", page, re.IGNORECASE)
    assert forcing_pictures.texts.key not in keys_of(test)


@pytest.mark.parametrize(
    ("given", "how"),
    [(False, {"do": "silent-cross.1.1"}), (True, {}), (True, {"how": "sampling", "temp": 1, "seed": 5})],
)
def test_the_own_output_is_never_called_a_reference(forcing, given, how):
    checkpoint, source = opened("reverse"), "fedcba"
    test = forcing(src=source, **how)
    own = test.session_state[session.STANDING].last_query
    text = checkpoint.run(own).output_text
    test = forcing(src=source, **how, **({"ref": text} if given else {}))
    judges_nothing_by_itself(test)
    assert [one.value for one in test.info][:1] == [forcing_panels.ITS_OWN]


def test_a_typed_reference_is_judged(forcing):
    test, expected = type_reference(forcing(), "fedxba"), scored("fedxba")
    np.testing.assert_allclose(losses(test), expected.losses, rtol=1e-4)
    assert test.dataframe[0].value["piece"].tolist() == list(expected.pieces)


def test_a_reference_belongs_to_its_sentence(forcing):
    test = forcing(ref="fedcba")
    check(test.text_input(key=session.SOURCE).set_value("xyz").run())
    assert "ref" not in address(test)
    assert test.text_input(key=forcing_panels.BOX).value == ""
    check(test.text_input(key=session.SOURCE).set_value("abcdef").run())
    assert test.text_input(key=forcing_panels.BOX).value == "fedcba"


def test_the_cards_translation_of_an_example_is_offered(open_page):
    test = open_page(FORCING)
    assert test.text_input(key=forcing_panels.BOX).value == "I like drinking coffee."
    assert "ref" not in address(test)
    type_reference(test, "I like coffee.")
    assert address(test)["ref"] == "I like coffee."
    check(test.button(key=forcing_panels.OF_CARD).click().run())
    assert test.text_input(key=forcing_panels.BOX).value == "I like drinking coffee."
    assert "ref" not in address(test)


def test_a_decoder_alone_judges_its_text_and_then_a_reference(open_one_stack):
    test = open_one_stack("decoder", FORCING, src="ba lo mi ta")
    assert forcing_pictures.texts.key not in keys_of(test)
    assert "These are the losses of the prompt itself" in said(test)
    n = len(losses(test))
    test = type_reference(test, "ba lo")
    assert forcing_pictures.texts.key in keys_of(test)
    before = len(losses(test))
    assert before != n
    check(test.toggle(key="ends").set_value(True).run())
    assert len(losses(test)) == before + 1
    assert address(test)["ends"] == "1"
    check(test.button(key=forcing_panels.NONE).click().run())
    assert len(losses(test)) == n + 1
    assert view(test).of(ForcingLook).at is None
