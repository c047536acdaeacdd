"""Run queries on a checkpoint: decode, then read the whole output once more with a recording tap.

Shapes: B queries, S source tokens, T target tokens, V target vocabulary.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.tap import Recorder, tap_of
from transformer.model.transformer import Transformer
from transformer.runs.beam import Hypothesis, beam_search
from transformer.runs.decoding import Prefix, collect, greedy, sample
from transformer.runs.query import Beam, Decoding, Query, Sampling
from transformer.runs.trace import Ranked, StopReason, Trace
from transformer.text.normalise import normalise, notes_on
from transformer.text.tokenizer import SPACE_MARK, Tokenizer

MAX_LISTED = 80  # characters of unknown pieces that a note repeats
JOINER = "\u200d"  # holds the parts of an emoji together


class Runnable(Protocol):
    """What a run needs of a checkpoint; `transformer.Checkpoint` is one."""

    @property
    def name(self) -> str:
        """Its name, for messages."""

    @property
    def content_hash(self) -> str:
        """What queries name it by."""

    @property
    def config(self) -> ModelConfig:
        """The features of the model."""

    @property
    def model(self) -> Transformer:
        """The model, in evaluation mode."""

    @property
    def src_tokenizer(self) -> Tokenizer:
        """Of the source."""

    @property
    def tgt_tokenizer(self) -> Tokenizer:
        """Of the target."""


@dataclass(frozen=True)
class _Source:
    """A query's source as the encoder will read it."""

    text: str
    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Output:
    """What decoding gave for one query."""

    ids: tuple[int, ...]
    hypotheses: tuple[Hypothesis, ...] = ()


def run(checkpoint: Runnable, query: Query) -> Trace:
    """Run one query.

    Args:
        checkpoint: What to run it on; many threads may share it.
        query: What to do.

    Returns:
        The trace; equal queries on equal checkpoints give equal traces.

    Raises:
        QueryError: The query does not fit the checkpoint: it is for another one, its source is empty or too long, a
            forced id is out of range, or beam search found fewer results than the one asked for.
    """
    return run_batch(checkpoint, [query])[0]


@torch.inference_mode()
def run_batch(checkpoint: Runnable, queries: Sequence[Query], *, maps: bool = True) -> tuple[Trace, ...]:
    """Run several queries as one batch, the shorter sources and outputs padded.

    Args:
        checkpoint: What to run them on.
        queries: What to do.
        maps: Keep attention weights. Without, the traces' maps are empty, [layer, head, 0, 0]: at 512 pieces they
            are nearly all of a trace's memory.

    Returns:
        One trace a query, in order. Their maps and masks have the padded shape.

    Raises:
        QueryError: As `run`; or there is no query.
    """
    if not queries:
        raise QueryError("a batch needs at least one query.")
    started = time.monotonic()
    sources = [_read_source(checkpoint, query) for query in queries]
    pad_id = checkpoint.config.pad_id
    src_ids = _padded([source.ids for source in sources], pad_id)  # [B, S]
    recorder = Recorder(("*.0.*_attn.mask", "logits", *["*_attn.weights"] * maps))
    model, tap = checkpoint.model, tap_of(recorder)
    memory = model.encode(src_ids, tap=tap)
    outputs = _decode(checkpoint, queries, src_ids, memory)
    start = (checkpoint.config.decoder_start_id,)
    read_ids = _padded([start + output.ids[:-1] for output in outputs], pad_id)  # [B, T]
    model.project(model.decode(read_ids, memory, model.source_mask(src_ids), tap=tap), tap=tap)
    seconds = time.monotonic() - started
    record = _Record(checkpoint, src_ids, read_ids, recorder.values, seconds)
    return tuple(
        record.trace(row, query, source, output)
        for row, (query, source, output) in enumerate(zip(queries, sources, outputs, strict=True))
    )


