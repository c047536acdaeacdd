"""Vocabularies without a file: bytes as they are (ByT5), and ids as they are, where there is no tokenizer.

Source: Xue et al., "ByT5: Towards a token-free future with pre-trained byte-to-byte models" (2022), section 3.1.
"""

from collections.abc import Collection, Iterable, Sequence

from transformer.i18n import say
from transformer.text.byte_pairs import for_people
from transformer.text.piece_rows import Rows, Table, Token, Way, padded
from transformer.text.tokenizer import AnyTokenizer, Encoding, Wrapping

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


class RawIds(AnyTokenizer):
    """No vocabulary: a text is a row of ids, such as 12 7 5, and each piece is the number of its row."""

    continuation = " "  # no number begins with it, so each is a word
    notes = (
        say(
            "This model has no tokenizer, so its pieces are the row numbers of its embedding table. Type numbers "
            "separated by spaces, for example 12 7 5."
        ),
    )

    def __init__(self, size: int, special: Collection[int] = ()) -> None:
        super().__init__(tuple(map(str, range(size))), special)

    def encode(self, text: str) -> Encoding:
        """The ids that a text lists; what is no id of this model is left unread."""
        listed = text.replace(",", " ").split()
        read = [word for word in listed if word in self._ids]
        unread = tuple(word for word in listed if word not in self._ids)
        return Encoding(tuple(self._ids[word] for word in read), tuple(read), unread)

    def decode(self, ids: Sequence[int]) -> str:
        """The ids with spaces between them, without special ones."""
        return " ".join(str(i) for i in ids if not self.is_special(i))
