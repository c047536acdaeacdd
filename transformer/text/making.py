"""What several families of tokenizers are made with: their rows, their SentencePiece model, the ids of their pieces.

Which family needs what is said in `transformer.text.family_tokenizers`.
"""

from collections.abc import Iterable, Mapping, Sequence

from transformer.errors import TokenizerError, shown
from transformer.text import sentencepiece_check, vocabulary_files
from transformer.text.options import Options
from transformer.text.piece_rows import Table, Way, padded, unused
from transformer.text.tokenizer import NO_WRAPPING, Tokenizer, Wrapping
from transformer.text.vocabulary_files import Files


def table_of(
    names: Sequence[str],
    options: Options,
    *,
    special: Iterable[int],
    typed: Mapping[str, int],
    mask: str = "",
    wrapping: Wrapping = NO_WRAPPING,
    size: int | None = None,
) -> Table:
    """The rows: the pieces of the files, those that were added, and names for the rows that have none.

    `special` are the rows without a text of their own, `typed` the pieces that are found where somebody types them,
    of which `mask` swallows the spaces before it; `size` is the model's rows, if not as the options say. Refuses an
    added piece where the files have another, and too few rows.
    """
    pieces = list(names)
    own, typed, ways = {*special}, dict(typed), {mask: Way(eats_before=True)} if mask else {}
    for one in options.added:
        pieces += (unused(i) for i in range(len(pieces), one.id + 1))
        if one.id >= len(names):
            pieces[one.id] = one.content
        elif names[one.id] != one.content:
            raise TokenizerError(
                "the added piece {piece} has the id {i}, which is {other} in the vocabulary; one of the two files is "
                "another model's.",
                piece=shown(one.content),
                i=one.id,
                other=shown(names[one.id]),
            )
        typed[one.content], ways[one.content] = one.id, one.way
        own |= {one.id} if one.special else set()
    added = {one.id for one in options.added}
    every = padded(pieces, size or options.size)
    own |= {i for i in range(len(names), len(every)) if i not in added}
    own |= {i for i, name in enumerate(names) if name == unused(i)}
    return Table(every, own, typed, ways, wrapping)


def sentencepiece(files: Files, name: str) -> Tokenizer:
    """A SentencePiece model among the files, tried out first; TokenizerError if it is missing or cannot be used."""
    model = vocabulary_files.file(files, name)
    try:
        sentencepiece_check.check(model)
        return Tokenizer(model)
    except TokenizerError as error:
        raise TokenizerError("{file}: {problem}", file=name, problem=error.sentence) from None


def special_of(model: Tokenizer) -> set[int]:
    """The ids of pieces without a text of their own."""
    return {i for i in range(model.size) if model.is_special(i)}


def id_of(ids: Mapping[str, int], name: str, file: str) -> int:
    """The row of a piece that a family cannot do without; TokenizerError if there is none."""
    if name not in ids:
        raise TokenizerError("{file}: has no piece {name}, which this family needs.", file=file, name=shown(name))
    return ids[name]


def id_in(model: Tokenizer, name: str) -> int:
    """The same of a SentencePiece model."""
    return id_of({piece: i for i, piece in enumerate(model.pieces)}, name, "spiece.model")
