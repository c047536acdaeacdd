"""What was typed goes to the checkpoint that reads its letters, and a text of unknown words is called strange."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.frame.source_box import is_strange, reader, share
from glassformer.runs.loading import SHIPPED
from transformer.checkpoint import load

CHINESE = ("我喜欢喝咖啡。", "汤姆有两个孩子。")
ENGLISH = ("I like coffee.", "Tom has two children.")
OTHERS = {"zh-en": CHINESE, "en-fr": ENGLISH, "bare": ()}


@pytest.mark.parametrize(
    ("text", "here", "found"),
    [
        ("I like tea.", CHINESE, "en-fr"),
        ("Où est la gare ?", CHINESE, "en-fr"),
        ("我不知道。", ENGLISH, "zh-en"),
        ("Tom有两个孩子", ENGLISH, "zh-en"),
        ("汤姆喜欢 coffee", CHINESE, None),
        ("Où est la gare ?", ENGLISH, None),
        ("hello world", ("glass", "abcdef"), None),  # letters backwards: they are its letters
        ("Где вокзал?", ENGLISH, None),  # nobody reads it
        ("12 + 30 = 42!", CHINESE, None),
        ("  \n", ENGLISH, None),
        ("I like tea.", (), None),  # nothing is known of this checkpoint
    ],
)
def test_a_text_goes_to_whoever_reads_its_letters(text, here, found):
    assert reader(text, here, OTHERS) == found
    assert reader("tea", CHINESE, {"fr-en": ("le thé",), "en-fr": ENGLISH}) == "fr-en"  # the first that fits


@pytest.fixture(scope="module")
def english():
    return load.load(SHIPPED / "en-fr")


def test_a_text_of_few_known_words_is_strange_no_example_is_and_letters_tell_nothing(english):
    examples = english.card.tried()
    for text in ("Guten Tag, wie geht es dir heute?", "Tengo dos hijos."):
        assert is_strange(text, examples, english.src_tokenizer)
    known = "He goes to school by bus every day.", "The committee postponed the controversial referendum."
    for text in (*known, "Guten Tag", "12 + 30 = 42!", *examples):  # two words may be names
        assert not is_strange(text, examples, english.src_tokenizer), text
    letters = load.load(SHIPPED / "reverse")
    assert not is_strange("Guten Tag lieber Hund", letters.card.tried(), letters.src_tokenizer)


@given(st.text(), st.lists(st.text(), max_size=3), st.dictionaries(st.text(), st.lists(st.text(), max_size=3)))
def test_no_text_is_too_odd(text, here, others):
    found = reader(text, here, others)
    assert found is None or (found in others and share(text, others[found]) > share(text, here))
