"""Questions about how text is cut into pieces.

Picks: how a learner's own sentence is cut: its words, and a word that no vocabulary has.

Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016); Kudo and Richardson,
"SentencePiece" (2018).
"""

from typing import Any, Final

from glassformer.extensions.lessons.library.case import Answer, Case, NotHere, worded
from glassformer.extensions.lessons.library.subjects.looking_questions import own_pieces
from transformer.text.tokenizer import SPACE_MARK

LETTERS: Final = 12  # of a made-up word
RARE_SIGN: Final = "\U00013000"  # a hieroglyph


def cut(case: Case) -> dict[str, Any]:
    """The sentence, how large its vocabulary is, and what stands between spaces."""
    own_pieces(case)
    words, size = case.trace.query.source.split(), case.checkpoint.src_tokenizer.size
    return {"sentence": " ".join(words), "size": size, "letters": len("".join(words)), "words": len(words)}


def made_word(case: Case) -> dict[str, Any]:
    """Letters of the sentence as no text has them, which all are in the vocabulary."""
    pieces = [case.trace.src_pieces[place] for place in own_pieces(case)]
    tokenizer = case.checkpoint.src_tokenizer
    letters = [sign for sign in "".join(pieces) if sign.isalpha() and tokenizer.id_of(sign) is not None]
    made = "".join(reversed(letters))[:LETTERS]
    if len(set(made)) < 2 or tokenizer.id_of(SPACE_MARK + made) is not None or tokenizer.id_of(made) is not None:
        raise NotHere("The sentence has too few different letters to make up a word; try a longer one.")
    return {"made": made, "size": tokenizer.size}


def marked_piece(case: Case) -> dict[str, Any]:
    """A piece of the sentence that begins with the mark of a space, the longest."""
    pieces = [case.trace.src_pieces[place] for place in own_pieces(case)]
    marked = [piece for piece in pieces if piece.startswith(SPACE_MARK)]
    if not marked:
        raise NotHere("No piece of this sentence begins with the mark {mark}; try another sentence.", mark=SPACE_MARK)
    return {"piece": max(marked, key=len), "mark": SPACE_MARK}


def rare_sign(case: Case) -> dict[str, Any]:
    """A sign that no training text here had."""
    own_pieces(case)
    return {"sign": RARE_SIGN, "size": case.checkpoint.src_tokenizer.size}


TWICE, FOUR_TIMES = 1.5, 3.0  # a text that is so many times as long letter by letter counts as up to so much longer


def pieces_of_the_sentence(case: Case) -> Answer:
    """Into how many pieces the sentence is cut, without marks."""
    pieces = [case.trace.src_pieces[place] for place in own_pieces(case)]
    values = {"k": len(pieces), "cut": " · ".join(pieces)}
    return Answer(right=float(len(pieces)), values=values, usual=float(case.picked["words"]))


def new_word(case: Case) -> Answer:
    """What becomes of a word that is not in the vocabulary, but whose letters are."""
    tokenizer = case.checkpoint.src_tokenizer
    found = tokenizer.encode(str(case.picked["made"]))
    if any(tokenizer.is_special(i) for i in found.ids):
        raise NotHere("One of the letters in this sentence is not in the vocabulary; try another sentence.")
    right = "smaller" if len(found.ids) > 1 else "left_out"
    values = {"cut": " · ".join(found.pieces), "k": len(found.ids)}
    return Answer(right=right, options=worded("smaller", "unknown", "error", "left_out"), values=values)


def mark_of_a_space(case: Case) -> Answer:
    """What the mark that pieces begin with stands for: what is there once pieces are joined to a text."""
    tokenizer, piece = case.checkpoint.src_tokenizer, str(case.picked["piece"])
    own = tokenizer.id_of(piece)
    if own is None:
        raise NotHere("This vocabulary does not have the piece that this step asks about; try another sentence.")
    twice = tokenizer.decode([own, own])
    word = piece.removeprefix(str(case.picked["mark"]))
    right = "space" if twice.strip() == f"{word} {word}".strip() else "nothing"
    values = {"twice": twice.strip(), "word": word}
    return Answer(right=right, options=worded("space", "capital", "unknown", "nothing"), values=values)


def sign_that_is_unknown(case: Case) -> Answer:
    """What the model reads for a sign that its vocabulary lacks."""
    tokenizer, sign = case.checkpoint.src_tokenizer, str(case.picked["sign"])
    unknown = [i for i in tokenizer.encode(sign).ids if i == case.checkpoint.config.unk_id]
    if not unknown:
        raise NotHere("This vocabulary has a piece for every byte, so it can read any character.")
    values = {"mark": tokenizer.piece(unknown[0]), "written": tokenizer.decode(unknown) or "–"}
    return Answer(right="unknown", options=worded("unknown", "nearest", "error", "letter"), values=values)


def letters_for_pieces(case: Case) -> Answer:
    """How many times as long the source would be if it were cut into letters."""
    pieces, letters = len(own_pieces(case)), int(case.picked["letters"])
    times = letters / pieces
    right = "same" if times <= 1 else ("twice" if times < TWICE else "four" if times < FOUR_TIMES else "more")
    values = {"times": times, "k": pieces, "squared": times**2}
    options = worded("same", "twice", "four", "more")
    return Answer(right=right, options=options, values=values, variant="same" if right == "same" else "longer")
