"""How a learner's own sentence is cut: its words, and a word that no vocabulary has."""

from __future__ import annotations

from typing import Any, Final

from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.looking import own_pieces
from transformer.text.tokenizer import SPACE_MARK

LETTERS: Final = 12  # of a made-up word
RARE_SIGN: Final = "\U00013000"  # a hieroglyph


def cut(case: Case) -> dict[str, Any]:
    """The sentence, how large its vocabulary is, and what stands between spaces."""
    own_pieces(case)
    source = case.trace.query.source
    return {
        "sentence": " ".join(source.split()),
        "size": case.checkpoint.src_tokenizer.size,
        "letters": len("".join(source.split())),
        "words": len(source.split()),
    }


def made_word(case: Case) -> dict[str, Any]:
    """Letters of the sentence as no text has them, which all are in the vocabulary."""
    pieces = [case.trace.src_pieces[place] for place in own_pieces(case)]
    tokenizer = case.checkpoint.src_tokenizer
    letters = [sign for sign in "".join(pieces) if sign.isalpha() and tokenizer.id_of(sign) is not None]
    made = "".join(reversed(letters))[:LETTERS]
    if len(set(made)) < 2 or tokenizer.id_of(SPACE_MARK + made) is not None or tokenizer.id_of(made) is not None:
        raise NotHere("The sentence has too few different letters to make a word of; try a longer one.")
    return {"made": made, "size": tokenizer.size}


def marked_piece(case: Case) -> dict[str, Any]:
    """A piece of the sentence that begins with the mark of a space, the longest."""
    pieces = [case.trace.src_pieces[place] for place in own_pieces(case)]
    marked = [piece for piece in pieces if piece.startswith(SPACE_MARK)]
    if not marked:
        raise NotHere("No piece of this sentence begins with the mark {mark}; try another one.", mark=SPACE_MARK)
    return {"piece": max(marked, key=len), "mark": SPACE_MARK}


def rare_sign(case: Case) -> dict[str, Any]:
    """A sign that no training text here had."""
    own_pieces(case)
    return {"sign": RARE_SIGN, "size": case.checkpoint.src_tokenizer.size}


PICKS: Final = (cut, made_word, marked_piece, rare_sign)
