"""A vocabulary without a file: bytes as they are (ByT5).

Source: Xue et al., "ByT5: Towards a token-free future with pre-trained byte-to-byte models" (2022), section 3.1.
"""

from collections.abc import Iterable, Sequence

from glassformer.extensions.tokenizers.byte_pairs import for_people
from glassformer.extensions.tokenizers.piece_rows import Rows, Table, Token, Way, padded
from transformer.text.tokenizer import Wrapping

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
