"""Encoded batch: requests after the encoder pass, decoded and recorded as traces; padding of batches.

Decoding step by step says what a run writes. `transformer.runs.drafting` finds the same sooner.

Maps of a long text can be too large for a server. A run that drops its maps computes every attention as if it kept
them, so all other numbers are the same to the last bit. `transformer.runs.running.each_layer` computes the maps again,
one layer at a time.

Shapes: B queries, S source tokens, D d_model.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import Attention, StackName, anatomy
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.taps import NO_TAP, Tap, both
from transformer.runs import recording_pass
from transformer.runs.apply_interventions import tap_for
from transformer.runs.beam import Hypothesis, Watch, beam_search
from transformer.runs.decoding import LEAVING, DecodedRow, Prefix, write_rows
from transformer.runs.inputs import Source, read_source, rules_for
from transformer.runs.query import Beam, Query, Runnable
from transformer.runs.trace import BY_STEPS, Ranked, StopReason, Trace

WEIGHTS = "*_attn.weights"
_BYTES = 4  # of a weight, in float32


@dataclass(frozen=True)
class Keeping:
    """What a run records."""

    config: ModelConfig  # of the model
    maps: bool = True  # whether attention weights are computed at all
    # Most memory for the maps of one run, which keeps none if they need more. None: it keeps them all.
    most_bytes: int | None = None

    def sites(self, n_source: int, n_target: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Sites, or patterns, of a pass over this many tokens of the source and the output; 0 where not known yet.

        First those that are kept, then those that are computed as if kept, checked to be finite, and dropped.
        """
        own_masks = ["decoder.*.self_attn.mask"] * bool(self.config.windows)
        logits = ["logits"] * anatomy(self.config).writes
        always = ("*.0.*_attn.mask", *own_masks, *logits)
        if not self.maps:
            return always, ()
        if self.most_bytes is not None and map_bytes(self.config, n_source, n_target) > self.most_bytes:
            return always, (WEIGHTS,)
        return (*always, WEIGHTS), ()


def map_bytes(config: ModelConfig, n_source: int, n_target: int) -> int:
    """Memory of all maps of one run, in bytes."""
    n_tokens = {"encoder": n_source, "decoder": n_target}
    return sum(
        _BYTES * one.n_layers * config.of(one.stack).n_heads * n_tokens[one.stack] * n_tokens[one.keys_from]
        for one in anatomy(config).attentions
    )


@dataclass(frozen=True)
class DecodedOutput:
    """What decoding gave for one query."""

    ids: tuple[int, ...]
    hypotheses: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True)
