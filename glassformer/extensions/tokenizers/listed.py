"""A vocabulary that is a plain list, as most tutorials have it: characters, or words with spaces between them.

The list is a vocab.txt, one piece a line, the first with id 0; or a vocab.json, {"piece": id}. If every piece but the
special ones is a single character, a text is cut into its characters; otherwise at its spaces.

Source: Karpathy, "char-rnn" (2015), and The Annotated Transformer (2018), for the two ways.
"""

from collections.abc import Iterable, Mapping, Sequence

from glassformer.extensions.tokenizers import vocabulary_files
from glassformer.extensions.tokenizers.piece_rows import Rows, Table, Token
from glassformer.extensions.tokenizers.vocabulary_files import Files
from transformer.errors import TokenizerError, shown
from transformer.text.tokenizer import Encoding

LINES, IDS = "vocab.txt", "vocab.json"

# What tokenizers call their special pieces, most usual first.
CALLED: Mapping[str, tuple[str, ...]] = {
    "pad_id": ("<pad>", "[PAD]", "<PAD>", "[pad]", "<blank>", "<|pad|>"),
    "unk_id": ("<unk>", "[UNK]", "<UNK>", "[unk]"),
    "bos_id": ("<s>", "<bos>", "[SOS]", "<sos>", "[BOS]", "[CLS]", "<BOS>", "<SOS>", "<start>", "<|startoftext|>"),
    "eos_id": ("</s>", "<eos>", "[EOS]", "[SEP]", "<EOS>", "<end>", "<|endoftext|>"),
}
SPECIAL = frozenset(name for names in CALLED.values() for name in names)


class ListTokenizer(Rows):
    """Pieces that are looked up as they are: characters of a text, or its words, between spaces.

    `unknown` is the row of what has no piece; None if such a thing is left unread.
    """

    continuation = " "  # no piece begins with it, so each is a word

    def __init__(self, table: Table, *, by_words: bool, unknown: int | None) -> None:
        super().__init__(table)
        self._by_words, self._unknown = by_words, unknown
        self._texts = {piece: i for piece, i in self._ids.items() if i not in table.special}

    def encode(self, text: str) -> Encoding:
        """Look up each character or word; where nothing stands for the unknown, what has no piece is left unread."""
        found = super().encode(text)
        known = [(i, piece) for i, piece in zip(found.ids, found.pieces, strict=True) if i >= 0]
        unread = tuple(piece for i, piece in zip(found.ids, found.pieces, strict=True) if i < 0)
        return Encoding(tuple(i for i, _ in known), tuple(piece for _, piece in known), unread)

    def _split(self, text: str) -> Iterable[Token]:
        for part in text.split() if self._by_words else text:
            if part in self._texts:
                yield self._texts[part], part
            elif not part.isspace():  # characters without a piece for spaces read none
                yield (-1 if self._unknown is None else self._unknown), part

    def _join(self, ids: Sequence[int]) -> str:
        return (" " if self._by_words else "").join(self.pieces[i] for i in ids)


def pieces_of(files: Files, lines: str = LINES, ids: str = IDS) -> list[str]:
    """The pieces of a list in the order of their ids, of which none may be missing."""
    if lines in files:
        names, file = vocabulary_files.listed(files, lines), lines
    else:
        names, file = vocabulary_files.id_table(files, ids, whole=True), ids
    if "" in names:
        raise TokenizerError(
            "{file}: the piece with the id {i} is empty; write one piece per line, without empty lines.",
            file=file,
            i=names.index(""),
        )
    words = [name for name in names if name not in SPECIAL and len(name) > 1 and any(map(str.isspace, name))]
    if words:
        raise TokenizerError(
            "{file}: the piece {piece} contains a space, but a model with a list of pieces splits text at spaces; "
            "give a tokenizer.json instead.",
            file=file,
            piece=shown(words[0]),
        )
    return names


def by_words(pieces: Sequence[str]) -> bool:
    """Whether a list is one of words: not all of its pieces are single characters, special ones aside."""
    return any(len(piece) > 1 for piece in pieces if piece not in SPECIAL)
