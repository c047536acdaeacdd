"""Subword tokenizers: byte-pair encoding, bytes (ByT5), SentencePiece with its own or other ids, and WordPiece.

**Byte pairs** over bytes:

1. A text is cut into words, each with the space before it.
2. A word is written as its bytes, each as one visible character (`SIGNS`).
3. The pair of neighbours that was learned first is merged, again and again, until none is left that was learned.

Which characters are letters is Python's Unicode, which may be a year older or younger than another library's.

**SentencePiece's pieces.** fairseq (mBART, NLLB) begins with `<s>`, `<pad>`, `</s>`, `<unk>`, so its ids are one
higher. Pegasus keeps 103 rows for its training. Marian and M2M100 list the row of each piece in a `vocab.json`. LLaMA
2, Mistral and Gemma use SentencePiece's own ids and write unknown text as bytes, one piece each. Only the first word of
LLaMA's texts gets a leading space, unless it has one: so Hugging Face's transformers reads these files.

**WordPiece**, as BERT and DistilBERT read:

1. A text is cleaned: control characters are removed, white space becomes a space, each Chinese character is a word;
   uncased vocabularies lower the case and remove accents.
2. It is cut into words at spaces; each punctuation mark is a word, too.
3. A word begins with the longest piece that fits; pieces inside a word are written ##so. If no piece fits, or the word
   has over 100 characters, the whole word is unknown.

Sources: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), section 3.2; Radford
et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2, and the pattern published with it;
Xue et al., "ByT5" (2022), section 3.1, for bytes; Kudo and Richardson, "SentencePiece" (2018); Touvron et al., "LLaMA"
(2023), section 2.1; for each mapping see `tokenizer_families`. Schuster and Nakajima, "Japanese and Korean Voice
Search" (2012), and Devlin et al., "BERT" (2019), section 3, with its tokenizer, for WordPiece.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import sentencepiece

from glassformer.extensions.tokenizers.vocabulary import Pair, PieceRows, Token, VocabularyTable, Way, padded, within
from transformer.errors import ClauseError, shown
from transformer.text import sentencepiece_check
from transformer.text.subword_sampling import merged
from transformer.text.tokenizer import SPACE_MARK, Tokenizer, Wrapping

_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _VISIBLE]
SIGNS = {byte: chr(byte) for byte in _VISIBLE} | {byte: chr(256 + n) for n, byte in enumerate(_OTHERS)}
BYTES = {sign: byte for byte, sign in SIGNS.items()}

_SPACES = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | set(map(chr, range(0x2000, 0x200B)))
_SHORT = re.compile("'(?:s|t|re|ve|m|ll|d)")  # English: it's, don't, we're
# Kinds of characters: letter, number, punctuation or anything else, a space, other white space. Of several white
# spaces the last one belongs to the next word.
_RUN = re.compile(r" ?L+| ?N+| ?P+|[ S]+(?![LNP])|[ S]+")
_LOST = re.compile("[\udc80-\udcff]")  # Python's escape of a byte that is not valid UTF-8


def words(text: str) -> Iterator[str]:
    """The words of a text, spaces included; joined they are the text again."""
    kinds = "".join(map(_kind, text))
    start = 0
    while start < len(text):
        found = _SHORT.match(text, start) or _RUN.match(kinds, start)
        assert found  # _RUN knows every kind
        yield text[start : found.end()]
        start = found.end()


def _kind(character: str) -> str:
    if character == " ":
        return " "
    if character in _SPACES:
        return "S"
    category = unicodedata.category(character)[0]
    return category if category in "LN" else "P"


def as_bytes(piece: str) -> bytes:
    """The bytes of a piece of the vocabulary; one that is not written in `SIGNS` stands for its own text."""
    try:
        return bytes(map(BYTES.__getitem__, piece))
    except KeyError:
        return piece.encode()


def check_bytes(pieces: Sequence[str], name: str) -> None:
    """Make sure that a vocabulary over bytes has every byte, so that it can read any text."""
    known = set(pieces)
    with within(name):
        for byte, sign in SIGNS.items():
            if sign not in known:
                raise ClauseError(
                    "has no token for the byte {byte} (written {sign}); a byte vocabulary needs a token for each of "
                    "the 256 bytes",
                    byte=f"0x{byte:02X}",
                    sign=shown(sign),
                )


def for_people(content: bytes) -> str:
    """Bytes as a piece shows them: text, ▁ for a space, and <0xE4> for a byte that is not valid UTF-8."""
    text = _bare_mark(content.decode("utf-8", "surrogateescape"))
    return _LOST.sub(lambda found: f"<0x{ord(found[0]) - 0xDC00:02X}>", text).replace(" ", SPACE_MARK)


def _bare_mark(text: str) -> str:
    """The text with the bytes of each literal ▁, because ▁ itself means a space."""
    if SPACE_MARK not in text:  # true of nearly all pieces
        return text
    return text.replace(SPACE_MARK, "".join(f"<0x{byte:02X}>" for byte in SPACE_MARK.encode()))


class BytePairTokenizer(PieceRows):
    """Byte pair encoding over bytes.

    `names` are the rows as the vocabulary writes them, in `SIGNS`; the table has them for display. Merges are in the
    order in which they were learned. `leading_space` reads a text as if a space came before it.
    """

    def __init__(
        self, table: VocabularyTable, names: Sequence[str], merges: Sequence[Pair], *, leading_space: bool = False
    ) -> None:
        super().__init__(table)
        self._ids_of = {name: i for i, name in enumerate(names)}
        self._bytes = [as_bytes(name) for name in names]
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._leading_space = leading_space

    def _split(self, text: str) -> Iterable[Token]:
        if self._leading_space and not text.startswith(" "):
            text = " " + text
        for word in words(text):
            signs = [SIGNS[byte] for byte in word.encode()]
            for part in merged(signs, lambda left, right: self._ranks.get((left, right))):
                i = self._ids_of[part]
                yield i, self.pieces[i]

    def _join(self, ids: Sequence[int]) -> str:
        return b"".join(self._bytes[i] for i in ids).decode("utf-8", "replace")


FIRST_BYTE = 3  # after padding, end and unknown
SENTINELS = 125  # marks of gaps in a text, which the model was trained to fill


class ByteTokenizer(PieceRows):
    """ByT5: each byte of the text is a piece; `size` is the model's rows, if more than pieces."""

    def __init__(self, size: int | None = None) -> None:
        names = ("<pad>", "</s>", "<unk>")
        sentinels = [f"<extra_id_{k}>" for k in range(SENTINELS)]
        pieces = padded((*names, *(for_people(bytes([byte])) for byte in range(256)), *sentinels), size)
        first = FIRST_BYTE + 256
        typed = {name: i for i, name in enumerate(names)} | {name: first + k for k, name in enumerate(sentinels)}
        special = {*range(FIRST_BYTE), *range(first, len(pieces))}
        ways = dict.fromkeys(names, Way(lstrip=True, rstrip=True))
        super().__init__(VocabularyTable(pieces, special, typed, ways, Wrapping(after=(1,))))

    def _split(self, text: str) -> Iterable[Token]:
        return [(FIRST_BYTE + byte, self.pieces[FIRST_BYTE + byte]) for byte in text.encode()]

    def _join(self, ids: Sequence[int]) -> str:
        return bytes(i - FIRST_BYTE for i in ids).decode("utf-8", "ignore")


