"""Text to pieces to ids and back, with SentencePiece.

Source: Kudo and Richardson, "SentencePiece" (2018).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import sentencepiece

from transformer.errors import TokenizerError
from transformer.text.sampling import Sampler

SPACE_MARK = "▁"  # SentencePiece writes a space as this sign, so that pieces can be joined again


@dataclass(frozen=True)
class Encoding:
    """A text as tokens.

    Attributes:
        ids: The id of each token.
        pieces: The piece of each token as the text has it; where the id is the unknown one, the piece still
            shows what was not known.
    """

    ids: tuple[int, ...]
    pieces: tuple[str, ...]


class Tokenizer:
    """One vocabulary.

    Args:
        model: The bytes of a SentencePiece model file, already checked (see `transformer.text.sentencepiece_check`).

    Attributes:
        pieces: All pieces, in the order of their ids.

    Raises:
        TokenizerError: SentencePiece cannot read the model.
    """

    def __init__(self, model: bytes) -> None:
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except (RuntimeError, OSError) as error:
            raise TokenizerError("SentencePiece cannot read this model: {reason}", reason=str(error)[:120]) from None
        self.pieces: tuple[str, ...] = tuple(map(self._processor.IdToPiece, range(self.size)))

    @property
    def size(self) -> int:
        """Number of pieces."""
        return int(self._processor.GetPieceSize())

    def encode(self, text: str) -> Encoding:
        """Split a text into pieces; no special pieces are added."""
        ids = self._processor.EncodeAsIds(text)
        pieces = self._processor.EncodeAsPieces(text)
        return Encoding(tuple(ids), tuple(pieces))

    def sampler(self) -> Sampler:
        """What draws splits of this vocabulary by chance.

        Raises:
            TokenizerError: The model knows one split only, as those of single characters do.
        """
        return Sampler(self._processor.serialized_model_proto(), self._processor.Normalize)

    def decode(self, ids: Sequence[int]) -> str:
        """Join pieces to a text; control pieces (start, end, padding) leave no trace.

        Raises:
            TokenizerError: An id is outside the vocabulary.
        """
        for i in ids:
            self._check(i)
        return str(self._processor.DecodeIds(list(ids)))

    def piece(self, i: int) -> str:
        """The piece of an id.

        Raises:
            TokenizerError: The id is outside the vocabulary.
        """
        self._check(i)
        return self.pieces[i]

    def id_of(self, piece: str) -> int | None:
        """The id of a piece, None if the vocabulary has no such piece."""
        i = int(self._processor.PieceToId(piece))  # the unknown piece's if there is none
        return i if self.pieces[i] == piece else None

    def is_special(self, i: int) -> bool:
        """Whether an id stands for no text of its own: start, end, padding, unknown, or an unused row."""
        self._check(i)
        p = self._processor
        return bool(p.IsControl(i) or p.IsUnknown(i) or p.IsUnused(i))

    def _check(self, i: int) -> None:
        if not 0 <= i < self.size:
            raise TokenizerError(
                "piece id {i} is outside the vocabulary; ids go from 0 to {last}.", i=i, last=self.size - 1
            )
