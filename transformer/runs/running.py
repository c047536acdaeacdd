"""Run queries on a checkpoint: decode, then read the whole output once more with a recording tap.

Shapes: B queries, S source tokens, T target tokens, V target vocabulary.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import Attention, anatomy
from transformer.model.cache import KVCache
from transformer.model.tap import NO_TAP, Tap, both
from transformer.runs import recording
from transformer.runs.beam import Hypothesis, beam_search
from transformer.runs.decoding import Prefix, collect, greedy, sample
from transformer.runs.interventions import tap_for
from transformer.runs.query import Beam, Decoding, Query, Sampling
from transformer.runs.runnable import Runnable
from transformer.runs.source import Source, read_source
from transformer.runs.step import Ranked, StopReason
from transformer.runs.trace import Trace
from words import say_n


@dataclass(frozen=True)
class _Output:
    """What decoding gave for one query."""

    ids: tuple[int, ...]
    hypotheses: tuple[Hypothesis, ...] = ()


def run(checkpoint: Runnable, query: Query, *, tap: Tap = NO_TAP) -> Trace:
    """Run one query.

    Args:
        checkpoint: What to run it on; many threads may share it.
        query: What to do.
        tap: Sees or changes values in every call of the model, after the query's own interventions. Whoever keeps
            traces by their query leaves it out: the query does not know of it.

    Returns:
        The trace; equal queries on equal checkpoints give equal traces, as long as torch has as many threads: more of
        them sum in another order, and numbers then differ by rounding (about 6e-6). The library takes as many as
        torch has, the app one; `torch.set_num_threads(1)` before the run gives the app's numbers to the last bit.

    Raises:
        QueryError: The query does not fit the checkpoint: it is for another one, its source is empty or too long, a
            forced id is out of range, an intervention names what the model does not have, beam search found fewer
            results than the one asked for, or the model computes what is not finite (the error names the first site).
    """
    return run_batch(checkpoint, [query], tap=tap)[0]


@torch.inference_mode()
def run_batch(
    checkpoint: Runnable, queries: Sequence[Query], *, maps: bool = True, tap: Tap = NO_TAP
) -> tuple[Trace, ...]:
    """Run several queries as one batch, the shorter sources and outputs padded.

    Args:
        checkpoint: What to run them on.
        queries: What to do, all with the same interventions.
        maps: Keep attention weights. Without, the traces' maps are empty, [layer, head, 0, 0]: at 512 pieces they
            are nearly all of a trace's memory.
        tap: As in `run`; one that mixes tokens mixes in a batch's padding too.

    Returns:
        One trace a query, in order. Their maps and masks have the padded shape.

    Raises:
        QueryError: As `run`; or there is no query, or their interventions differ.
    """
    if not queries:
        raise QueryError("a batch needs at least one query.")
    if len({query.interventions for query in queries}) > 1:
        raise QueryError("the queries of a batch must have the same interventions; run the others by themselves.")
    started = time.monotonic()
    model, pad_id = checkpoint.model, checkpoint.config.pad_id
    tap = both(tap_for(queries[0].interventions, checkpoint.config), tap)
    sources = [read_source(checkpoint, query) for query in queries]
    src_ids = _padded([source.ids for source in sources], pad_id)  # [B, S]
    patterns = ("*.0.*_attn.mask", "logits", *["*_attn.weights"] * maps)
    memory, seen = recording.read_source(model, src_ids, patterns, tap=tap)
    outputs = _decode(checkpoint, queries, sources, memory, tap=tap)
    read_ids = _padded([s.prompt_ids + output.ids[:-1] for s, output in zip(sources, outputs, strict=True)], pad_id)
    seen |= recording.read_target(model, read_ids, memory, model.source_mask(src_ids), patterns, tap=tap)
    record = _Record(checkpoint, src_ids, read_ids, seen, time.monotonic() - started)
    return tuple(
        record.trace(row, query, source, output)
        for row, (query, source, output) in enumerate(zip(queries, sources, outputs, strict=True))
    )


def _decode(
    checkpoint: Runnable, queries: Sequence[Query], sources: Sequence[Source], memory: Tensor | None, *, tap: Tap
) -> list[_Output]:
    """Decode the rows that are decoded alike together; prompts only with others of their length."""
    config = checkpoint.config
    if not anatomy(config).writes:
        return [_Output(()) for _ in queries]
    groups: dict[tuple[Decoding, int, int], list[int]] = defaultdict(list)
    for row, (query, source) in enumerate(zip(queries, sources, strict=True)):
        decoding = query.decoding
        alike = replace(decoding, seed=0) if isinstance(decoding, Sampling) else decoding
        groups[alike, min(query.max_new, source.room), len(source.prompt_ids)].append(row)
    src_ids = _padded([source.ids for source in sources], config.pad_id)  # [B, S]
    outputs: dict[int, _Output] = {}
    for (decoding, max_new, n_prompt), rows in groups.items():
        prefix = Prefix(
            checkpoint.model,
            src_ids[rows] if memory is not None else src_ids[rows, :n_prompt],
            cache=KVCache(config.n_decoder_layers),
            memory=None if memory is None else memory[rows],
            tap=tap,
        )
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
            "result {result} was asked for; beam search found {found}. Choose another.",
            result=query.hypothesis + 1,
            found=len(hypotheses),
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

    def trace(self, row: int, query: Query, source: Source, output: _Output) -> Trace:
        """The trace of one row."""
        config, tokenizer = self.checkpoint.config, self.checkpoint.tgt_tokenizer
        vocabulary, first_row = tokenizer.pieces, max(len(source.prompt_ids) - 1, 0)
        src_ids, read_ids = tuple(self.src_ids[row].tolist()), tuple(self.read_ids[row].tolist())
        padding = (self.checkpoint.src_tokenizer.piece(config.pad_id),) * (len(src_ids) - len(source.ids))
        log_probs = self._log_probs(row, first_row, len(output.ids))  # [T, V]
        stop_reason = self._stop_reason(output.ids)
        cut = (_cut_note(len(output.ids)),) if stop_reason == "length limit" else ()
        kinds = anatomy(config).attentions
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
            read_pieces=source.prompt_pieces + tuple(vocabulary[i] for i in read_ids[len(source.prompt_ids) :]),
            first_row=first_row,
            texts=tuple(tokenizer.decode(output.ids[: t + 1]) for t in range(len(output.ids))),
            stop_reason=stop_reason,
            log_prob=float(log_probs.gather(1, torch.tensor(output.ids, dtype=torch.long)[:, None]).sum()),
            log_probs=log_probs.numpy(),
            weights={one.kind: self._maps(one, row) for one in kinds},
            masks={one.kind: self._mask(one, row) for one in kinds},
            hypotheses=tuple(self._ranked(h) for h in output.hypotheses),
            vocabulary=vocabulary,
            pad_id=config.pad_id,
            seconds=self.seconds,
        )

    def _log_probs(self, row: int, first: int, n_steps: int) -> Tensor:
        """Log-probabilities of the steps [T, V]; none without a decoder."""
        if not n_steps:
            return torch.zeros(0, self.checkpoint.config.tgt_vocab_size)
        return self.values["logits"][row, first : first + n_steps].log_softmax(dim=-1)

    def _stop_reason(self, ids: Sequence[int]) -> StopReason:
        if not ids:
            return "no decoder"
        return "end of sentence" if ids[-1] == self.checkpoint.config.eos_id else "length limit"

    def _maps(self, one: Attention, row: int) -> np.ndarray:
        sites = [one.site(layer, "weights") for layer in range(one.n_layers)]
        if sites[0] not in self.values:
            return np.zeros((one.n_layers, self.checkpoint.config.n_heads, 0, 0), dtype=np.float32)
        return torch.stack([self.values[site][row] for site in sites]).numpy()  # [layer, head, query, key]

    def _mask(self, one: Attention, row: int) -> np.ndarray:
        n_tokens = {"encoder": self.src_ids.size(1), "decoder": self.read_ids.size(1)}
        mask = self.values[one.site(0, "mask")]
        shape = n_tokens[one.stack], n_tokens[one.keys_from]
        return mask[min(row, mask.size(0) - 1), 0].expand(shape).clone().numpy()

    def _ranked(self, hypothesis: Hypothesis) -> Ranked:
        return Ranked(
            text=self.checkpoint.tgt_tokenizer.decode(hypothesis.ids),
            ids=hypothesis.ids,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            stop_reason=self._stop_reason(hypothesis.ids),
        )


def _cut_note(n_pieces: int) -> str:
    return say_n("The output was cut after {n} piece.", "The output was cut after {n} pieces.", n_pieces)


def _padded(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    width = max(len(row) for row in rows)
    return torch.tensor([(*row, *([pad_id] * (width - len(row)))) for row in rows])
