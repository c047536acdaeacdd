"""Tokenizers that are not those of the model are found, and what differs is named."""

from dataclasses import replace

import pytest

from glassformer.extensions.doctor.library.context import ExaminationContext
from glassformer.extensions.doctor.library.tokenizer_tests import TESTS
from tests.extensions.doctor.library.changed import look, verdicts
from transformer.analysis.losses import Samples
from transformer.checkpoint.load import load
from transformer.text.tokenizer import RawIds

TEXTS = Samples(("他们喝可口可乐。", "她差点就溺水了。", "我喜欢喝咖啡。"))


@pytest.fixture(scope="module")
def healthy():
    return load("checkpoints/zh-en")


@pytest.fixture(scope="module")
def exchanged(healthy):
    return replace(healthy, src_tokenizer=healthy.tgt_tokenizer, tgt_tokenizer=healthy.src_tokenizer)


def test_sizes_that_differ_where_tokenizers_are_exchanged_are_told(exchanged):
    found = look("vocabulary_sizes", exchanged)
    assert (found.verdict, found.number) == ("broken", 1009)
    assert (
        found.said
        == "src_table has 6,028 rows, its tokenizer has 5,019 tokens, and the vocabulary size in the config is 6,028."
    )


def test_unknown_pieces_are_counted_and_named(healthy):
    found = look("unknown_pieces", healthy, Samples(("我喜欢☃☃。", "☂☁")))
    assert found.verdict == "look"
    assert any("☃" in piece for piece in found.places)


@pytest.mark.parametrize(
    ("changes", "verdict", "said"),
    [
        ({"eos_id": 7}, "look", "eos_id is 7, but in the tokenizer this id belongs to “"),
        (
            {"eos_id": 2, "bos_id": 3, "decoder_start_id": 3},
            "broken",
            "eos_id is 2, but in the tokenizer this id belongs to “<s>”.",
        ),
        ({"pad_id": 1, "unk_id": 0}, "look", "pad_id is 1, but in the tokenizer this id belongs to “<unk>”."),
    ],
)
def test_special_ids_that_mean_something_else(reverse, changes, verdict, said):
    found = look("special_ids", replace(reverse, config=replace(reverse.config, **changes)))
    assert found.verdict == verdict
    assert str(found.said).startswith(said)


def test_ids_that_a_model_does_not_have_are_no_fault(reverse):
    config = replace(reverse.config, unk_id=None, pad_id=None)
    assert look("special_ids", replace(reverse, config=config)).verdict == "well"
    assert look("unknown_pieces", replace(reverse, config=config)).verdict == "not_applicable"


class Losing:
    """A tokenizer that loses every second piece when it joins them."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)

    def decode(self, ids):
        return self._tokenizer.decode(ids[::2])


def test_texts_that_do_not_come_back(reverse):
    losing = Losing(reverse.src_tokenizer)
    found = look("round_trip", replace(reverse, src_tokenizer=losing, tgt_tokenizer=losing))
    assert (found.verdict, found.number) == ("look", 0)
    assert "glass" in found.places


def test_without_a_tokenizer_there_is_nothing_to_say_of_it(reverse):
    raw = RawIds(30)
    bare = replace(reverse, src_tokenizer=raw, tgt_tokenizer=raw)
    found = verdicts(TESTS, ExaminationContext(bare, Samples(("5 6 7", "8 9"), ("7 6 5", "9 8"))))
    assert found == dict.fromkeys(found, "not_applicable") | {"vocabulary_sizes": "well"}
