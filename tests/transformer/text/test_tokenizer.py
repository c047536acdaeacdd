import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import TARGETS
from tests.transformer.learned_pieces import learn_pieces
from transformer.errors import TokenizerError
from transformer.text.subword_sampling import Sampler
from transformer.text.tokenizer import SPACE_MARK, Tokenizer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.fixture(scope="module")
def tokenizer(checkpoint_folder):
    return Tokenizer((checkpoint_folder / "target.model").read_bytes())


def test_a_text_of_the_vocabulary_comes_back(tokenizer):
    text = "the small fox sees a red lake"
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids) == text
    assert "".join(encoding.pieces).replace(SPACE_MARK, " ").strip() == text
    assert tuple(tokenizer.piece(i) for i in encoding.ids) == encoding.pieces
    assert all(tokenizer.id_of(piece) == i for i, piece in zip(encoding.ids, encoding.pieces, strict=True))


@given(TEXT)
def test_any_text_is_encoded_and_decoded(tokenizer, text):
    encoding = tokenizer.encode(text)
    assert len(encoding.ids) == len(encoding.pieces)
    assert all(0 <= i < tokenizer.size for i in encoding.ids)
    tokenizer.decode(encoding.ids)


@pytest.mark.parametrize("text", ["", " ", "\0", "a\0b", "é", "\u202eabc", "👩‍👩‍👧", "汉字", "\u0301" * 30, "�"])
def test_odd_texts(tokenizer, text):
    encoding = tokenizer.encode(text)
    assert len(encoding.ids) == len(encoding.pieces)


def test_the_piece_of_an_unknown_character_shows_it(tokenizer):
    encoding = tokenizer.encode("the 狐")
    assert encoding.ids[-1] == 1
    assert "狐" in unicodedata.normalize("NFC", encoding.pieces[-1])
    assert tokenizer.piece(1) == "<unk>"


def test_special_pieces_leave_no_trace_in_a_text(tokenizer):
    ids = tokenizer.encode("a red fox").ids
    assert tokenizer.decode((2, *ids, 3, 0)) == "a red fox"
    assert [tokenizer.is_special(i) for i in range(5)] == [True] * 4 + [False]
    assert tokenizer.decode([]) == ""


@pytest.mark.parametrize("i", [-1, 10**6, 2**40])
def test_an_id_outside_the_vocabulary_is_refused(tokenizer, i):
    for method in (tokenizer.piece, tokenizer.is_special, lambda i: tokenizer.decode([4, i])):
        with pytest.raises(TokenizerError, match=rf"piece id {i} is outside .* 0 to {tokenizer.size - 1}\."):
            method(i)


def test_ids_of_pieces(tokenizer):
    assert tokenizer.id_of("<unk>") == 1
    assert tokenizer.id_of("no such piece") is None
    assert [tokenizer.id_of(piece) for piece in tokenizer.pieces] == list(range(tokenizer.size))


@pytest.mark.parametrize("model", [b"", b"nonsense", b"\x80" * 50])
def test_bytes_that_are_no_model(model):
    with pytest.raises(TokenizerError, match="SentencePiece cannot read this model"):
        Tokenizer(model)


TEXT_TO_SPLIT = "the small fox sees a red lake"


def learned(kind):
    return Tokenizer(learn_pieces(TARGETS, size=60, kind=kind))


def draws(tokenizer, *, alpha, n=60):
    """Splits that are the same in every run."""
    sampler, rng = Sampler(tokenizer), random.Random(1)
    return [sampler.draw(TEXT_TO_SPLIT, alpha=alpha, rng=rng) for _ in range(n)]


@pytest.mark.parametrize(("kind", "alpha"), [("unigram", 0.1), ("unigram", 0.5), ("bpe", 0.1), ("bpe", 0.5)])
def test_sampled_splits_differ_and_all_say_the_text(kind, alpha):
    tokenizer = learned(kind)
    found = draws(tokenizer, alpha=alpha)
    assert len(set(found)) > 1
    assert {tokenizer.decode(ids) for ids in found} == {TEXT_TO_SPLIT}


def test_a_large_alpha_of_a_unigram_model_gives_almost_always_the_best_split():
    tokenizer = learned("unigram")
    best = tokenizer.encode(TEXT_TO_SPLIT).ids
    shares = [draws(tokenizer, alpha=alpha).count(best) for alpha in (0.0, 0.5, 10.0)]
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] >= 57


def test_alpha_of_a_bpe_model_is_the_share_of_merges_left_out():
    tokenizer = learned("bpe")
    assert set(draws(tokenizer, alpha=0.0)) == {tokenizer.encode(TEXT_TO_SPLIT).ids}
    (single,) = set(draws(tokenizer, alpha=1.0))
    assert all(len(tokenizer.piece(i)) == 1 for i in single)


def test_a_text_of_nothing_has_one_split():
    assert Sampler(learned("unigram")).draw("", alpha=0.1, rng=random.Random(1)) == ()


def test_characters_cannot_be_split_otherwise_and_say_so():
    with pytest.raises(TokenizerError, match=r"splits each text in only one way.*remove --sampling\.$"):
        Sampler(learned("char"))
