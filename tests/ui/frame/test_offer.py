"""Which checkpoint reads what was typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.frame.offer import reader, scripts, share

CHINESE = ("我喜欢喝咖啡。", "汤姆有两个孩子。")
ENGLISH = ("I like coffee.", "Tom has two children.")
OTHERS = {"zh-en": CHINESE, "en-fr": ENGLISH, "bare": ()}


@pytest.mark.parametrize(
    ("text", "here", "found"),
    [
        ("I like tea.", CHINESE, "en-fr"),
        ("tea", CHINESE, "en-fr"),
        ("Où est la gare ?", CHINESE, "en-fr"),
        ("我不知道。", ENGLISH, "zh-en"),
        ("茶", ENGLISH, "zh-en"),
        ("Tom有两个孩子", ENGLISH, "zh-en"),
        ("汤姆喜欢 coffee", CHINESE, None),
        ("Tom喜欢 coffee。", CHINESE, None),
        ("我喜欢喝咖啡。", CHINESE, None),
        ("Où est la gare ?", ENGLISH, None),
        ("hello world", ("glass", "abcdef"), None),  # letters backwards: they are its letters
        ("Где вокзал?", ENGLISH, None),  # nobody reads it
        ("12 + 30 = 42!", CHINESE, None),
        ("", CHINESE, None),
        ("  \n", ENGLISH, None),
        ("I like tea.", (), None),  # nothing is known of this checkpoint
    ],
)
def test_a_text_goes_to_whoever_reads_its_letters(text, here, found):
    assert reader(text, here, OTHERS) == found


def test_the_first_that_fits_is_taken():
    assert reader("tea", CHINESE, {"fr-en": ("le thé",), "en-fr": ENGLISH}) == "fr-en"


def test_ideographs_count_as_words():
    assert scripts("Tom 有两个 children") == {"LATIN": 2, "CJK": 3}


@given(st.text(), st.lists(st.text(), max_size=3), st.dictionaries(st.text(), st.lists(st.text(), max_size=3)))
def test_no_text_is_too_odd(text, here, others):
    found = reader(text, here, others)
    assert found is None or (found in others and share(text, others[found]) > share(text, here))
