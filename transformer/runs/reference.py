"""Prepared reference: a text to be scored, as ids.

    encoder-decoder    the reference, then the end piece
    decoder-only       the reference as the continuation of the source; without one, the source's own pieces

The pieces that a model's config forces at the beginning of every output come before the reference and are not judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformer.errors import QueryError, shown
from transformer.i18n import say_n
from transformer.model.anatomy import anatomy
from transformer.runs.model_protocols import Runnable
from transformer.runs.query import Query, check_reference
from transformer.runs.source import Source, no_piece, read_source
from transformer.text.normalise import normalise
from transformer.text.tokenizer import RawIds

Reference = str | Sequence[int] | None
"""What should come out, as text or as ids; None for a decoder-only model that judges the source itself."""


@dataclass(frozen=True)
class PreparedReference:
    """What a decoder is given to read, and which part of it is judged."""

    source: Source  # what the encoder reads, or a decoder-only model before the reference
    before: tuple[int, ...]  # what the decoder reads before the first piece that is judged
    ids: tuple[int, ...]  # the pieces that are judged, the end piece included if it counts
    n_prompt: int  # how many of `before` no output could hold: the start piece or the prompt
    notes: tuple[str, ...]  # what a reader should know of the source and of the reference


def read_given(
    checkpoint: Runnable, query: Query, reference: Reference, *, with_end: bool | None = None
) -> PreparedReference:
    """Turn a query's source and a reference into ids; the query's way of decoding does not matter.

    `with_end` says whether the end piece after the reference is judged, too; None: only in a model with an encoder,
    whose outputs end. A QueryError says that the model writes nothing, that the source is refused as by
    `transformer.runs.running.run`, or that the reference is missing but needed, empty, too long, or contains
    something that is not a piece.
    """
    config, parts = checkpoint.config, anatomy(checkpoint.config)
    if not parts.writes:
        raise QueryError(
            "{model} is an encoder-only model: it generates no output that could be compared with a reference. "
            "Hide tokens of the text instead, or choose another checkpoint.",
            model=checkpoint.name,
        )
    source = read_source(checkpoint, replace(query, forced=(), hypothesis=0))
    end = (config.eos_id,) if (parts.reads if with_end is None else with_end) else ()
    if reference is None:
        return _own_text(checkpoint, source, end)
    ids, notes = _ids_of(checkpoint, reference)
    before = source.prompt_ids + config.forced_ids
    most = config.max_len - len(before) - len(end) + 1
    if len(ids) > most:
        raise QueryError(
            say_n(
                "The reference has {n:,} token, but {model} has room for only {most:,} after the preceding text. "
                "Shorten the reference.",
                "The reference has {n:,} tokens, but {model} has room for only {most:,} after the preceding text. "
                "Shorten the reference.",
                len(ids),
                model=checkpoint.name,
                most=max(most, 0),
            )
        )
    return PreparedReference(source, before, (*ids, *end), len(source.prompt_ids), (*source.notes, *notes))


def _own_text(checkpoint: Runnable, source: Source, end: tuple[int, ...]) -> PreparedReference:
    """The source's own pieces; the first has nothing before it but a start piece, if any."""
    config = checkpoint.config
    if anatomy(config).reads:
        raise QueryError("There is no reference. Give the correct output for {model}.", model=checkpoint.name)
    n_before = max(len(config.source_start), 1)
    ids = (*source.ids[n_before:], *end)
    if not ids:
        raise QueryError(
            "This text is a single token, and nothing comes before it to predict it from. Type more, or give a "
            "reference."
        )
    if len(source.ids) + len(end) - 1 > config.max_len:
        raise QueryError("This text leaves no room for its end mark; shorten it.")
    # Insisted pieces have places in an output; these pieces are not an output.
    return PreparedReference(replace(source, insisted={}), source.ids[:n_before], ids, n_before, source.notes)


def _ids_of(checkpoint: Runnable, reference: str | Sequence[int]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The ids of a reference, without an end piece, and what is to be said of them."""
    config, tokenizer = checkpoint.config, checkpoint.tgt_tokenizer
    notes: tuple[str, ...] = ()
    if isinstance(reference, str):
        steps = () if anatomy(config).reads else config.normalisation  # a continuation is of the source's language
        encoding = tokenizer.encode(normalise(check_reference(reference), steps))
        if encoding.unread and not isinstance(tokenizer, RawIds):
            raise no_piece(encoding.unread[0])
        if encoding.unread:
            raise QueryError(
                "This model has no tokenizer, so it writes only ids from 0 to {last:,}, but the reference contains "
                "{found}. Type numbers, for example 12 7 5.",
                last=tokenizer.size - 1,
                found=shown(encoding.unread[0]),
            )
        ids = encoding.ids
        notes = _unknown([piece for piece, i in zip(encoding.pieces, ids, strict=True) if i == config.unk_id], len(ids))
    else:
        ids = _checked(reference, config.tgt_vocab_size)
    ids = ids[: len(ids) - (ids[-1:] == (config.eos_id,))]  # it is added again where it counts
    if not ids:
        raise QueryError("The reference is empty. Type the correct output.")
    if config.pad_id in ids and config.pad_id not in config.end_ids:
        raise QueryError("The reference contains padding, which is never read. Remove the padding.")
    return ids, notes


def _checked(ids: Sequence[int], size: int) -> tuple[int, ...]:
    for i in ids:
        if not isinstance(i, int) or isinstance(i, bool) or not 0 <= i < size:
            raise QueryError(
                "The reference contains the id {found}; ids go from 0 to {last:,}.", found=shown(i), last=size - 1
            )
    return tuple(ids)


def _unknown(pieces: Sequence[str], count: int) -> tuple[str, ...]:
    if not pieces:
        return ()
    return (
        say_n(
            "The model can write {n} of the reference's {all} tokens only as the unknown token. The numbers for "
            "this token say nothing about what you typed.",
            "The model can write {n} of the reference's {all} tokens only as the unknown token. The numbers for "
            "these tokens say nothing about what you typed.",
            len(pieces),
            all=count,
        ),
    )
