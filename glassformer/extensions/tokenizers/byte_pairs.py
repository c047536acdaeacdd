"""Byte pair encoding over bytes (GPT-2, RoBERTa, BART), and bytes as they are (ByT5): nothing is ever unknown.

1. A text is cut into words, each with the space before it.
2. A word is written as its bytes, each as one visible character (`SIGNS`).
3. The pair of neighbours that was learned first is merged, again and again, until none is left that was learned.

Sources: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), section 3.2; Radford
et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2, and the pattern published with it.
Which characters are letters is Python's Unicode, which may be a year older or younger than another library's.

Source: Xue et al., "ByT5: Towards a token-free future with pre-trained byte-to-byte models" (2022), section 3.1.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from glassformer.extensions.tokenizers.piece_rows import Rows, Table, Token, Way, padded
from transformer.text.sampling import merged
from transformer.text.tokenizer import SPACE_MARK, Wrapping

Pair = tuple[str, str]

_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _VISIBLE]
SIGNS = {byte: chr(byte) for byte in _VISIBLE} | {byte: chr(256 + n) for n, byte in enumerate(_OTHERS)}
BYTES = {sign: byte for byte, sign in SIGNS.items()}

_SPACES = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | set(map(chr, range(0x2000, 0x200B)))
_SHORT = re.compile("'(?:s|t|re|ve|m|ll|d)")  # English: it's, don't, we're
# Kinds of characters: letter, number, punctuation or anything else, a space, other white space. Of several white
# spaces the last one belongs to the word behind it.
_RUN = re.compile(r" ?L+| ?N+| ?P+|[ S]+(?![LNP])|[ S]+")
_LOST = re.compile("[\udc80-\udcff]")  # what Python makes of a byte that is no whole character


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


def for_people(content: bytes) -> str:
    """Bytes as a piece shows them: text, ▁ for a space, and <0xE4> for a byte that is no whole character."""
    text = _bare_mark(content.decode("utf-8", "surrogateescape"))
    return _LOST.sub(lambda found: f"<0x{ord(found[0]) - 0xDC00:02X}>", text).replace(" ", SPACE_MARK)


def _bare_mark(text: str) -> str:
    """A text that holds the mark itself, with the mark's bytes in its place: the mark says that there was a space."""
    if SPACE_MARK not in text:  # of nearly all pieces, and there are many
        return text
    return text.replace(SPACE_MARK, "".join(f"<0x{byte:02X}>" for byte in SPACE_MARK.encode()))


class BytePairTokenizer(Rows):
    """Byte pair encoding over bytes.

    `names` are the rows as the vocabulary writes them, in `SIGNS`; the table has them for people. Merges are in the
    order in which they were learned. With a leading space a text is read as if a space stood before it.
    """

    def __init__(
        self, table: Table, names: Sequence[str], merges: Sequence[Pair], *, leading_space: bool = False
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
SENTINELS = 125  # they stand for what is left out of a text that a model was trained to fill in


class ByteTokenizer(Rows):
    """ByT5: each byte of the text is a piece; the model has more rows than pieces where `size` says so."""

    def __init__(self, size: int | None = None) -> None:
        names = ("<pad>", "</s>", "<unk>")
        sentinels = [f"<extra_id_{k}>" for k in range(SENTINELS)]
        pieces = padded((*names, *(for_people(bytes([byte])) for byte in range(256)), *sentinels), size)
        first = FIRST_BYTE + 256
        typed = {name: i for i, name in enumerate(names)} | {name: first + k for k, name in enumerate(sentinels)}
        special = {*range(FIRST_BYTE), *range(first, len(pieces))}
        ways = dict.fromkeys(names, Way(eats_before=True, eats_behind=True))
        super().__init__(Table(pieces, special, typed, ways, Wrapping(after=(1,))))

    def _split(self, text: str) -> Iterable[Token]:
        return [(FIRST_BYTE + byte, self.pieces[FIRST_BYTE + byte]) for byte in text.encode()]

    def _join(self, ids: Sequence[int]) -> str:
        return bytes(i - FIRST_BYTE for i in ids).decode("utf-8", "ignore")
