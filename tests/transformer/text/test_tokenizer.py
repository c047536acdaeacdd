"""Text is normalised as its notes say, split and read back whole; an id outside the vocabulary is refused."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import TARGETS
from tests.transformer.learned_pieces import learn_pieces
from transformer.errors import TokenizerError
from transformer.text.subword_sampling import Sampler
from transformer.text.tokenizer import MAX_REPEATED, SPACE_MARK, Tokenizer, normalise, notes_on

BOTH = ("nfc", "simplified-chinese")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(TEXT)
def test_the_steps_that_are_asked_for_are_applied_in_order_and_composition_once(text):
    composed = normalise(text, ["nfc"])
    assert composed == unicodedata.normalize("NFC", text)
    assert normalise(composed, ["nfc"]) == composed
    assert normalise(text, BOTH) == normalise(composed, ["simplified-chinese"])
    assert normalise(text, []) == text
    assert [normalise("我喜歡漢語", steps) for steps in (BOTH, ["nfc"])] == ["我喜欢汉语", "我喜歡漢語"]


def test_a_note_tells_of_converted_characters_only_and_is_cut_when_it_is_long():
    assert notes_on("e\u0301 喜欢", BOTH) == notes_on("喜歡", ["nfc"]) == ()
    said = "Traditional characters were converted to simplified ones: "
    for text, repeated in (
        ("喜歡", "喜欢"),
        ("愛" * 2_000, "爱" * MAX_REPEATED + "…"),
        ("愛" * MAX_REPEATED, "爱" * MAX_REPEATED),
    ):
        assert notes_on(text, BOTH) == (f"{said}{repeated}",)


@pytest.fixture(scope="module")
def tokenizer(checkpoint_folder):
    return Tokenizer((checkpoint_folder / "target.model").read_bytes())


@given(TEXT)
def test_any_text_is_encoded_and_decoded(tokenizer, text):
    encoding = tokenizer.encode(text)
    assert len(encoding.ids) == len(encoding.pieces)
    assert all(0 <= i < tokenizer.size for i in encoding.ids)
    tokenizer.decode(encoding.ids)


def test_a_text_of_the_vocabulary_comes_back_and_special_pieces_leave_no_trace_in_it(tokenizer):
    text = "the small fox sees a red lake"
    ids, pieces = tokenizer.encode(text).ids, tokenizer.encode(text).pieces
    assert tokenizer.decode(ids) == tokenizer.decode((2, *ids, 3, 0)) == text
    assert "".join(pieces).replace(SPACE_MARK, " ").strip() == text
    assert tuple(map(tokenizer.piece, ids)) == pieces
    assert tuple(map(tokenizer.id_of, pieces)) == ids
    assert [tokenizer.is_special(i) for i in range(5)] == [True] * 4 + [False]
    assert (tokenizer.decode([]), tokenizer.id_of("no such token")) == ("", None)


def test_the_piece_of_an_unknown_character_shows_it_and_an_id_outside_the_vocabulary_is_refused(tokenizer):
    encoding = tokenizer.encode("the 狐")
    assert (encoding.ids[-1], tokenizer.piece(1)) == (1, "<unk>")
    assert "狐" in unicodedata.normalize("NFC", encoding.pieces[-1])
    for i in (-1, tokenizer.size):
        for method in (tokenizer.piece, tokenizer.is_special, lambda i: tokenizer.decode([4, i])):
            with pytest.raises(TokenizerError, match=rf"token id {i} is outside .* 0 to {tokenizer.size - 1}\."):
                method(i)


def test_characters_cannot_be_split_otherwise_and_say_so():
    with pytest.raises(TokenizerError, match=r"splits each text in only one way.*remove --sampling\.$"):
        Sampler(Tokenizer(learn_pieces(TARGETS, size=60, kind="char")))
    with pytest.raises(TokenizerError, match="SentencePiece cannot read this model"):
        Tokenizer(b"nonsense")
