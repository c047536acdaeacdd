"""Tokenizers that are not those of the model are found; a healthy checkpoint has none."""

from dataclasses import replace

import pytest

from transformer.checkpoint.load import load
from transformer.doctor import tokenizers
from transformer.doctor.patient import Patient
from transformer.importers.samples import Samples

TESTS = {test.name: test.measure for test in tokenizers.TESTS}
PAIRS = Samples(
    ("他们喝可口可乐。", "她差点就溺水了。", "我喜欢喝咖啡。"),
    ("They drink coke.", "She almost drowned.", "I like to drink coffee."),
)


@pytest.fixture(scope="module")
def healthy():
    return load("checkpoints/zh-en")


@pytest.fixture(scope="module")
def exchanged(healthy):
    return replace(healthy, src_tokenizer=healthy.tgt_tokenizer, tgt_tokenizer=healthy.src_tokenizer)


def look(name, checkpoint, given=None):
    return TESTS[name](Patient(checkpoint, given))


def test_a_healthy_checkpoint_has_no_fault(healthy):
    patient = Patient(healthy)
    assert {name: test(patient).verdict for name, test in TESTS.items()} == dict.fromkeys(TESTS, "well")


@pytest.mark.parametrize("given", [None, PAIRS, Samples(PAIRS.sources)], ids=["examples", "pairs", "texts"])
def test_exchanged_tokenizers_are_found(healthy, exchanged, given):
    assert look("exchanged-tokenizers", exchanged, given).verdict == "broken"
    assert look("exchanged-tokenizers", healthy, given).verdict == "well"


def test_one_vocabulary_cannot_be_exchanged():
    assert look("exchanged-tokenizers", load("checkpoints/reverse")).verdict == "not_applicable"


def test_sizes_that_differ_are_told(exchanged):
    found = look("vocabulary-sizes", exchanged)
    assert (found.verdict, found.number) == ("broken", 1000)
    assert found.said == "src_table has 6,000 rows, its tokenizer 5,000 pieces, and the config says 6,000."
