"""A source is normalised in the order of its steps, and a note says what was converted."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from transformer.text.tokenizer import MAX_REPEATED, normalise, notes_on

BOTH = ("nfc", "simplified-chinese")


def test_steps_are_done_that_are_asked_for():
    assert [normalise("e\u0301", steps) for steps in (["nfc"], [])] == ["é", "e\u0301"]
    assert [normalise("我喜歡漢語", steps) for steps in (BOTH, ["nfc"])] == ["我喜欢汉语", "我喜歡漢語"]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_steps_are_applied_in_order_and_composition_once(text):
    composed = normalise(text, ["nfc"])
    assert composed == unicodedata.normalize("NFC", text)
    assert normalise(composed, ["nfc"]) == composed
    assert normalise(text, BOTH) == normalise(composed, ["simplified-chinese"])


def test_a_note_tells_of_converted_characters_only_and_is_cut_when_it_is_long():
    assert notes_on("e\u0301 喜欢", BOTH) == notes_on("喜歡", ["nfc"]) == ()
    said = "Traditional characters were converted to simplified ones: "
    for text, repeated in (
        ("喜歡", "喜欢"),
        ("愛" * 2_000, "爱" * MAX_REPEATED + "…"),
        ("愛" * MAX_REPEATED, "爱" * MAX_REPEATED),
    ):
        assert notes_on(text, BOTH) == (f"{said}{repeated}",)
