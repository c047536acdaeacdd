"""SentencePiece with other ids than its own: its pieces are as ever, a table says which row each of them has.

fairseq (mBART, NLLB) begins with `<s>`, `<pad>`, `</s>`, `<unk>` and so comes one row later; Pegasus keeps 103 rows
for its training; Marian and M2M100 were trained elsewhere and list their pieces in a `vocab.json`.

Source: Kudo and Richardson, "SentencePiece" (2018); for each mapping see `transformer.text.family_tokenizers`.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from transformer.text.piece_rows import Rows, Table, Token
from transformer.text.tokenizer import SPACE_MARK, Tokenizer

LANGUAGE = re.compile(">>.*?<<", re.DOTALL)  # of a Marian model of several languages: what a text is translated to

Row = Callable[[int, str], int]  # SentencePiece's id and the piece as the text has it -> the row of the model


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
