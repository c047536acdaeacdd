"""The page Teacher forcing judges a reference, which stands in the address, beside what the model writes."""

import re

import numpy as np
import pytest

from glassformer.forcing import ForcingLook, forcing_panels, forcing_pictures
from tests.pages.conftest import FORCING
from tests.pages.reading import address, choose, figure, keys_of, numbers, opened, press, told, type_source, view
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer import score

pytestmark = pytest.mark.usefixtures("made_up_changes")
BOX, TEXTS = forcing_panels.BOX, forcing_pictures.texts.key
CHARTS = {*forcing_pictures.JUDGED.pictures}


@pytest.fixture
def forcing(open_page):
    return lambda **parameters: open_page(FORCING, **({"model": "reverse", "src": "abcdef"} | parameters))


def box(test):
    return test.text_input(key=BOX).value


def scored(reference, source="abcdef"):
    checkpoint = opened("reverse")
    return score(checkpoint, checkpoint.query(source), reference)


def losses(test):
    return numbers(figure(test, forcing_pictures.losses.key)["data"][0]["y"])


def test_without_a_reference_it_asks_for_one_and_judges_the_output_meanwhile(forcing):
    test = forcing(src="fedcba")  # no example of the card, which has a reference of its own
    assert (box(test), "ref" in address(test)) == ("", False)
    np.testing.assert_allclose(losses(test), scored("abcdef", "fedcba").losses, rtol=1e-4)
    press(test, forcing_panels.OWN)
    assert address(test)["ref"] == "abcdef"
    assert test.text_input(key=BOX).label == "Text judged: the model's own output"
    assert keys_of(test) >= CHARTS - {TEXTS}
    judges_nothing_by_itself(test)


def judges_nothing_by_itself(test):
    """No verdict on the model's own output by itself: all of them would be good."""
    page = told(test) + "".join(one.label for one in test.text_input)
    assert not re.search("on its own, the model writes|first choice is the right|right token", page, re.IGNORECASE)
    assert TEXTS not in keys_of(test)
    assert [one.value for one in test.info][:1] == [forcing_panels.ITS_OWN]


@pytest.mark.parametrize(
    ("given", "how"),
    [(False, {"do": "silent-cross.1.1"}), (True, {}), (True, {"how": "sampling", "temp": 1, "seed": 5})],
)
def test_the_own_output_is_never_called_a_reference(forcing, given, how):
    test = forcing(src="fedcba", **how)
    if given:
        test = forcing(src="fedcba", ref=address(press(test, forcing_panels.OWN))["ref"], **how)
    judges_nothing_by_itself(test)


def test_a_typed_reference_is_judged_and_belongs_to_its_sentence(forcing):
    test, expected = choose(forcing(at=3), BOX, "fedxba"), scored("fedxba")
    np.testing.assert_allclose(losses(test), expected.losses, rtol=1e-4)
    assert test.dataframe[0].value["piece"].tolist() == list(expected.pieces)
    assert view(test).of(ForcingLook).at is None  # a place of another text
    type_source(test, "xyz")
    assert (box(test), "ref" in address(test)) == ("", False)
    assert box(type_source(test, "abcdef")) == "fedxba"


def test_the_cards_translation_of_an_example_is_offered(open_page):
    test, card = open_page(FORCING), "I like drinking coffee."
    assert (box(test), "ref" in address(test)) == (card, False)
    assert address(choose(test, BOX, "I like coffee."))["ref"] == "I like coffee."
    press(test, forcing_panels.OF_CARD)
    assert (box(test), "ref" in address(test)) == (card, False)


def test_a_decoder_alone_judges_its_text_and_then_a_reference(open_one_stack):
    test = open_one_stack("decoder", FORCING, src="ba lo mi ta")
    assert TEXTS not in keys_of(test)
    assert "These are the losses of the prompt itself" in told(test)
    n = len(losses(test))
    choose(test, BOX, "ba lo")
    assert TEXTS in keys_of(test)
    before = len(losses(test))
    assert before != n
    choose(test, "ends", True)
    assert len(losses(test)) == before + 1
    assert address(test)["ends"] == "1"
    press(test, forcing_panels.NONE)
    assert len(losses(test)) == n + 1
    assert view(test).of(ForcingLook).at is None
