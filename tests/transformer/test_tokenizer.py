import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.errors import TokenizerError
from transformer.tokenizer import SPACE_MARK, Tokenizer

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@pytest.fixture(scope="module")
def tokenizer(checkpoint_folder):
    return Tokenizer.from_file(checkpoint_folder / "target.model")


def test_a_text_of_the_vocabulary_comes_back(tokenizer):
    text = "the small fox sees a red lake"
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids) == text
    assert "".join(encoding.pieces).replace(SPACE_MARK, " ").strip() == text
    assert tuple(tokenizer.piece(i) for i in encoding.ids) == encoding.pieces
    assert all(tokenizer.id_of(piece) == i for i, piece in zip(*vars(encoding).values(), strict=True))


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
