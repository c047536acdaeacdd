"""What a tokenizer does by itself: special pieces, texts that come back, and pieces that it does not know.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from transformer.doctor.findings import MOST_PLACES, Measured, not_applicable, well
from transformer.doctor.patient import Patient, Test
from transformer.errors import TokenizerError
from transformer.text.normalise import normalise
from transformer.text.raw import RawIds
from transformer.text.tokenizer import AnyTokenizer, Encoding
from words import Sentence, say

MANY_UNKNOWN = 0.1
FEW_COME_BACK = 0.9
_ENDS_TEXT = "<|endoftext|>"  # in several families it is start, end and padding at once
_NAMES: dict[str, frozenset[str]] = {
    "pad": frozenset({"<pad>", "[PAD]", "<PAD>", "<blank>", "<|pad|>", "<|padding|>"}),
    "unk": frozenset({"<unk>", "[UNK]", "<UNK>"}),
    "bos": frozenset({"<s>", "[CLS]", "[BOS]", "<bos>", "<sos>", "<BOS>", "<SOS>", "<start>", "<|begin_of_text|>"}),
    "eos": frozenset({"</s>", "[SEP]", "[EOS]", "<eos>", "<EOS>", "<end>", "<|end_of_text|>", "<|im_end|>"}),
}
"""What pieces of each kind are called in the families that are in use."""
_NO_PIECES: Sentence = say("This model came without a tokenizer: its pieces are the numbers of its rows.")
_NO_TEXT: Sentence = say("There is no text to try the tokenizer with. Give some.")


@dataclass(frozen=True)
class Spelled:
    """A text and its pieces."""

    text: str  # after the model's own steps of normalisation
    encoding: Encoding  # its pieces
    tokenizer: AnyTokenizer  # that of its side


def spelled(patient: Patient) -> list[Spelled]:
    """The patient's texts as pieces, those of the target after those of the source."""
    checkpoint, samples = patient.checkpoint, patient.samples
    texts = [(text, checkpoint.src_tokenizer) for text in samples.sources]
    texts += [(text, checkpoint.tgt_tokenizer) for text in samples.targets]
    normal = [(normalise(text, patient.config.normalisation), tokenizer) for text, tokenizer in texts]
    return [Spelled(text, tokenizer.encode(text), tokenizer) for text, tokenizer in normal]


def _tokenizers(patient: Patient) -> list[AnyTokenizer]:
    source, target = patient.checkpoint.src_tokenizer, patient.checkpoint.tgt_tokenizer
    return [one for one in ([source] if source is target else [source, target]) if not isinstance(one, RawIds)]


def special(patient: Patient) -> Measured:
    """Whether the special ids of the config are those of the tokenizer."""
    tokenizers = _tokenizers(patient)
    if not tokenizers:
        return not_applicable(_NO_PIECES)
    ids = {kind: getattr(patient.config, f"{kind}_id") for kind in _NAMES}
    ids = {kind: i for kind, i in ids.items() if i is not None}
    wrong, odd = [], []
    for tokenizer in tokenizers:
        for kind, i in ids.items():
            piece = tokenizer.piece(i) if i < tokenizer.size else None
            if piece is None or _is_another(kind, piece):
                wrong.append((f"{kind}_id", i, piece))
            elif not tokenizer.is_special(i) or _has_its_own(kind, piece, tokenizer):
                odd.append((f"{kind}_id", i, piece))
    why = say(
        "Each of these ids is read and written with a meaning of its own: it has one piece, and that is special."
    )
    n = len(wrong) + len(odd)
    if not n:
        return well(say("All {n} special ids are special pieces of the tokenizer.", n=len(ids)), 0.0, 1.0, why)
    name, i, piece = (wrong or odd)[0]
    said = (
        say("{name} is {i}, which the tokenizer does not have.", name=name, i=i)
        if piece is None
        else say("{name} is {i}, which the tokenizer calls “{piece}”.", name=name, i=i, piece=piece)
    )
    return Measured(
        verdict="broken" if wrong else "look",
        number=float(n),
        threshold=1.0,
        said=said,
        why=why,
        meaning=say(
            "With a wrong end id outputs do not end or end at once; with a wrong padding id the attention hides real "
            "tokens; with a wrong start id the decoder begins where it never began in training."
        ),
        causes=say(
            "Another tokenizer than that of the training, ids that were typed by hand, or special "
            "pieces that were added after training and moved the others. Look the ids up in the tokenizer's own "
            "files, and set them in config.json."
        ),
        places=tuple(dict.fromkeys(f"{name} = {i}" for name, i, _ in (*wrong, *odd)))[:MOST_PLACES],
    )