def _read_source(checkpoint: Runnable, query: Query) -> _Source:
    config, tokenizer = checkpoint.config, checkpoint.src_tokenizer
    if query.checkpoint != checkpoint.content_hash:
        raise QueryError(
            f"this query is for checkpoint {query.checkpoint[:12]}, not for {checkpoint.name} "
            f"({checkpoint.content_hash[:12]})."
        )
    _check_forced(checkpoint, query)
    text = normalise(query.source, config.normalisation)
    encoding = tokenizer.encode(text)
    if not encoding.ids:
        empty = "holds nothing that can be read" if text.strip() else "is empty"
        raise QueryError(f"The source {empty}. Type a sentence.")
    end = (config.eos_id,) if config.append_source_eos else ()
    ids = encoding.ids + end
    if len(ids) > config.max_len:
        raise QueryError(
            f"The source has {len(ids)} pieces; {checkpoint.name} reads at most {config.max_len}. Shorten it."
        )
    named = list(zip(encoding.pieces, encoding.ids, strict=True))
    unknown = [piece for piece, i in named if i == config.unk_id]
    known = [piece for piece, i in named if i != config.unk_id and piece != SPACE_MARK]
    notes = notes_on(query.source, config.normalisation) + _unknown_note(unknown, whole=not known)
    return _Source(text, ids, encoding.pieces + tuple(tokenizer.piece(i) for i in end), notes)


def _unknown_note(unknown: Sequence[str], *, whole: bool) -> tuple[str, ...]:
    if not unknown:
        return ()
    listed = " ".join(_visible(piece) for piece in dict.fromkeys(unknown))
    found = f": {listed}" if len(listed) <= MAX_LISTED else f" {len(unknown)} of these pieces"
    return (
        f"This model has never seen{found}. It reads an unknown piece there"
        + (", and so knows nothing of this sentence." if whole else ", and cannot tell what it says."),
    )


def _visible(piece: str) -> str:
    """A piece as a note shows it: a character that cannot be seen, or that turns the text around, by its number."""
    return "".join(c if c.isprintable() or c == JOINER else f"U+{ord(c):04X}" for c in piece)


def _check_forced(checkpoint: Runnable, query: Query) -> None:
    config = checkpoint.config
    for place, i in enumerate(query.forced):
        if i >= config.tgt_vocab_size:
            raise QueryError(
                f"forced piece id {i} is outside the vocabulary; ids go from 0 to {config.tgt_vocab_size - 1}."
            )
        if i == config.pad_id:
            raise QueryError(f"forced piece id {i} is padding, which is never written; choose another piece.")
        if i == config.eos_id and place < len(query.forced) - 1:
            raise QueryError("a piece is forced after the end of the sentence; end the forced pieces there.")
    if len(query.forced) > config.max_len:
        raise QueryError(f"{len(query.forced)} pieces are forced; {checkpoint.name} writes at most {config.max_len}.")


def _decode(checkpoint: Runnable, queries: Sequence[Query], src_ids: Tensor, memory: Tensor) -> list[_Output]:
    """Decode the rows that are decoded alike together."""
    groups: dict[tuple[Decoding, int], list[int]] = defaultdict(list)
    for row, query in enumerate(queries):
        decoding = query.decoding
        alike = replace(decoding, seed=0) if isinstance(decoding, Sampling) else decoding
        groups[alike, min(query.max_new, checkpoint.config.max_len)].append(row)
    outputs: dict[int, _Output] = {}
    for (decoding, max_new), rows in groups.items():
        cache = KVCache(checkpoint.config.n_decoder_layers)
        prefix = Prefix(checkpoint.model, src_ids[rows], cache=cache, memory=memory[rows])
        found = _decode_alike(prefix, decoding, max_new, [queries[row] for row in rows])
        outputs |= dict(zip(rows, found, strict=True))
    return [outputs[row] for row in range(len(queries))]


def _decode_alike(prefix: Prefix, decoding: Decoding, max_new: int, queries: Sequence[Query]) -> Iterator[_Output]:
    forced = [query.forced for query in queries]
    if isinstance(decoding, Beam):
        rounds = beam_search(
            prefix, size=decoding.size, alpha=decoding.length_penalty, max_new=max_new, forced=forced
        )
        last = deque(rounds, maxlen=1).pop()
        for query, hypotheses in zip(queries, last.best, strict=True):
            yield _chosen(query, hypotheses)
        return
    if isinstance(decoding, Sampling):
        steps = sample(
            prefix,
            max_new=max_new,
            temperature=decoding.temperature,
            top_k=decoding.top_k,
            top_p=decoding.top_p,
            seeds=[query.decoding.seed for query in queries if isinstance(query.decoding, Sampling)],
            forced=forced,
        )
    else:
        steps = greedy(prefix, max_new=max_new, forced=forced)
    yield from (_Output(tuple(ids)) for ids in collect(steps))


