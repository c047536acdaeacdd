"""Read the sources of queries, decode them step by step, and record what they wrote: the parts of a run.

Decoding step by step says what a run writes. `transformer.runs.drafting.checking` finds the same sooner.

Shapes: B queries, S source tokens, D d_model.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.model.cache import KVCache
from transformer.model.taps import NO_TAP, Tap, both
from transformer.runs import recording
from transformer.runs.beam import Hypothesis, Watch, beam_search
from transformer.runs.changing import tap_for
from transformer.runs.decoding import Prefix, collect, greedy, sample
from transformer.runs.query import Beam, Decoding, Query, Sampling
from transformer.runs.record import Keeping, Output, Record
from transformer.runs.runnable import Runnable
from transformer.runs.source import Source, read_source
from transformer.runs.trace import Trace

Pause = Callable[[], None]
_Round = TypeVar("_Round")


def go_on() -> None:
    """Go on at once."""


@dataclass(frozen=True)
class Reading:
    """Queries whose sources have been read: the state between the encoder and decoding."""

    checkpoint: Runnable  # what was asked for
    queries: Sequence[Query]  # what was asked for
    sources: Sequence[Source]  # what the model read for each
    src_ids: Tensor  # the same as one batch [B, S]
    memory: Tensor | None  # what the encoder made of it [B, S, D]; None for a decoder alone
    seen: dict[str, Tensor]  # what the recorder saw of the encoder
    keeping: Keeping  # what is recorded, and how much of the maps is kept
    tap: Tap  # sees and changes values in every call of the model
    started: float  # when reading began

    def decode(self, pause: Pause = go_on, *, watch: Watch | None = None) -> list[Output]:
        """Decode rows with the same settings together; prompts only with others of their length."""
        config = self.checkpoint.config
        if not anatomy(config).writes:
            return [Output(()) for _ in self.queries]
        groups: dict[tuple[Decoding, int, int], list[int]] = defaultdict(list)
        for row, (query, source) in enumerate(zip(self.queries, self.sources, strict=True)):
            decoding = query.decoding
            alike = replace(decoding, seed=0) if isinstance(decoding, Sampling) else decoding
            groups[alike, min(query.max_new, source.room), len(source.prompt_ids)].append(row)
        outputs: dict[int, Output] = {}
        for (decoding, max_new, n_prompt), rows in groups.items():
            prefix = Prefix(
                self.checkpoint.model,
                self.src_ids[rows] if self.memory is not None else self.src_ids[rows, :n_prompt],
                cache=KVCache(config.n_decoder_layers),
                memory=None if self.memory is None else self.memory[rows],
                tap=self.tap,
                insisted=self.sources[rows[0]].insisted,
            )
            here, forced = [self.queries[row] for row in rows], [self.sources[row].forced for row in rows]
            found = _decode_alike(prefix, decoding, max_new, here, forced, pause, watch=watch)
            outputs |= dict(zip(rows, found, strict=True))
        return [outputs[row] for row in range(len(self.queries))]

    def finish(self, outputs: Sequence[Output], *, cut: bool = False) -> tuple[Trace, ...]:
        """Read the whole outputs once more, record, and return the traces; without the batch's padding if `cut`."""
        model, rows = self.checkpoint.model, tuple(zip(self.queries, self.sources, outputs, strict=True))
        read_ids = padded(
            [source.prompt_ids + output.ids[:-1] for _, source, output in rows], self.checkpoint.config.fill_id
        )
        mask, sites = model.source_mask(self.src_ids), self.keeping.sites(self.src_ids.size(1), read_ids.size(1))
        seen = sites.kept(self.seen) | recording.read_target(
            model, read_ids, self.memory, mask, sites.recorded, passed=sites.passed, tap=self.tap
        )
        record = Record(
            self.checkpoint, self.src_ids, read_ids, seen, time.monotonic() - self.started, self.tap.causal, cut
        )
        return tuple(record.trace(row, *parts) for row, parts in enumerate(rows))


def read(
    checkpoint: Runnable,
    queries: Sequence[Query],
    *,
    maps: bool = True,
    most_map_bytes: int | None = None,
    tap: Tap = NO_TAP,
    sources: Sequence[Source] | None = None,
) -> Reading:
    """Read the sources of queries with equal interventions, and record; see `run_batch` and `Keeping`.

    `sources` are what `read_source` makes of the queries, if somebody has asked it already.
    """
    started = time.monotonic()
    tap = both(tap_for(queries[0].interventions, checkpoint), tap)
    sources = sources or [read_source(checkpoint, query) for query in queries]
    if checkpoint.config.pad_id is None and len({len(source.ids) for source in sources}) > 1:
        raise QueryError(
            "{model} has no padding piece, so only sentences of the same length can run as one batch; run them one "
            "at a time.",
            model=checkpoint.name,
        )
    src_ids = padded([source.ids for source in sources], checkpoint.config.fill_id)  # [B, S]
    keeping = Keeping(checkpoint.config, maps=maps, most_bytes=most_map_bytes)
    sites = keeping.sites(src_ids.size(1), 0)
    memory, seen = recording.read_source(checkpoint.model, src_ids, sites.recorded, passed=sites.passed, tap=tap)
    return Reading(checkpoint, queries, sources, src_ids, memory, seen, keeping, tap, started)


def _decode_alike(
    prefix: Prefix,
    decoding: Decoding,
    max_new: int,
    queries: Sequence[Query],
    forced: Sequence[tuple[int, ...]],
    pause: Pause,
    *,
    watch: Watch | None,
) -> Iterator[Output]:
    if isinstance(decoding, Beam):
        size, alpha = decoding.size, decoding.length_penalty
        rounds = beam_search(prefix, size=size, alpha=alpha, max_new=max_new, forced=forced, watch=watch)
        last = deque(_pausing(rounds, pause), maxlen=1).pop()
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
    yield from (Output(tuple(ids)) for ids in collect(_pausing(steps, pause)))


def _pausing(rounds: Iterable[_Round], pause: Pause) -> Iterator[_Round]:
    for one in rounds:
        yield one
        pause()


def _chosen(query: Query, hypotheses: tuple[Hypothesis, ...]) -> Output:
    if query.hypothesis >= len(hypotheses):
        raise QueryError(
            "result {result} was requested, but beam search found only {found}. Choose a lower number.",
            result=query.hypothesis + 1,
            found=len(hypotheses),
        )
    return Output(hypotheses[query.hypothesis].ids, hypotheses)


def read_before(wanted: Tensor, start: int | Tensor) -> Tensor:
    """What a decoder reads to predict a padded batch [B, T]: the start, an id or [B, 1], and all but the last column.

    The one way to make a batch's input, in training and in whatever measures a loss: as in `tgt[:, :-1]`, a row that
    is shorter than the longest keeps its end piece and padding. Only a decoder without a causal mask sees them.
    """
    return torch.cat((torch.zeros_like(wanted[:, :1]) + start, wanted[:, :-1]), dim=1)


def padded(rows: Sequence[Sequence[int]], fill_id: int) -> Tensor:
    """Rows of ids as one batch, with shorter ones filled up."""
    width = max(len(row) for row in rows)
    return torch.tensor([(*row, *([fill_id] * (width - len(row)))) for row in rows])
