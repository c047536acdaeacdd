"""A plain list of characters or words is a vocabulary: every text over it comes back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies

DIGITS = [*"0123456789", "+", "="]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
WORDS = ["<pad>", "<s>", "</s>", "the", "fox", "reads"]


def lines(pieces):
    return {"vocab.txt": "\n".join(pieces).encode()}


def ids(pieces):
    return {"vocab.json": json.dumps({piece: i for i, piece in enumerate(pieces)}).encode()}


def opened(files, **options):
    return Vocabularies("list", Options(**options), files).open()


@pytest.mark.parametrize("form", [lines, ids])
def test_a_sum_is_read_by_its_characters(form):
    one, other = opened(form(DIGITS))
    assert one is other
    assert one.encode("5+10=").ids == (5, 10, 1, 0, 11)
    assert one.decode((5, 10, 1, 0, 11)) == "5+10="
    assert one.encode("5 + 10 =").ids == (5, 10, 1, 0, 11)  # there is no piece for a space
    assert one.encode("5-1").unread == ("-",)


def test_special_pieces_are_found_by_their_usual_names():
    one, _ = opened(lines([*SPECIAL, *DIGITS]), size=20)
    assert [one.id_of(name) for name in SPECIAL] == [0, 1, 2, 3]
    assert [one.is_special(i) for i in range(6)] == [True] * 4 + [False] * 2
    assert one.encode("<s>5x</s>").ids == (1, 9, 3, 2)
    assert one.decode((1, 9, 3, 2)) == "5"
    assert (one.size, one.piece(16), one.is_special(16)) == (20, "<unused 16>", True)


def test_words_are_cut_at_spaces_unless_a_space_is_a_piece_and_sides_may_differ():
    one, _ = opened(ids(WORDS))
    assert one.encode("the  fox reads").ids == (3, 4, 5)
    assert one.decode((3, 4, 5, 2)) == "the fox reads"
    assert one.encode("the cat").unread == ("cat",)
    one, _ = opened(lines(["<pad>", " ", "a", "b"]))
    assert one.decode(one.encode("a b a").ids) == "a b a"
    source, target = opened(lines(DIGITS) | {"target_vocab.txt": b"x\ny"}, size=12, target_size=3)
    assert (source.pieces[0], target.pieces) == ("0", ("x", "y", "<unused 2>"))


@given(st.text(st.sampled_from(DIGITS), max_size=30), st.lists(st.sampled_from(WORDS[3:]), max_size=12))
def test_every_text_over_the_pieces_comes_back(text, words):
    one, _ = opened(lines([*SPECIAL, *DIGITS]))
    assert one.decode(one.encode(text).ids) == text
    one, _ = opened(ids(WORDS))
    assert one.decode(one.encode(" ".join(words)).ids) == " ".join(words)
