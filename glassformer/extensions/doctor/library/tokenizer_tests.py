"""Doctor tests of tokenizers: sizes, special ids, round trip, unknown tokens.

They read no parameter. Whether source and target were exchanged, the search for a wiring says (`wiring_tests`).
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from glassformer.extensions.doctor.library.context import DoctorTest, ExaminationContext
from glassformer.extensions.doctor.library.findings import DoctorTestResult, NotTestable, at_most
from transformer.errors import TokenizerError
from transformer.i18n import Sentence, say
from transformer.text.tokenizer import AnyTokenizer, Encoding, RawIds, normalise

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
_NO_TEXT: Sentence = say("There is no text to test the tokenizer with. Provide some.")

of_tokenizers = partial(DoctorTest, "tokenizer")


@of_tokenizers(
    say("Every token has a row in the tables"),
    threshold=1.0,
    why=say(
        "The model cannot read a token that has no row in its tables, and it cannot write a row that has no token."
    ),
    meaning=say("Some texts cannot be read, or some tokens use rows that were trained for other tokens."),
    causes=say(
        "The tokenizer belongs to a different model or to one of a different size, source and target are swapped, "
        "or tokens were added to the tokenizer after training. Use the tokenizer file that the model was trained "
        "with."
    ),
)
def vocabulary_sizes(patient: ExaminationContext) -> DoctorTestResult:
    """Whether tables and vocabularies have the same size."""
    model, checkpoint, config = patient.model, patient.checkpoint, patient.config
    found = [("src_table", len(model.src_table), checkpoint.src_tokenizer.size, config.src_vocab_size)]
    n_target = checkpoint.tgt_tokenizer.size
    if patient.anatomy.gives_logits or not config.shared_vocab:
        found.append(("target_table", len(model.target_table), n_target, config.tgt_vocab_size))
    if patient.anatomy.gives_logits:
        found.append(("output_weight", len(model.output_weight), n_target, config.tgt_vocab_size))
    apart = max(abs(rows - pieces) + abs(rows - said) for _, rows, pieces, said in found)
    name, rows, pieces, said = next((one for one in found if not one[1] == one[2] == one[3]), found[0])
    text = say(
        "{name} has {rows:,} rows, its tokenizer has {pieces:,} tokens, and the vocabulary size in the config is "
        "{said:,}.",
        name=name, rows=rows, pieces=pieces, said=said,
    )  # fmt: skip
    places = (name,) if apart else ()
    return DoctorTestResult(verdict="broken" if apart else "well", number=float(apart), said=text, places=places)


@dataclass(frozen=True)
class Spelled:
    """A text and its pieces."""

    text: str  # after the model's own steps of normalisation
    encoding: Encoding  # its pieces
    tokenizer: AnyTokenizer  # that of its side


def spelled(patient: ExaminationContext) -> list[Spelled]:
    """The patient's texts as pieces, those of the target after those of the source."""
    checkpoint, samples = patient.checkpoint, patient.samples
    sides = (samples.sources, checkpoint.src_tokenizer), (samples.targets, checkpoint.tgt_tokenizer)
    normal = [(normalise(one, patient.config.normalisation), by) for texts, by in sides for one in texts]
    return [Spelled(text, tokenizer.encode(text), tokenizer) for text, tokenizer in normal]


def _tokenizers(patient: ExaminationContext) -> list[AnyTokenizer]:
    """Those that split text, each once; `NotTestable` where there are none."""
    source, target = patient.checkpoint.src_tokenizer, patient.checkpoint.tgt_tokenizer
    found = [one for one in ([source] if source is target else [source, target]) if not isinstance(one, RawIds)]
    if not found:
        raise NotTestable(
            "This model came without a tokenizer, so the row numbers of its embedding table serve as tokens."
        )
    return found


