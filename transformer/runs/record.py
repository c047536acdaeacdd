"""What a run records, what its recording pass saw of a batch, and the traces made from that.

Maps of a long text can be too large for a server. A run that drops its maps computes every attention like one that
keeps them, so all its other numbers are the same to the last bit. `transformer.runs.by_layer` computes the maps
again, one layer at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.model.anatomy import Attention, StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.beam import Hypothesis
from transformer.runs.query import Query
from transformer.runs.runnable import Runnable
from transformer.runs.source import Source, rules_for
from transformer.runs.step import BY_STEPS, Ranked, StopReason
from transformer.runs.trace import Trace

WEIGHTS = "*_attn.weights"
_BYTES = 4  # of a weight, in float32


@dataclass(frozen=True)
class Sites:
    """The sites of one pass."""

    recorded: tuple[str, ...]  # names or patterns of what is kept
    passed: tuple[str, ...]  # of what is computed as if kept, checked to be finite, and dropped

    def kept(self, seen: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What an earlier pass recorded, without maps if this one drops them."""
        return {site: value for site, value in seen.items() if not self.passed or not site.endswith(".weights")}


@dataclass(frozen=True)
class Keeping:
    """What a run records."""

    config: ModelConfig  # of the model
    maps: bool = True  # whether attention weights are computed at all
    # Most memory for the maps of one run, which keeps none if they need more. None: it keeps them all.
    most_bytes: int | None = None

    def sites(self, n_source: int, n_target: int) -> Sites:
        """The sites of a pass over this many tokens of the source and the output; 0 where not known yet."""
        own_masks = ["decoder.*.self_attn.mask"] * bool(self.config.windows)
        logits = ["logits"] * anatomy(self.config).writes
        always = ("*.0.*_attn.mask", *own_masks, *logits)
        if not self.maps:
            return Sites(always, ())
        if self.most_bytes is not None and map_bytes(self.config, n_source, n_target) > self.most_bytes:
            return Sites(always, (WEIGHTS,))
        return Sites((*always, WEIGHTS), ())


def map_bytes(config: ModelConfig, n_source: int, n_target: int) -> int:
    """Memory of all maps of one run, in bytes."""
    n_tokens = {"encoder": n_source, "decoder": n_target}
    return sum(
        _BYTES * one.n_layers * config.of(one.stack).n_heads * n_tokens[one.stack] * n_tokens[one.keys_from]
        for one in anatomy(config).attentions
    )


@dataclass(frozen=True)
class Output:
    """What decoding gave for one query."""

    ids: tuple[int, ...]
    hypotheses: tuple[Hypothesis, ...] = ()


@dataclass(frozen=True)
class Record:
    """What the recording pass saw of a whole batch."""

    checkpoint: Runnable
    src_ids: Tensor
    read_ids: Tensor
    values: dict[str, Tensor]
    seconds: float
    causal: bool  # whether one pass over an output holds all its steps; see `transformer.runs.recording`
    cut: bool  # whether traces are without the batch's padding

    def trace(self, row: int, query: Query, source: Source, output: Output) -> Trace:
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
            src_pieces=source.pieces + padding,
            tgt_ids=output.ids,
            tgt_pieces=tuple(vocabulary[i] for i in output.ids),
            read_ids=read_ids,
            read_pieces=source.prompt_pieces + tuple(vocabulary[i] for i in read_ids[len(source.prompt_ids) :]),
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
