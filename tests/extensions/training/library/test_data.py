"""Epochs of batches hold each example once, in an order and with splits that follow from the seed alone."""

import random
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.training.library.data import Batches, Example, encode_pairs, make_batch, sample_pairs
from glassformer.extensions.training.library.run import learn_vocabulary
from tests.conftest import SOURCES, TARGETS
from tests.extensions.training.library.one_stack_texts import ENCODER
from tests.transformer.tiny import tiny_config
from transformer.errors import DataError
from transformer.runs.sentence_files import read_pairs
from transformer.text.tokenizer import Tokenizer

IDS = st.lists(st.integers(4, 16), min_size=1, max_size=15).map(lambda ids: (*ids, 3))
EXAMPLES = st.lists(st.builds(Example, IDS, IDS), min_size=1, max_size=40)
PAIRS = list(zip(SOURCES, TARGETS, strict=True)) * 5


def batches(examples, *, batch_tokens=40, seed=1):
    return Batches(lambda _: examples, batch_tokens=batch_tokens, seed=seed)


@given(EXAMPLES, st.integers(1, 200), st.integers(0, 3))
def test_an_epoch_holds_each_example_once(examples, batch_tokens, epoch):
    groups = batches(examples, batch_tokens=batch_tokens).epoch(epoch)
    assert Counter(example for group in groups for example in group) == Counter(examples)
    for group in groups:
        width = make_batch(group, tiny_config()).tgt_out.size(1)
        assert width * len(group) <= batch_tokens or len(group) == 1
        assert width == -(-len(group[-1].tgt) // 2) * 2  # all rows need this width


def test_the_order_follows_from_seed_and_epoch_alone():
    examples = [Example((4 + i % 5, 3), (4 + i % 7,) * (1 + i % 3) + (3,)) for i in range(60)]
    first = batches(examples)
    epochs = [first.epoch(n) for n in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    assert batches(examples).epoch(2) == epochs[2]
    assert first.epoch(0) == epochs[0] != batches(examples, seed=2).epoch(0)
    assert {frozenset(g) for g in epochs[0]} != {frozenset(g) for g in epochs[1]}  # groups differ, not only order
    lengths = [len(group[0].tgt) for group in epochs[0]]
    assert lengths != sorted(lengths)


@given(EXAMPLES)
def test_rows_are_padded_behind_and_the_decoder_reads_one_behind(examples):
    config = tiny_config(decoder_start_id=2)
    batch = make_batch(examples, config)
    assert (batch.tgt_in[:, 0] == 2).all()
    assert torch.equal(batch.tgt_in[:, 1:], batch.tgt_out[:, :-1])
    for ids, rows in ((batch.src, [e.src for e in examples]), (batch.tgt_out, [e.tgt for e in examples])):
        longest = max(map(len, rows))
        assert longest <= ids.size(1) <= min(longest + 1, config.max_len)
        assert ids.dtype == torch.int64
        assert ids.tolist() == [list(row) + [0] * (ids.size(1) - len(row)) for row in rows]


@pytest.mark.parametrize(
    ("content", "features", "found"),
    [
        ("\ufeffba lo\tthe fox\r\n\r\n  \n mi \t a lake \n", {}, [("ba lo", "the fox"), ("mi", "a lake")]),
        ("\n\n", {}, "contains no pairs"),
        ("a\tb\nalone\n", {}, r"line 2: expected `source TAB target`, found 1 column"),
        ("a\t\n", {}, "line 1"),
        ("noon\n\n abba \n", ENCODER, [("noon", ""), ("abba", "")]),
        ("noon\tnoon\n", ENCODER, "line 1: expected one text without a tab, found 2 columns"),
    ],
)
def test_pairs_or_texts_are_read_or_a_file_says_where_they_are_not(tmp_path, content, features, found):
    """How files of lines are read is in `test_line_files`."""
    path, config = tmp_path / "pairs.tsv", tiny_config(**features)
    path.write_bytes(content.encode())
    if isinstance(found, list):
        assert read_pairs(path, config) == found
        return
    with pytest.raises(DataError, match=found):
        read_pairs(path, config)


@pytest.fixture(scope="module")
def vocabularies():
    return [Tokenizer(learn_vocabulary(texts, size=48)) for texts in (SOURCES, TARGETS)]


def sampled(vocabularies, *, seed=1, alpha=0.1, max_len=64, pairs=PAIRS, **features):
    config = tiny_config(max_len=max_len, **features)
    return sample_pairs(pairs, *vocabularies, config, alpha=alpha, seed=seed)


def test_sampled_pairs_follow_from_the_seed_and_say_what_the_pairs_say_and_what_does_not_fit_is_left_out(vocabularies):
    src, tgt = vocabularies
    for seed in (1, 2**40):
        found = sampled(vocabularies, seed=seed)
        random.seed(5)
        assert sampled(vocabularies, seed=seed) == found != sampled(vocabularies, seed=seed + 1)
    for example, (source, target) in zip(found, PAIRS, strict=True):
        assert example.src[-1] == example.tgt[-1] == 3
        assert src.decode(example.src[:-1]) == source
        assert tgt.decode(example.tgt[:-1]) == target
    assert len({e.tgt for e in found}) > len(TARGETS)  # the same sentence is split in several ways
    found = sampled(vocabularies, max_len=20)
    assert 0 < len(found) < len(PAIRS)
    assert all(max(len(e.src), len(e.tgt)) <= 20 for e in found)
    assert all(e.src[-1] != 3 and e.tgt[-1] == 3 for e in sampled(vocabularies, append_source_eos=False))


def test_a_source_is_normalised_before_it_is_sampled_and_a_large_alpha_gives_mostly_the_usual_split(vocabularies):
    src, tgt = (Tokenizer(learn_vocabulary(texts, size=48)) for texts in ([*SOURCES, "汉 ba 汉 lo"], TARGETS))
    pairs = [("漢 ba", TARGETS[0])]
    (example,) = sampled([src, tgt], pairs=pairs, normalisation=("nfc", "simplified-chinese"))
    assert src.decode(example.src[:-1]) == "汉 ba"
    usual = encode_pairs(PAIRS, *vocabularies, tiny_config(max_len=64))
    for alpha, low, high in ((10.0, 0.8, 1.0), (0.1, 0.0, 0.5)):
        same = [a == b for a, b in zip(sampled(vocabularies, alpha=alpha), usual, strict=True)]
        assert low * len(PAIRS) <= sum(same) <= high * len(PAIRS)