@of_tokenizers(
    say("Special ids match the tokenizer"),
    threshold=1.0,
    why=say("Each special id has its own meaning, so it has to belong to a special token with that meaning."),
    meaning=say(
        "With a wrong end id, outputs never end or end immediately. With a wrong padding id, real tokens are "
        "hidden from attention. With a wrong start id, the decoder starts from a token that it never started from "
        "in training."
    ),
    causes=say(
        "The tokenizer is not the one used in training, the ids were typed by hand, or special tokens were added "
        "after training and shifted the other ids. Look up the ids in the tokenizer's own files, and set them in "
        "config.json."
    ),
)
def special_ids(patient: ExaminationContext) -> DoctorTestResult:
    """Whether the special ids of the config are those of the tokenizer."""
    tokenizers = _tokenizers(patient)
    ids = {kind: i for kind in _NAMES if (i := getattr(patient.config, f"{kind}_id")) is not None}
    wrong, odd = [], []
    for tokenizer in tokenizers:
        for kind, i in ids.items():
            piece = tokenizer.piece(i) if i < tokenizer.size else None
            if piece is None or _is_another(kind, piece):
                wrong.append((f"{kind}_id", i, piece))
            elif not tokenizer.is_special(i) or _has_its_own(kind, piece, tokenizer):
                odd.append((f"{kind}_id", i, piece))
    faulty = [*wrong, *odd]
    if not faulty:
        said = say("All {n} special ids belong to special tokens of the tokenizer.", n=len(ids))
        return DoctorTestResult(verdict="well", number=0.0, said=said)
    name, i, piece = faulty[0]
    said = (
        say("{name} is {i}, but the tokenizer has no token with this id.", name=name, i=i)
        if piece is None
        else say("{name} is {i}, but in the tokenizer this id belongs to “{piece}”.", name=name, i=i, piece=piece)
    )
    places = tuple(dict.fromkeys(f"{name} = {i}" for name, i, _ in faulty))
    return DoctorTestResult(verdict="broken" if wrong else "look", number=float(len(faulty)), said=said, places=places)


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


@of_tokenizers(
    say("Tokens join back into the original text"),
    threshold=FEW_COME_BACK,
    why=say(
        "This test ignores case, accents and spaces, because many tokenizers drop them on purpose. A difference in "
        "one or two texts does not matter if they contain symbols that the tokenizer writes differently."
    ),
    meaning=say(
        "The tokenizer loses or changes part of what it reads or writes, so the model does not read exactly what "
        "was typed, or its outputs are displayed incorrectly."
    ),
    causes=say(
        "The vocabulary file came without its merges or rules, tokens are read in the wrong order or with the "
        "wrong mark for spaces, or the tokenizer belongs to a different language."
    ),
)
def round_trip(patient: ExaminationContext) -> DoctorTestResult:
    """Whether a text that was split into pieces and joined again is the same text."""
    _tokenizers(patient)
    known = [one for one in spelled(patient) if not _unknown(one, patient) and one.encoding.ids]
    if not known:
        raise NotTestable(_NO_TEXT)
    lost = [one.text for one in known if not _is_same(one)]
    share = 1 - len(lost) / len(known)
    said = say(
        "{share:.0%} of {n} texts are unchanged after being split into tokens and joined again.",
        share=share,
        n=len(known),
    )
    is_well = share >= FEW_COME_BACK
    places = () if is_well else tuple(lost)
    return DoctorTestResult(verdict="well" if is_well else "look", number=share, said=said, places=places)


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


@of_tokenizers(
    say("The texts have few unknown tokens"),
    threshold=MANY_UNKNOWN,
    why=say(
        "If the texts are in the tokenizer's language, at most a few percent of their tokens are unknown, for "
        "example in names and rare symbols. In the example texts of the shipped checkpoints, at most {most:.1%} are "
        "unknown.",
        most=at_most("unknown_pieces"),
    ),
    meaning=say(
        "The model reads the same unknown token for all these parts of the texts, so it cannot distinguish them."
    ),
    causes=say(
        "The texts are not in the model's language, the tokenizer belongs to a different model, source and target "
        "are swapped, or the texts were normalised differently (for example, a different script or capital "
        "letters)."
    ),
)
def unknown_pieces(patient: ExaminationContext) -> DoctorTestResult:
    """How much of the texts the tokenizers have no pieces for."""
    _tokenizers(patient)
    if patient.config.unk_id is None:
        raise NotTestable("This model has no unknown token.")
    texts = spelled(patient)
    n_pieces = sum(len(one.encoding.ids) for one in texts)
    if not n_pieces:
        raise NotTestable(_NO_TEXT)
    missing = [piece for one in texts for piece in _unknown(one, patient)]
    share = len(missing) / n_pieces
    said = say("{share:.1%} of {n:,} tokens are unknown.", share=share, n=n_pieces)
    if share < MANY_UNKNOWN:
        return DoctorTestResult(verdict="well", number=share, said=said)
    return DoctorTestResult(verdict="look", number=share, said=said, places=tuple(dict.fromkeys(missing)))


def _unknown(one: Spelled, patient: ExaminationContext) -> Sequence[str]:
    pairs = zip(one.encoding.ids, one.encoding.pieces, strict=True)
    return [piece for i, piece in pairs if i == patient.config.unk_id]


TESTS = (vocabulary_sizes, special_ids, round_trip, unknown_pieces)
