"""SentencePiece's pieces in other people's checkpoints: with other ids than its own, or with every space of a text.

fairseq (mBART, NLLB) begins with `<s>`, `<pad>`, `</s>`, `<unk>` and so comes one row later; Pegasus keeps 103 rows
for its training; Marian and M2M100 were trained elsewhere and list their pieces in a `vocab.json`: a table says which
row each piece has. LLaMA 2, Mistral and Gemma have the ids that SentencePiece has itself; what it does not know is
written as bytes, one piece each.

Sources: Kudo and Richardson, "SentencePiece" (2018); Touvron et al., "LLaMA" (2023), section 2.1; for each mapping
see `vocabularies`. That of LLaMA's texts the first word alone gets a space before it, and none
if the text has one, is how Hugging Face's transformers reads these files.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import sentencepiece

from glassformer.extensions.tokenizers.piece_rows import Rows, Table, Token
from transformer.text import protobuf
from transformer.text.tokenizer import SPACE_MARK, Tokenizer

LANGUAGE = re.compile(">>.*?<<", re.DOTALL)  # of a Marian model of several languages: what a text is translated to

Row = Callable[[int, str], int]  # SentencePiece's id and the piece as the text has it -> the row of the model
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_NORMALISER, _LEADING_SPACE = 3, 3  # fields of a model file: how texts are normalised; whether a space is put before
# The settings once more, behind the others, where protocol buffers let the later value win: the space is put by hand.
_NO_LEADING_SPACE = bytes([_NORMALISER << 3 | 2, 2, _LEADING_SPACE << 3, 0])


class MappedTokenizer(Rows):
    """SentencePiece's pieces with rows of another order: `splitting` splits texts, `row` says where each piece lies.

    `joining` joins pieces, as those of its own language; None if every mark but the first is simply a space. A text
    may begin with its language, as in ">>fra<< Hello", where `language_first` says so.
    """

    def __init__(
        self,
        table: Table,
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
        # A piece that the other language's model does not know keeps its mark.
        return self._joining.join(pieces).replace(SPACE_MARK, " ").strip()


class UnchangedTokenizer(Rows):
    """SentencePiece as it is, by a model file that was checked.

    A text is read as if it began with a space where `leading_space` says so; None for what the file says.
    """

    def __init__(self, table: Table, model: bytes, *, leading_space: bool | None = None) -> None:
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
    """The text of pieces that are single bytes; a sign for each if they are no text."""
    try:
        return bytes(int(piece[3:5], 16) for piece in pieces).decode()
    except UnicodeDecodeError:
        return "\ufffd" * len(pieces)


def _says_leading_space(model: bytes) -> bool:
    for number, settings in protobuf.fields(memoryview(model)):
        if number == _NORMALISER and isinstance(settings, memoryview):
            return bool(dict(protobuf.fields(settings)).get(_LEADING_SPACE, True))
    return True
