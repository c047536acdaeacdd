"""A model without an example of its own is offered a text that its tokenizer reads, whatever tokenizer that is."""

from dataclasses import replace

import pytest

from glassformer.runs.suggested_sentence import suggested
from tests.test_checkpoints import FOLDER
from transformer.checkpoint.load import load
from transformer.text.tokenizer import RawIds

POOL = {"zh-en": "我喜欢喝咖啡。", "en-fr": "The cat sleeps on the table.", "reverse": "glass"}


def without_examples(name, **changes):
    checkpoint = load(FOLDER / name)
    return replace(checkpoint, card=replace(checkpoint.card, examples=()), **changes)


@pytest.mark.parametrize("name", POOL)
def test_the_example_is_taken_that_the_tokenizer_reads_best(name):
    for others in (POOL.values(), reversed(POOL.values())):
        assert suggested(without_examples(name), list(others)) == POOL[name]


def test_its_own_example_comes_first():
    checkpoint = load(FOLDER / "reverse")
    assert suggested(checkpoint, POOL.values()) == checkpoint.card.first_example()


def test_a_vocabulary_that_reads_none_of_them_and_one_of_numbers_alone_are_offered_pieces_of_their_own():
    checkpoint = without_examples("reverse")
    text = suggested(checkpoint, ["我喜欢喝咖啡。"])
    ids = checkpoint.src_tokenizer.encode(text).ids
    assert ids
    assert not any(map(checkpoint.src_tokenizer.is_special, ids))
    numbers = without_examples("reverse", src_tokenizer=RawIds(30, {0, 1, 2, 4}))
    assert suggested(numbers, POOL.values()) == "3 5 6 7"
