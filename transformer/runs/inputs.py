"""Inputs of a run as ids: the source that a request reads, and a reference to be scored.

A source is normalised, tokenised and checked. What a decoder is given to read with a reference depends on the model:

    encoder-decoder    the reference, then the end piece
    decoder-only       the reference as the continuation of the source; without one, the source's own pieces

The pieces that a model's config forces at the beginning of every output come before the reference and are not judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from transformer.errors import QueryError, shown
from transformer.i18n import say, say_n
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.distribution import Rules
from transformer.runs.interventions import Intervention, fitted
from transformer.runs.query import Query, Runnable, check_reference
from transformer.text.tokenizer import RawIds, normalise, notes_on

MAX_LISTED = 80  # characters of unknown pieces that a note repeats
JOINER = "\u200d"  # holds the parts of an emoji together


@dataclass(frozen=True)
class Source:
    """A query's source as the encoder will read it, or in a decoder-only model the decoder."""

    text: str  # after the checkpoint's normalisation
    ids: tuple[int, ...]  # special pieces included
    pieces: tuple[str, ...]  # special pieces included
    notes: tuple[str, ...]  # what a reader should know of it
    prompt_ids: tuple[int, ...]  # what the decoder reads before it writes: its start piece, or the source
    prompt_pieces: tuple[str, ...]  # what the decoder reads before it writes: its start piece, or the source
    forced: tuple[int, ...]  # what the output begins with: what the query forces, then what the model does
    room: int  # most pieces that can be written; the last one is not read, so it takes no place
    # Pieces that a change insists on, by their places in the output, from 0.
    insisted: Mapping[int, int] = field(default_factory=dict)


def rules_for(config: ModelConfig, query: Query, source: Source) -> Rules:
    """The rules of the output of a query whose source was read."""
    return Rules(config, len(source.prompt_ids), min(query.max_new, source.room), source.insisted)


def no_piece(found: str) -> QueryError:
    """The error for text that a vocabulary has no piece for."""
    return QueryError(
        "The vocabulary has no token for {found}, and no unknown token to use instead. Leave this text out.",
        found=shown(found),
    )


def read_source(checkpoint: Runnable, query: Query) -> Source:
    """Turn a query's source into ids, and check what depends on the checkpoint; errors as those of `run`."""
    config, tokenizer = checkpoint.config, checkpoint.src_tokenizer
    if query.checkpoint != checkpoint.content_hash:
        raise QueryError(
            "this query is for checkpoint {asked_hash}, not for {model} ({own_hash}).",
            asked_hash=query.checkpoint[:12],
            model=checkpoint.name,
            own_hash=checkpoint.content_hash[:12],
        )
    text = normalise(query.source, config.normalisation)
    encoding = tokenizer.encode(text)
    if encoding.unread and not isinstance(tokenizer, RawIds):
        raise no_piece(encoding.unread[0])
    if encoding.unread:
        raise QueryError(
            "This model has no tokenizer, so it reads only ids from 0 to {last:,}, not {found}. Type numbers, for "
            "example 12 7 5.",
            last=tokenizer.size - 1,
            found=shown(encoding.unread[0]),
        )
    if not encoding.ids:
        if text.strip():
            raise QueryError("The source contains nothing that the model can read. Type a sentence.")
        raise QueryError("The source is empty. Type a sentence.")
    begin, end = config.source_start, config.source_end
    own = begin + encoding.ids + end
    pieces = (*map(tokenizer.piece, begin), *encoding.pieces, *map(tokenizer.piece, end))
    ids = _edited(query.interventions, own, config)
    pieces = pieces if ids == own else tuple(map(tokenizer.piece, ids))
    if len(ids) > config.max_len:
        raise QueryError(
            "The source has {n} token; {model} reads at most {most}. Shorten it.",
            "The source has {n} tokens; {model} reads at most {most}. Shorten it.",
            len(ids),
            model=checkpoint.name,
            most=config.max_len,
        )
    unknown = [piece for piece, i in zip(encoding.pieces, encoding.ids, strict=True) if i == config.unk_id]
    notes = notes_on(query.source, config.normalisation) + tokenizer.notes + _unknown_note(unknown)
    prompt_ids, prompt_pieces = _prompt(checkpoint, ids, pieces)
    room = room_of(config, len(prompt_ids))
    _check_forced(checkpoint, query, room=room)
    most = min(query.max_new, room)
    only = {step: i for one in query.interventions for step, i in one.insisted(query.forced, most).items()}
    forced = query.forced + config.forced_ids[len(query.forced) :]
    forced = tuple(only.get(place, i) for place, i in enumerate(forced[: max(room, 0)]))
    return Source(text, ids, pieces, notes, prompt_ids, prompt_pieces, forced, room, only)