def _chosen(query: Query, hypotheses: tuple[Hypothesis, ...]) -> _Output:
    if query.hypothesis >= len(hypotheses):
        raise QueryError(
            f"result {query.hypothesis + 1} was asked for; beam search found {len(hypotheses)}. Choose another."
        )
    return _Output(hypotheses[query.hypothesis].ids, hypotheses)


@dataclass(frozen=True)
class _Record:
    """What the recording pass saw of a whole batch."""

    checkpoint: Runnable
    src_ids: Tensor
    read_ids: Tensor
    values: dict[str, Tensor]
    seconds: float

    def trace(self, row: int, query: Query, source: _Source, output: _Output) -> Trace:
        """The trace of one row."""
        config, tokenizer = self.checkpoint.config, self.checkpoint.tgt_tokenizer
        vocabulary = tokenizer.pieces
        src_ids, read_ids = tuple(self.src_ids[row].tolist()), tuple(self.read_ids[row].tolist())
        padding = (self.checkpoint.src_tokenizer.piece(config.pad_id),) * (len(src_ids) - len(source.ids))
        log_probs = self.values["logits"][row, : len(output.ids)].log_softmax(dim=-1)  # [T, V]
        log_prob = float(log_probs.gather(1, torch.tensor(output.ids)[:, None]).sum())
        stop_reason = _stop_reason(output.ids, config.eos_id)
        pieces = f"{len(output.ids)} piece" + "s" * (len(output.ids) > 1)
        cut = () if stop_reason == "end of sentence" else (f"The output was cut after {pieces}.",)
        return Trace(
            query=query,
            checkpoint=self.checkpoint.name,
            notes=source.notes + cut,
            source_text=source.text,
            src_ids=src_ids,
            src_pieces=source.pieces + padding,
            tgt_ids=output.ids,
            tgt_pieces=tuple(vocabulary[i] for i in output.ids),
            read_ids=read_ids,
            read_pieces=tuple(vocabulary[i] for i in read_ids),
            texts=tuple(tokenizer.decode(output.ids[: t + 1]) for t in range(len(output.ids))),
            stop_reason=stop_reason,
            log_prob=log_prob,
            log_probs=log_probs.numpy(),
            encoder_self=self._maps("encoder", "self_attn", row),
            decoder_self=self._maps("decoder", "self_attn", row),
            cross=self._maps("decoder", "cross_attn", row),
            encoder_mask=self._mask("encoder.0.self_attn.mask", row, len(src_ids), len(src_ids)),
            decoder_mask=self._mask("decoder.0.self_attn.mask", row, len(read_ids), len(read_ids)),
            cross_mask=self._mask("decoder.0.cross_attn.mask", row, len(read_ids), len(src_ids)),
            hypotheses=tuple(self._ranked(h) for h in output.hypotheses),
            vocabulary=vocabulary,
            pad_id=config.pad_id,
            seconds=self.seconds,
        )

    def _maps(self, stack: str, attention: str, row: int) -> np.ndarray:
        config = self.checkpoint.config
        n_layers = config.n_encoder_layers if stack == "encoder" else config.n_decoder_layers
        sites = [f"{stack}.{i}.{attention}.weights" for i in range(n_layers)]
        if sites[0] not in self.values:
            return np.zeros((n_layers, config.n_heads, 0, 0), dtype=np.float32)
        return torch.stack([self.values[site][row] for site in sites]).numpy()  # [layer, head, query, key]

    def _mask(self, site: str, row: int, n_queries: int, n_keys: int) -> np.ndarray:
        mask = self.values[site]
        return mask[min(row, mask.size(0) - 1), 0].expand(n_queries, n_keys).clone().numpy()

    def _ranked(self, hypothesis: Hypothesis) -> Ranked:
        return Ranked(
            text=self.checkpoint.tgt_tokenizer.decode(hypothesis.ids),
            ids=hypothesis.ids,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            stop_reason="end of sentence" if hypothesis.ended else "length limit",
        )


def _stop_reason(ids: Sequence[int], eos_id: int) -> StopReason:
    return "end of sentence" if ids[-1] == eos_id else "length limit"


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([(*row, *([pad_id] * (width - len(row)))) for row in rows])
