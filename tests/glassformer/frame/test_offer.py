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


def test_the_first_that_fits_is_taken():
    assert reader("tea", CHINESE, {"fr-en": ("le thé",), "en-fr": ENGLISH}) == "fr-en"


@pytest.fixture(scope="module")
def english():
    return load.load(SHIPPED / "en-fr")


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("Guten Tag, wie geht es dir heute?", True),
        ("Tengo dos hijos.", True),
        ("He goes to school by bus every day.", False),
        ("The committee postponed the controversial referendum.", False),
        ("Guten Tag", False),  # two words may be names
        ("12 + 30 = 42!", False),
    ],
)
def test_a_text_of_few_known_words_is_strange(english, text, strange):
    assert is_strange(text, english.card.tried(), english.src_tokenizer) == strange


def test_no_example_is_strange_and_letters_tell_nothing(english):
    examples = english.card.tried()
    assert not any(is_strange(text, examples, english.src_tokenizer) for text in examples)
    letters = load.load(SHIPPED / "reverse")
    assert not is_strange("Guten Tag lieber Hund", letters.card.tried(), letters.src_tokenizer)


@given(st.text(), st.lists(st.text(), max_size=3), st.dictionaries(st.text(), st.lists(st.text(), max_size=3)))
def test_no_text_is_too_odd(text, here, others):
    found = reader(text, here, others)
    assert found is None or (found in others and share(text, others[found]) > share(text, here))