def _edited(interventions: Sequence[Intervention], ids: tuple[int, ...], config: ModelConfig) -> tuple[int, ...]:
    """What interventions make of the ids that would be read."""
    changes = list(fitted(interventions, config))
    for intervention, seen in changes:
        ids = intervention.edited(ids, seen)
    for intervention, seen in changes:
        intervention.fits(ids, seen)
    return ids


def room_of(config: ModelConfig, n_prompt: int) -> int:
    """Most pieces that can be written after a prompt: a prompt beyond the config's own limit has room for one."""
    if not anatomy(config).writes:
        return 0
    limits = [config.max_len - n_prompt + 1]
    limits += [] if config.max_length is None else [max(config.max_length - n_prompt, 1)]
    limits += [] if config.max_new is None else [config.max_new]
    return min(limits)


def _prompt(
    checkpoint: Runnable, ids: tuple[int, ...], pieces: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    parts, start = anatomy(checkpoint.config), checkpoint.config.decoder_start_id
    if not parts.writes:
        return (), ()
    return ((start,), (checkpoint.tgt_tokenizer.piece(start),)) if parts.reads else (ids, pieces)


def _unknown_note(unknown: Sequence[str]) -> tuple[str, ...]:
    """What is said of pieces that the model has never seen."""
    if not unknown:
        return ()
    listed = " ".join(_visible(piece) for piece in dict.fromkeys(unknown))
    if len(listed) <= MAX_LISTED:
        note = say(
            "This model has never seen: {pieces}. It reads the unknown token instead, so it cannot know what this "
            "part of the text says.",
            pieces=listed,
        )
    else:
        note = say(
            "This model has never seen {n} of these tokens. It reads the unknown token instead, so it cannot know what "
            "this part of the text says.",
            n=len(unknown),
        )
    return (note,)


def _visible(piece: str) -> str:
    """A piece as a note shows it: a character that cannot be seen, or that turns the text around, by its number."""
    return "".join(c if c.isprintable() or c == JOINER else f"U+{ord(c):04X}" for c in piece)


def _check_forced(checkpoint: Runnable, query: Query, *, room: int) -> None:
    config = checkpoint.config
    if query.forced and not room:
        raise QueryError(
            "tokens are forced, but {model} is an encoder-only model and generates no output.", model=checkpoint.name
        )
    for place, i in enumerate(query.forced):
        if i >= config.tgt_vocab_size:
            raise QueryError(
                "forced token id {i} is outside the vocabulary; ids go from 0 to {last}.",
                i=i,
                last=config.tgt_vocab_size - 1,
            )
        if i in config.never_written:
            raise QueryError(
                "forced token id {i} is never written: it is padding, or this model's config bans it; choose another.",
                i=i,
            )
        if i in config.end_ids and place < len(query.forced) - 1:
            raise QueryError("a forced token comes after the end mark; make the end mark the last forced token.")
    if len(query.forced) > room:
        raise QueryError(
            "{n} token is forced, but {model} can write at most {most}.",
            "{n} tokens are forced, but {model} can write at most {most}.",
            len(query.forced),
            model=checkpoint.name,
            most=room,
        )


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
            "The reference has {n:,} token, but {model} has room for only {most:,} after the preceding text. "
            "Shorten the reference.",
            "The reference has {n:,} tokens, but {model} has room for only {most:,} after the preceding text. "
            "Shorten the reference.",
            len(ids),
            model=checkpoint.name,
            most=max(most, 0),
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
