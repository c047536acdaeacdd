import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.text.normalise import normalise, notes_on

BOTH = ("nfc", "simplified-chinese")


def test_composition():
    assert normalise("e\u0301", ["nfc"]) == "é"
    assert normalise("e\u0301", []) == "e\u0301"


def test_traditional_characters_become_simplified_ones():
    assert normalise("我喜歡漢語", BOTH) == "我喜欢汉语"
    assert normalise("我喜歡漢語", ["nfc"]) == "我喜歡漢語"


@pytest.mark.parametrize("text", ["", "\0", "\u202eabc", "👩‍👩‍👧", "a\0漢", "\ud7ff", "\U0010ffff"])
def test_odd_texts(text):
    assert normalise(text, BOTH) == normalise(normalise(text, BOTH), BOTH)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_steps_are_applied_in_order_and_composition_once(text):
    composed = normalise(text, ["nfc"])
    assert composed == unicodedata.normalize("NFC", text)
    assert normalise(composed, ["nfc"]) == composed
    assert normalise(text, BOTH) == normalise(composed, ["simplified-chinese"])


def test_a_note_tells_of_converted_characters_only():
    assert notes_on("e\u0301 喜欢", BOTH) == ()
    (note,) = notes_on("喜歡", BOTH)
    assert note == "Traditional characters were converted to simplified ones: 喜欢"
    assert notes_on("喜歡", ["nfc"]) == ()