LANGUAGE = re.compile(">>.*?<<", re.DOTALL)  # the target language of a multilingual Marian model

Row = Callable[[int, str], int]  # SentencePiece's id and the text's piece -> the model's row
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_NORMALISER, _LEADING_SPACE = 3, 3  # fields of a model file: how texts are normalised; whether a space is put before
# Appended to override the setting: in protocol buffers the last value wins, and this code adds the space itself.
_NO_LEADING_SPACE = bytes([_NORMALISER << 3 | 2, 2, _LEADING_SPACE << 3, 0])


class MappedTokenizer(PieceRows):
    """SentencePiece's pieces in other rows: `splitting` splits texts, `row` returns each piece's row.

    `joining` joins pieces of a different language; if None, every mark but the first becomes a space. With
    `language_first` a text may begin with its language, as in ">>fra<< Hello".
    """

    def __init__(
        self,
        table: VocabularyTable,
        splitting: Tokenizer,
        row: Row,
        *,
        joining: Tokenizer | None = None,
        language_first: bool = False,
    ) -> None:
        super().__init__(table)
        self._splitting, self._row, self._joining = splitting, row, joining
        self._language_first = language_first

    def _split(self, text: str) -> Iterable[Token]:
        language = LANGUAGE.match(text) if self._language_first else None
        if language:
            yield self._row(-1, language[0]), language[0]
            text = text[language.end() :]
        found = self._splitting.encode(text)
        for i, piece in zip(found.ids, found.pieces, strict=True):
            yield self._row(i, piece), piece

    def _join(self, ids: Sequence[int]) -> str:
        pieces = [self.pieces[i] for i in ids]
        if self._joining is None:
            begin = [piece.replace(SPACE_MARK, "") for piece in pieces[:1]]
            return "".join(begin + [piece.replace(SPACE_MARK, " ") for piece in pieces[1:]])
        # A piece that `joining` does not know keeps its mark.
        return self._joining.join(pieces).replace(SPACE_MARK, " ").strip()


