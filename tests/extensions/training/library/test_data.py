import random
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.training.library.data import (
    Batches,
    Example,
    encode_pairs,
    encode_source,
    make_batch,
    sample_pairs,
)
from glassformer.extensions.training.library.run import learn_vocabulary
from tests.conftest import SOURCES, TARGETS
from tests.transformer.tiny import tiny_config
from transformer.errors import DataError, TokenizerError
from transformer.runs.pairs import read_pairs
from transformer.text.tokenizer import Tokenizer

IDS = st.lists(st.integers(4, 16), min_size=1, max_size=15).map(lambda ids: (*ids, 3))
EXAMPLES = st.lists(st.builds(Example, IDS, IDS), min_size=1, max_size=40)


def batches(examples, *, batch_tokens=40, seed=1):
    return Batches(lambda _: examples, batch_tokens=batch_tokens, seed=seed)


@given(EXAMPLES, st.integers(1, 200), st.integers(0, 3))
def test_an_epoch_holds_each_example_once(examples, batch_tokens, epoch):
    groups = batches(examples, batch_tokens=batch_tokens).epoch(epoch)
    assert Counter(example for group in groups for example in group) == Counter(examples)
    for group in groups:
        batch = make_batch(group, tiny_config())
        assert batch.tgt_out.numel() <= batch_tokens or len(group) == 1
        assert len({batch.tgt_out.size(1), -(-len(group[-1].tgt) // 2) * 2}) == 1  # all rows need this width


def test_the_order_follows_from_seed_and_epoch_alone():
    examples = [Example((4 + i % 5, 3), (4 + i % 7,) * (1 + i % 3) + (3,)) for i in range(60)]
    first = batches(examples)
    epochs = [first.epoch(n) for n in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    assert batches(examples).epoch(2) == epochs[2]
    assert first.epoch(0) == epochs[0]
    assert batches(examples, seed=2).epoch(0) != epochs[0]
    assert [frozenset(g) for g in epochs[0]] != [frozenset(g) for g in epochs[1]]  # groups differ, not only order


def test_short_and_long_groups_take_turns():
    examples = [Example((4, 3), (4,) * (1 + i % 14) + (3,)) for i in range(200)]
    lengths = [len(group[0].tgt) for group in batches(examples).epoch(0)]
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
        for found, row in zip(ids.tolist(), rows, strict=True):
            assert found == list(row) + [0] * (ids.size(1) - len(row))


@pytest.fixture
def write(tmp_path):
    def write_file(content):
        path = tmp_path / "pairs.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def test_pairs_are_read(write):
    content = "\ufeffba lo\tthe fox\r\n\r\n  \n mi \t a lake \nx\u2028y\tz\x85\n"
    assert read_pairs(write(content)) == [("ba lo", "the fox"), ("mi", "a lake"), ("x\u2028y", "z")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "contains no pairs"),
        ("\n\n", "contains no pairs"),
        ("a\tb\nalone\n", r"line 2: expected `source TAB target`, found 1 column"),
        ("a\tb\tc\n", "line 1: .* found 3 column"),
        ("a\t\n", "line 1"),
        (b"a\tb\xff\n", "not UTF-8 .byte 3,"),
        ("a\tb\rc\td\r", "lines end with CR alone"),
        ("a\t" + "b" * 200_000, "line 1: is longer than 100,000 bytes"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(write, content, message):
    with pytest.raises(DataError, match=message):
        read_pairs(write(content))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match=r"none.tsv: cannot be read"):
        read_pairs(tmp_path / "none.tsv")


def test_pairs_become_ids(checkpoint_folder):
    src, tgt = (Tokenizer((checkpoint_folder / f"{side}.model").read_bytes()) for side in ("source", "target"))
    config = tiny_config(max_len=8, normalisation=("nfc",))
    pairs = [("ba lo", "a fox"), ("ba lo " * 9, "a fox"), ("mi", "the fox " * 9)]
    (example,) = encode_pairs(pairs, src, tgt, config)
    assert src.decode(example.src[:-1]) == "ba lo"
    assert tgt.decode(example.tgt[:-1]) == "a fox"
    assert example.src[-1] == example.tgt[-1] == 3
    assert encode_source("ba lo", src, tiny_config(append_source_eos=False)) == example.src[:-1]


PAIRS = list(zip(SOURCES, TARGETS, strict=True)) * 5


@pytest.fixture(scope="module")
def vocabularies():
    return [Tokenizer(learn_vocabulary(texts, size=48)) for texts in (SOURCES, TARGETS)]


def sampled(vocabularies, *, seed=1, alpha=0.1, max_len=64, pairs=PAIRS, **features):
    config = tiny_config(max_len=max_len, **features)
    return sample_pairs(pairs, *vocabularies, config, alpha=alpha, seed=seed)


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_sampled_pairs_follow_from_the_seed(vocabularies, seed):
    first = sampled(vocabularies, seed=seed)
    assert sampled(vocabularies, seed=seed) == first
    assert sampled(vocabularies, seed=seed + 1) != first


def test_drawing_elsewhere_does_not_change_what_a_seed_gives(vocabularies):
    first = sampled(vocabularies, seed=3)
    random.seed(5)
    sampled(vocabularies, seed=4)
    assert sampled(vocabularies, seed=3) == first


def test_sampled_pairs_say_what_the_pairs_say(vocabularies):
    src, tgt = vocabularies
    found = sampled(vocabularies)
    for example, (source, target) in zip(found, PAIRS, strict=True):
        assert example.src[-1] == example.tgt[-1] == 3
        assert src.decode(example.src[:-1]) == source
        assert tgt.decode(example.tgt[:-1]) == target
    assert len({e.tgt for e in found}) > len(TARGETS)  # the same sentence is split in several ways


def test_a_source_is_normalised_before_it_is_sampled():
    src, tgt = (Tokenizer(learn_vocabulary(texts, size=48)) for texts in ([*SOURCES, "汉 ba 汉 lo"], TARGETS))
    pairs = [("漢 ba", TARGETS[0])]
    (example,) = sampled([src, tgt], pairs=pairs, normalisation=("nfc", "simplified-chinese"))
    assert src.decode(example.src[:-1]) == "汉 ba"
    (example,) = sampled([src, tgt], pairs=pairs)
    assert 1 in example.src  # unknown as it stands


def test_sampled_pairs_that_do_not_fit_are_left_out(vocabularies):
    found = sampled(vocabularies, max_len=20)
    assert 0 < len(found) < len(PAIRS)
    assert all(max(len(e.src), len(e.tgt)) <= 20 for e in found)


def test_a_source_has_an_end_piece_only_where_the_config_wants_one(vocabularies):
    assert all(e.src[-1] != 3 and e.tgt[-1] == 3 for e in sampled(vocabularies, append_source_eos=False))


def test_a_large_alpha_gives_mostly_the_usual_split(vocabularies):
    usual = encode_pairs(PAIRS, *vocabularies, tiny_config(max_len=64))
    found = sampled(vocabularies, alpha=10.0)
    assert sum(a == b for a, b in zip(found, usual, strict=True)) >= 0.8 * len(PAIRS)
    assert sum(a == b for a, b in zip(sampled(vocabularies, alpha=0.1), usual, strict=True)) < 0.5 * len(PAIRS)


def test_pairs_of_characters_cannot_be_sampled():
    tokenizer = Tokenizer(learn_vocabulary([*SOURCES, *TARGETS], size=60, kind="char"))
    with pytest.raises(TokenizerError, match="remove --sampling"):
        sampled([tokenizer, tokenizer])