def _is_another(kind: str, piece: str) -> bool:
    """Whether a piece is known as one of another kind; padding and start may be the end, or padding unknown."""
    if piece in _NAMES[kind] or piece == _ENDS_TEXT:
        return False
    allowed = {"pad": {"unk", "eos", "bos"}, "bos": {"eos", "pad"}, "unk": {"pad"}, "eos": set[str]()}[kind]
    return any(piece in names for other, names in _NAMES.items() if other not in allowed)


def _has_its_own(kind: str, piece: str, tokenizer: AnyTokenizer) -> bool:
    """Whether a piece is not of a kind, although the tokenizer has one that is."""
    names = _NAMES[kind] | {_ENDS_TEXT}
    return piece not in names and any(tokenizer.id_of(name) is not None for name in _NAMES[kind])


def comes_back(patient: Patient) -> Measured:
    """Whether a text that was split into pieces and joined again is the same text."""
    if not _tokenizers(patient):
        return not_applicable(_NO_PIECES)
    known = [one for one in spelled(patient) if not _unknown(one, patient) and one.encoding.ids]
    if not known:
        return not_applicable(_NO_TEXT)
    lost = [one for one in known if not _is_same(one)]
    share = 1 - len(lost) / len(known)
    said = say("{share:.0%} of {n} texts come back from their pieces as they were.", share=share, n=len(known))
    why = say(
        "Case, accents and spaces do not count, as many tokenizers drop them on purpose. A text or two with signs "
        "that a tokenizer writes otherwise say nothing."
    )
    if share >= FEW_COME_BACK:
        return well(said, share, FEW_COME_BACK, why)
    return Measured(
        verdict="look",
        number=share,
        threshold=FEW_COME_BACK,
        said=said,
        why=why,
        meaning=say(
            "The tokenizer loses or changes part of what it reads or writes: the model never sees the text that was "
            "typed, or its outputs are not shown as it meant them."
        ),
        causes=say(
            "A vocabulary file without the merges or rules that belong to it, pieces read in another "
            "order or with another mark for spaces, or a tokenizer of another language."
        ),
        places=tuple(one.text for one in lost[:MOST_PLACES]),
    )


def _is_same(one: Spelled) -> bool:
    try:
        back = one.tokenizer.decode(one.encoding.ids)
    except TokenizerError:
        return False
    return _bare(back) == _bare(one.text) or one.tokenizer.encode(back).ids == one.encoding.ids


def _bare(text: str) -> str:
    """A text without case, accents and spaces."""
    split = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in split if not unicodedata.combining(c) and not c.isspace())


def unknown(patient: Patient) -> Measured:
    """How much of the texts the tokenizers have no pieces for."""
    tokenizers, unk = _tokenizers(patient), patient.config.unk_id
    if not tokenizers:
        return not_applicable(_NO_PIECES)
    if unk is None:
        return not_applicable(say("This model has no unknown piece."))
    texts = spelled(patient)
    n_pieces = sum(len(one.encoding.ids) for one in texts)
    if not n_pieces:
        return not_applicable(_NO_TEXT)
    missing = [piece for one in texts for piece in _unknown(one, patient)]
    share = len(missing) / n_pieces
    said = say("{share:.1%} of {n:,} pieces are unknown.", share=share, n=n_pieces)
    why = say(
        "Texts of the language that a tokenizer was made for have at most a few in a hundred, names and rare signs; "
        "the shipped checkpoints have less than 1 % on texts that they were not trained on."
    )
    if share < MANY_UNKNOWN:
        return well(said, share, MANY_UNKNOWN, why)
    return Measured(
        verdict="look",
        number=share,
        threshold=MANY_UNKNOWN,
        said=said,
        why=why,
        meaning=say("The model reads one and the same piece for all of these, so that it cannot know what was said."),
        causes=say(
            "Texts of another language than the model's, the tokenizer of another model, source and "
            "target exchanged, or texts that were normalised otherwise (another script, capital letters)."
        ),
        places=tuple(dict.fromkeys(missing))[:MOST_PLACES],
    )


def _unknown(one: Spelled, patient: Patient) -> Sequence[str]:
    pairs = zip(one.encoding.ids, one.encoding.pieces, strict=True)
    return [piece for i, piece in pairs if i == patient.config.unk_id]


TESTS: tuple[Test, ...] = (
    Test("special_ids", "tokenizer", say("Special ids are those of the tokenizer"), special),
    Test("round_trip", "tokenizer", say("Texts come back from their pieces"), comes_back),
    Test("unknown_pieces", "tokenizer", say("The tokenizer knows the texts"), unknown),
)