class RecordedRun:
    """What the recording pass saw of a whole batch."""

    checkpoint: Runnable
    src_ids: Tensor
    read_ids: Tensor
    values: dict[str, Tensor]
    seconds: float
    causal: bool  # whether one pass over an output holds all its steps; see `transformer.runs.recording_pass`
    cut: bool  # whether traces are without the batch's padding

    def trace(self, row: int, query: Query, source: Source, output: DecodedOutput) -> Trace:
        """The trace of one row."""
        config, tokenizer = self.checkpoint.config, self.checkpoint.tgt_tokenizer
        vocabulary, first_row = tokenizer.pieces, max(len(source.prompt_ids) - 1, 0)
        src_ids, read_ids = tuple(self.src_ids[row].tolist()), tuple(self.read_ids[row].tolist())
        if self.cut:
            src_ids = src_ids[: len(source.ids)]
            read_ids = read_ids[: len(source.prompt_ids) + max(len(output.ids) - 1, 0)]
        n_tokens: dict[StackName, int] = {"encoder": len(src_ids), "decoder": len(read_ids)}
        padding = (self.checkpoint.src_tokenizer.piece(config.fill_id),) * (len(src_ids) - len(source.ids))
        log_probs, log_sums = self._log_probs(row, first_row, len(output.ids))  # [T, V] and [T]
        kinds = anatomy(config).attentions
        return Trace(
            query=query,
            checkpoint=self.checkpoint.name,
            notes=source.notes if self.causal or not output.ids else (*source.notes, BY_STEPS),
            source_text=source.text,
            src_ids=src_ids,
            src_tokens=source.pieces + padding,
            tgt_ids=output.ids,
            tgt_tokens=tuple(vocabulary[i] for i in output.ids),
            read_ids=read_ids,
            read_tokens=source.prompt_pieces + tuple(vocabulary[i] for i in read_ids[len(source.prompt_ids) :]),
            first_row=first_row,
            texts=tuple(tokenizer.decode(output.ids[: t + 1]) for t in range(len(output.ids))),
            stop_reason=self._stop_reason(output.ids),
            log_prob=float(log_probs.gather(1, torch.tensor(output.ids, dtype=torch.long)[:, None]).sum()),
            log_probs=log_probs.numpy(),
            log_sums=log_sums.numpy(),
            weights={one.kind: self._maps(one, row, n_tokens) for one in kinds},
            masks={one.kind: self._mask(one, row, n_tokens) for one in kinds},
            hypotheses=tuple(self._ranked(h) for h in output.hypotheses),
            vocabulary=vocabulary,
            pad_id=config.pad_id,
            rules=rules_for(config, query, source),
            seconds=self.seconds,
        )

    def _log_probs(self, row: int, first: int, n_steps: int) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the steps [T, V], and what they lack to the logits [T]; none without a decoder."""
        if not n_steps:
            return torch.zeros(0, self.checkpoint.config.tgt_vocab_size), torch.zeros(0)
        logits = self.values["logits"][row, first : first + n_steps]
        return logits.log_softmax(dim=-1), logits.logsumexp(dim=-1)

    def _stop_reason(self, ids: Sequence[int]) -> StopReason:
        if not ids:
            return "no decoder"
        return "end of sentence" if ids[-1] in self.checkpoint.config.end_ids else "length limit"

    def _maps(self, one: Attention, row: int, n_tokens: Mapping[StackName, int]) -> np.ndarray:
        sites = [one.site(layer, "weights") for layer in range(one.n_layers)]
        if sites[0] not in self.values:
            return np.zeros((one.n_layers, self.checkpoint.config.of(one.stack).n_heads, 0, 0), dtype=np.float32)
        n_queries, n_keys = n_tokens[one.stack], n_tokens[one.keys_from]
        maps = [self.values[site][row, :, :n_queries, :n_keys] for site in sites]
        return torch.stack(maps).numpy()  # [layer, head, query, key]

    def _mask(self, one: Attention, row: int, n_tokens: Mapping[StackName, int]) -> np.ndarray:
        """Of all layers [query, key], or of each [layer, query, key] where they have windows."""
        shape = n_tokens[one.stack], n_tokens[one.keys_from]
        each = one.n_layers if one.causal and self.checkpoint.config.windows else 1
        masks = [self.values[one.site(layer, "mask")] for layer in range(each)]
        found = [mask[min(row, mask.size(0) - 1), 0, : shape[0], : shape[1]].expand(shape) for mask in masks]
        return torch.stack(found).numpy() if len(found) > 1 else found[0].clone().numpy()

    def _ranked(self, hypothesis: Hypothesis) -> Ranked:
        return Ranked(
            text=self.checkpoint.tgt_tokenizer.decode(hypothesis.ids),
            ids=hypothesis.ids,
            log_prob=hypothesis.log_prob,
            score=hypothesis.score,
            stop_reason=self._stop_reason(hypothesis.ids),
        )


Pause = Callable[[], None]


def go_on() -> None:
    """Go on at once."""


@dataclass(frozen=True)
class EncodedBatch:
    """Queries whose sources have been read: the state between the encoder and decoding."""

    checkpoint: Runnable  # what to run on
    queries: Sequence[Query]  # the requests
    sources: Sequence[Source]  # what the model read for each
    src_ids: Tensor  # the same as one batch [B, S]
    memory: Tensor | None  # what the encoder made of it [B, S, D]; None if decoder-only
    seen: dict[str, Tensor]  # what the recorder saw of the encoder
    keeping: Keeping  # what is recorded, and how much of the maps is kept
    tap: Tap  # sees and changes values in every call of the model
    started: float  # when reading began

    def decode(self, pause: Pause = go_on, *, watch: Watch | None = None) -> list[DecodedOutput]:
        """Decode rows together: prompts only with others of their length, beams only with others like them."""
        config = self.checkpoint.config
        if not anatomy(config).writes:
            return [DecodedOutput(()) for _ in self.queries]
        groups: dict[tuple[Beam | None, int, int], list[int]] = defaultdict(list)
        for row, (query, source) in enumerate(zip(self.queries, self.sources, strict=True)):
            beams = query.decoding if isinstance(query.decoding, Beam) else None
            most = rules_for(config, query, source).most if beams else 0
            groups[beams, most, len(source.prompt_ids)].append(row)
        outputs: dict[int, DecodedOutput] = {}
        for (beams, most, n_prompt), rows in groups.items():
            queries, sources = [self.queries[row] for row in rows], [self.sources[row] for row in rows]
            prefix = Prefix(
                self.checkpoint.model,
                self.src_ids[rows] if self.memory is not None else self.src_ids[rows, :n_prompt],
                cache=KVCache(config.n_decoder_layers),
                memory=None if self.memory is None else self.memory[rows],
                tap=self.tap,
                insisted=sources[0].insisted,
            )
            if beams is None:
                each = [DecodedRow(config, *one) for one in zip(queries, sources, strict=True)]
                # What a tap does may depend on how many rows there are.
                written = write_rows(prefix, config, each, pause, leaving=LEAVING if self.tap is NO_TAP else 0.0)
                outputs |= zip(rows, map(DecodedOutput, written), strict=True)
                continue
            forced, size, alpha = [source.forced for source in sources], beams.size, beams.length_penalty
            for best in beam_search(prefix, size=size, alpha=alpha, max_new=most, forced=forced, watch=watch):
                found = best
                pause()
            outputs |= zip(rows, map(_chosen, queries, found), strict=True)
        return [outputs[row] for row in range(len(self.queries))]

    def finish(self, outputs: Sequence[DecodedOutput], *, cut: bool = False) -> tuple[Trace, ...]:
        """Read the whole outputs once more, record, and return the traces; without the batch's padding if `cut`."""
        model, rows = self.checkpoint.model, tuple(zip(self.queries, self.sources, outputs, strict=True))
        read_ids = padded(
            [source.prompt_ids + output.ids[:-1] for _, source, output in rows], self.checkpoint.config.fill_id
        )
        recorded, passed = self.keeping.sites(self.src_ids.size(1), read_ids.size(1))
        mask = model.source_mask(self.src_ids)
        seen = {site: value for site, value in self.seen.items() if not passed or not site.endswith(".weights")}
        seen |= recording_pass.read_target(model, read_ids, self.memory, mask, recorded, passed=passed, tap=self.tap)
        record = RecordedRun(
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
) -> EncodedBatch:
    """Read the sources of queries with equal interventions, and record; see `run_batch` and `Keeping`.

    `sources` are what `read_source` makes of the queries, if they are known already.
    """
    started = time.monotonic()
    tap = both(tap_for(queries[0].interventions, checkpoint), tap)
    sources = sources or [read_source(checkpoint, query) for query in queries]
    if checkpoint.config.pad_id is None and len({len(source.ids) for source in sources}) > 1:
        raise QueryError(
            "{model} has no padding token, so only sentences of the same length can run as one batch; run them one "
            "at a time.",
            model=checkpoint.name,
        )
    src_ids = padded([source.ids for source in sources], checkpoint.config.fill_id)  # [B, S]
    keeping = Keeping(checkpoint.config, maps=maps, most_bytes=most_map_bytes)
    recorded, passed = keeping.sites(src_ids.size(1), 0)
    memory, seen = recording_pass.read_source(checkpoint.model, src_ids, recorded, passed=passed, tap=tap)
    return EncodedBatch(checkpoint, queries, sources, src_ids, memory, seen, keeping, tap, started)


def _chosen(query: Query, hypotheses: tuple[Hypothesis, ...]) -> DecodedOutput:
    if query.hypothesis >= len(hypotheses):
        raise QueryError(
            "result {result} was requested, but beam search found only {found}. Choose a lower number.",
            result=query.hypothesis + 1,
            found=len(hypotheses),
        )
    return DecodedOutput(hypotheses[query.hypothesis].ids, hypotheses)


def read_before(wanted: Tensor, start: int | Tensor) -> Tensor:
    """What a decoder reads to predict a padded batch [B, T]: the start, an id or [B, 1], and all but the last column.

    A batch's input is made here only, in training and for losses: as in `tgt[:, :-1]`, a shorter row keeps its end
    piece and padding. Only a decoder without a causal mask sees them.
    """
    return torch.cat((torch.zeros_like(wanted[:, :1]) + start, wanted[:, :-1]), dim=1)


def padded(rows: Sequence[Sequence[int]], fill_id: int) -> Tensor:
    """Rows of ids as one batch, with shorter ones filled up."""
    width = max(len(row) for row in rows)
    return torch.tensor([(*row, *([fill_id] * (width - len(row)))) for row in rows])