class UnchangedTokenizer(PieceRows):
    """Plain SentencePiece from a checked model file; `leading_space` is the file's setting, unless it is given."""

    def __init__(self, table: VocabularyTable, model: bytes, *, leading_space: bool | None = None) -> None:
        super().__init__(table)
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model + _NO_LEADING_SPACE)
        self._leading_space = _says_leading_space(model) if leading_space is None else leading_space

    def _parts(self, text: str) -> Iterator[Iterable[Token]]:
        begins = (
            self._leading_space and text and not text.startswith((" ", SPACE_MARK)) and not self._early.begins(text)
        )
        return super()._parts(SPACE_MARK + text if begins else text)

    def _split(self, text: str) -> Iterable[Token]:
        ids, pieces = self._processor.EncodeAsIds(text), self._processor.EncodeAsPieces(text)
        return zip(ids, pieces, strict=True)

    def _join(self, ids: Sequence[int]) -> str:
        text = ""
        for of_bytes, run in groupby((self.pieces[i] for i in ids), lambda piece: bool(_BYTE.fullmatch(piece))):
            pieces = list(run)
            text += _from_bytes(pieces) if of_bytes else "".join(pieces).replace(SPACE_MARK, " ")
        return text.removeprefix(" ") if self._leading_space else text


def _from_bytes(pieces: Sequence[str]) -> str:
    """The text of single-byte pieces; one replacement character per byte if they are not valid UTF-8."""
    try:
        return bytes(int(piece[3:5], 16) for piece in pieces).decode()
    except UnicodeDecodeError:
        return "\ufffd" * len(pieces)


def _says_leading_space(model: bytes) -> bool:
    for number, settings in sentencepiece_check.fields(memoryview(model)):
        if number == _NORMALISER and isinstance(settings, memoryview):
            return bool(dict(sentencepiece_check.fields(settings)).get(_LEADING_SPACE, True))
    return True


GOES_ON = "##"
MOST_CHARACTERS = 100  # of a word

# Blocks of Chinese characters, also those that Japanese and Korean use.
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
_BREAKS = frozenset("\t\n\r")
# A text that is joined has no space before these.
_TIGHT = (" .", " ?", " !", " ,", " n't", " 'm", " 's", " 've", " 're")


@dataclass(frozen=True)
class Cleaning:
    """What is done to a text first."""

    lower_case: bool = True  # small letters only
    strip_accents: bool | None = None  # letters without their accents; None for "if small letters"
    chinese: bool = True  # A space around each Chinese character

    def clean(self, text: str) -> str:
        """The normalised text, before it is split into words."""
        # Control, format and private characters go, and U+FFFD.
        kept = (c for c in text if c in _BREAKS or not (c == "\ufffd" or unicodedata.category(c)[0] == "C"))
        text = "".join(" " if c in _BREAKS or unicodedata.category(c)[0] == "Z" else c for c in kept)
        if self.chinese:
            text = "".join(f" {c} " if any(first <= ord(c) <= last for first, last in _CHINESE) else c for c in text)
        if self.lower_case if self.strip_accents is None else self.strip_accents:
            text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        return "".join(c.lower() for c in text) if self.lower_case else text  # one by one: a last sigma is as any


def _is_punctuation(character: str) -> bool:
    # Of ASCII all signs count, such as $ and ^, which Unicode calls symbols.
    signs = "!" <= character <= "~" and not character.isalnum()
    return signs or unicodedata.category(character)[0] == "P"


def cleaned_words(text: str) -> Iterator[str]:
    """The words of a cleaned text; each punctuation mark is one."""
    for chunk in text.split(" "):
        word = ""
        for character in chunk:
            if not _is_punctuation(character):
                word += character
                continue
            if word:
                yield word
            yield character
            word = ""
        if word:
            yield word


class WordPieceTokenizer(PieceRows):
    """WordPiece: a text is cleaned, its words split into `names`; added pieces are found only in the typed text."""

    continuation = GOES_ON

    def __init__(self, table: VocabularyTable, names: Sequence[str], *, unknown: int, cleaning: Cleaning) -> None:
        self._unknown, self._cleaning = unknown, cleaning
        self._ids_of = {name: i for i, name in enumerate(names)}
        super().__init__(table)

    def _cleaned(self, text: str) -> str:
        return self._cleaning.clean(text)

    def _split(self, text: str) -> Iterable[Token]:
        for word in cleaned_words(text):
            yield from self._pieces_of(word) or [(self._unknown, word)]

    def _pieces_of(self, word: str) -> list[Token]:
        """The pieces of a word; empty if it is unknown."""
        found: list[Token] = []
        start = 0
        while start < len(word) <= MOST_CHARACTERS:
            begin = GOES_ON if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if begin + word[start:end] in self._ids_of), None)
            if end is None:
                return []
            piece = begin + word[start:end]
            found.append((self._ids_of[piece], piece))
            start = end
        return found

    def _join(self, ids: Sequence[int]) -> str:
        text = ""
        for i in ids:
            piece = self.pieces[i]
            part = piece.removeprefix(GOES_ON) if text and piece.startswith(GOES_ON) else f" {piece}" if text else piece
            for tight in _TIGHT:
                part = part.replace(tight, tight[1:])
            text += part
        return text
