"""What a note repeats of a text is cut when it is long."""

from transformer.text.normalise import MAX_REPEATED, notes_on

STEPS = ("nfc", "simplified-chinese")


def test_a_short_text_is_repeated_whole():
    (note,) = notes_on("我愛貓", STEPS)
    assert note == "Traditional characters were converted to simplified ones: 我爱猫"


def test_a_long_one_is_cut():
    (note,) = notes_on("愛" * 2_000, STEPS)
    assert note == f"Traditional characters were converted to simplified ones: {'爱' * MAX_REPEATED}…"
    (whole,) = notes_on("愛" * MAX_REPEATED, STEPS)
    assert whole.endswith("爱")
