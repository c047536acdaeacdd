"""Prepared source: normalised, tokenised and checked input of a request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from transformer.errors import QueryError, shown
from transformer.i18n import say, say_n
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention, fitted
from transformer.runs.model_protocols import Runnable
from transformer.runs.query import Query
from transformer.runs.rules import Rules
from transformer.text.normalise import normalise, notes_on
from transformer.text.tokenizer import SPACE_MARK, RawIds

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
            say_n(
                "The source has {n} token; {model} reads at most {most}. Shorten it.",
                "The source has {n} tokens; {model} reads at most {most}. Shorten it.",
                len(ids),
                model=checkpoint.name,
                most=config.max_len,
            )
        )
    named = list(zip(encoding.pieces, encoding.ids, strict=True))
    unknown = [piece for piece, i in named if i == config.unk_id]
    known = [piece for piece, i in named if i != config.unk_id and piece != SPACE_MARK]
    notes = notes_on(query.source, config.normalisation) + tokenizer.notes + _unknown_note(unknown, whole=not known)
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


def _unknown_note(unknown: Sequence[str], *, whole: bool) -> tuple[str, ...]:
    """What is said of pieces that the model has never seen: all of the sentence's, or some."""
    if not unknown:
        return ()
    listed = " ".join(_visible(piece) for piece in dict.fromkeys(unknown))
    if len(listed) <= MAX_LISTED and whole:
        note = say(
            "This model has never seen: {pieces}. It reads the unknown token instead, so it knows nothing about "
            "this sentence.",
            pieces=listed,
        )
    elif len(listed) <= MAX_LISTED:
        note = say(
            "This model has never seen: {pieces}. It reads the unknown token instead, so it cannot know what this "
            "part of the text says.",
            pieces=listed,
        )
    elif whole:
        note = say_n(
            "This model knows none of this sentence's {n} tokens. It reads the unknown token in place of each, so "
            "it knows nothing about the sentence.",
            "This model knows none of this sentence's {n} tokens. It reads the unknown token in place of "
            "each, so it knows nothing about the sentence.",
            len(unknown),
        )
    else:
        note = say_n("This model has never seen {n} of these tokens. It reads the unknown token instead, so it "
                     "cannot know what this part of the text says.",
                     "This model has never seen {n} of these tokens. It reads the unknown token instead, so it "
                     "cannot know what this part of the text says.", len(unknown))  # fmt: skip
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
        if i == config.pad_id:
            raise QueryError("forced token id {i} is padding, which is never written; choose another token.", i=i)
        if i in config.banned_ids:
            raise QueryError("forced token id {i} is banned by this model's config; choose another token.", i=i)
        if i in config.end_ids and place < len(query.forced) - 1:
            raise QueryError("a forced token comes after the end mark; make the end mark the last forced token.")
    if len(query.forced) > room:
        raise QueryError(
            say_n(
                "{n} token is forced, but {model} can write at most {most}.",
                "{n} tokens are forced, but {model} can write at most {most}.",
                len(query.forced),
                model=checkpoint.name,
                most=room,
            )
        )
