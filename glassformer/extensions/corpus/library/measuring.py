"""Lines measured in batches: heads layer by layer during a pass, losses, ranks, effects of removed heads.

`measure` is a pure function: the same lines give the same bytes in any process with the same number of torch threads.
Its numbers are those of `head_statistics` and `teacher_forcing` for one line, up to a batch's rounding
(about 1e-6). Each layer's maps are measured during the pass and never kept.

Shapes: B lines, H heads, G key-value heads, S source tokens, T target tokens, N predicted pieces, Q queries, K keys,
V target vocabulary, D d_model, d d_head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from glassformer.extensions.corpus.library.lines import Item, LinePieces, batches, read_items
from glassformer.extensions.corpus.library.measures import (
    Fixed,
    LayerTokens,
    Linking,
    Measures,
    ResultArrays,
    Side,
    heads_table,
    linking,
    measure_layer,
    norm_shares,
    output_factors,
    room_for,
    sentences_table,
    vectors_table,
)
from glassformer.extensions.corpus.library.tables import NAMES, CorpusLine, CorpusOptions
from transformer.analysis.alignment import GoldPair
from transformer.analysis.chrf import chrf_counts, usual_words
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import Anatomy, Attention, Kind, StackName, anatomy
from transformer.model.attention import share_heads
from transformer.model.taps import NO_TAP, Replacer, Tap, tap_of
from transformer.runs.distribution import ROWS, logits_of, losses_of, ranks_of
from transformer.runs.reading import padded
from transformer.runs.recording_pass import first_site, not_finite

_SIDES: dict[str, Side] = {"queries": "query", "keys": "key"}


class MeasuredBatch:
    """Lines that are read together."""

    def __init__(self, checkpoint: Checkpoint, items: Sequence[Item], pieces: LinePieces) -> None:
        self.model, self.items, self.pieces = checkpoint.model, items, pieces
        self.places = np.array([item.place for item in items])
        self._device, config = checkpoint.device, checkpoint.config
        self.src = padded([item.src_ids for item in items], config.fill_id).to(self._device)  # [B, S]
        self.read = padded([item.read_ids for item in items], config.fill_id).to(self._device)  # [B, T]
        self._ends = [item.src_ids[-1:] == (config.eos_id,) for item in items]
        counts = torch.tensor([len(item.ids) for item in items])
        self.row = torch.arange(len(items)).repeat_interleave(counts)  # of each predicted piece [N]
        steps = [torch.arange(len(item.ids)) for item in items]
        self.step = torch.cat(steps)  # its place in its line [N]
        self.token = self.step + torch.tensor([item.first for item in items])[self.row]  # the token that predicts it
        self.ids = torch.tensor([i for item in items for i in item.ids], dtype=torch.long).to(self._device)  # [N]

    def memory(self, tap: Tap = NO_TAP) -> Tensor | None:
        """What the encoder makes of the sources [B, S, D]; None without one."""
        return self.model.encode(self.src, tap=tap) if self.model.anatomy.reads else None

    def hidden(self, memory: Tensor | None, tap: Tap = NO_TAP) -> Tensor:
        """The vectors that predict the pieces [N, D]."""
        mask = None if memory is None else self.model.source_mask(self.src)
        return self.model.decode(self.read, memory, mask, tap=tap)[self.row, self.token]

    def sums(self, values: Tensor) -> Tensor:
        """The sums over each line's predicted pieces: [N] -> [B], in 64 bits."""
        return torch.zeros(len(self.items), dtype=torch.float64).index_add_(0, self.row, values.double())

    def side(self, stack: StackName) -> LayerTokens:
        """The tokens of a stack."""
        return self._encoder if stack == "encoder" else self._decoder

    @cached_property
    def _encoder(self) -> LayerTokens:
        return self._side([item.source for item in self.items], self._ends)

    @cached_property
    def _decoder(self) -> LayerTokens:
        return self._side([item.read for item in self.items], [False] * len(self.items))

    def _side(self, numbers: Sequence[tuple[int, ...]], ends: Sequence[bool]) -> LayerTokens:
        width = max(map(len, numbers))
        texts = np.full((len(numbers), width), -1)
        punctuation = np.zeros((len(numbers), width), bool)
        for row, some in enumerate(numbers):
            texts[row, : len(some)] = [self.pieces.texts[n] for n in some]
            punctuation[row, : len(some)] = [self.pieces.punctuation[n] for n in some]
        values = np.array([len(some) for some in numbers]), texts, punctuation, np.array(ends)
        return LayerTokens(*(torch.from_numpy(each).to(self._device) for each in values))


class Watch:
    """Measures each layer as the model computes it, into the arrays of `found`.

    Args:
        factors: `output_factors` of every layer.
        links: The gold alignments of rows.
    """

    causal = True

    def __init__(
        self,
        batch: MeasuredBatch,
        factors: Mapping[Kind, Sequence[Tensor]],
        found: ResultArrays,
        links: Mapping[int, Linking],
    ) -> None:
        self._batch, self._factors, self._found = batch, factors, found
        self._links, self.finite = links, True
        kept = {item.place for item in found.vectors.items}
        self._kept = [row for row, item in enumerate(batch.items) if item.place in kept]
        self._fixed: dict[Kind, Fixed] = {}
        self._weights: Tensor | None = None
        names = ("mask", "weights", "heads", *(_SIDES if self._kept else ()))
        attentions = anatomy(batch.model.config).attentions
        self._sites = {
            one.site(layer, name): (one, layer, name)
            for one in attentions
            for layer in range(one.n_layers)
            for name in names
        }

    def wants(self, site: str) -> bool:
        """Maps, masks and what heads give, of every layer."""
        return site in self._sites

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Look at a value and return it unchanged."""
        one, layer, name = self._sites[site]
        if name == "mask":
            self._see_mask(one, value)
        elif name == "weights":
            self._weights = value
        elif name == "heads":
            self._see_heads(one, layer, value)
        else:
            self._keep(one, layer, _SIDES[name], value)
        return value

    def _see_mask(self, one: Attention, mask: Tensor) -> None:
        known = self._fixed.get(one.kind)
        if known is None or (known.mask is not mask and not torch.equal(known.mask, mask)):
            queries, keys = self._batch.side(one.stack), self._batch.side(one.keys_from)
            dtype = torch.promote_types(self._batch.model.src_table.dtype, torch.float32)
            self._fixed[one.kind] = Fixed(queries, keys, mask, one.kind == "cross", dtype)

    def _see_heads(self, one: Attention, layer: int, heads: Tensor) -> None:
        """The last that is seen of a layer's attention: measure it, and forget its maps."""
        fixed, weights, self._weights = self._fixed[one.kind], self._weights, None
        assert weights is not None
        shares = norm_shares(heads, self._factors[one.kind][layer], fixed.n_open >= 1)
        self._put(one, layer, measure_layer(weights, shares, fixed))
        if one.kind == "cross":
            for row, linking in self._links.items():
                place = self._batch.places[row]
                self._found.heads["cross"].links[:, layer, :, place] = linking.counts(weights[row])

    def _put(self, one: Attention, layer: int, found: Measures) -> None:
        heads, places = self._found.heads[one.kind], self._batch.places
        heads.values[layer][:, places, : found.values.size(2)] = found.values.transpose(0, 1).cpu().numpy()
        for peak, values in zip(heads.peaks, (found.query, found.key), strict=True):
            peak[layer][:, places] = values.T.cpu().numpy()
        self.finite &= bool(found.values[..., 0].isfinite().all())  # the entropy, which each map has

    def _keep(self, one: Attention, layer: int, side: Side, value: Tensor) -> None:
        """Keep the queries [B, H, Q, d] or keys [B, G, K, d] of the first lines."""
        value = share_heads(value, self._batch.model.config.of(one.stack).n_heads)
        for row in self._kept:
            values = value[row].float().cpu().numpy()
            self._found.vectors.put(one.kind, layer, side, self._batch.items[row].place, values)


@dataclass(frozen=True)
class MeasuredTables:
    """The tables of some lines (`extensions.corpus.library.tables`)."""

    sentences: pa.Table  # in the order of the lines
    heads: pa.Table  # by kind, layer, head and then in the order of the lines
    vectors: pa.Table | None  # None where no line keeps them


@torch.inference_mode()
def measure(
    checkpoint: Checkpoint,
    lines: Sequence[CorpusLine],
    options: CorpusOptions,
    gold: Mapping[int, GoldPair] | None = None,
) -> MeasuredTables:
    """Measure lines; `gold` has the gold alignments of some of them, by their numbers."""
    items, problems, pieces = read_items(checkpoint, lines, decode=options.decode)
    first = [item for item in items if lines[item.place].number <= options.vectors]
    found = ResultArrays.empty(checkpoint.config, len(lines), room_for(checkpoint.config, first))
    job = _Job(checkpoint, lines, options, pieces, {} if options.decode else gold or {}, found)
    for batch in batches(checkpoint, items):
        problems |= job.measure(batch)
    items = [item for item in items if item.place not in problems]
    by_place = {item.place: item for item in items}
    rows = (_sentence(job, place, by_place.get(place), problems.get(place)) for place in range(len(lines)))
    return MeasuredTables(
        sentences_table(rows),
        heads_table(lines, items, pieces, job.found),
        vectors_table(lines, pieces, job.found.vectors, problems),
    )


@dataclass(frozen=True, eq=False)
class _Job:
    """What stays the same for all batches, and what was found so far."""

    checkpoint: Checkpoint
    lines: Sequence[CorpusLine]
    options: CorpusOptions
    pieces: LinePieces
    gold: Mapping[int, GoldPair]
    found: ResultArrays

    @property
    def parts(self) -> Anatomy:
        """The model's parts."""
        return anatomy(self.checkpoint.config)

    @cached_property
    def factors(self) -> dict[Kind, list[Tensor]]:
        """`output_factors` of every layer."""
        attentions = {kind: self.checkpoint.model.attentions(kind) for kind in self.parts.kinds}
        return {
            kind: [output_factors(one.out_proj.weight, one.n_heads) for one in layers]
            for kind, layers in attentions.items()
        }

    def bleu(self, output: str, reference: str) -> list[int]:
        """sacreBLEU's statistics: lengths of output and reference, n-grams that both have, n-grams of the output."""
        score = self._bleu.sentence_score(output, [reference])
        return [score.sys_len, score.ref_len, *score.counts, *score.totals]

    @cached_property
    def _bleu(self) -> Any:
        from sacrebleu import BLEU  # only decoding needs it

        words = usual_words(self.checkpoint.card.target_code)
        return BLEU(tokenize=words, effective_order=True)  # else it warns; counts alike

    def measure(self, items: Sequence[Item]) -> dict[int, str]:
        """Measure a batch; the problems of lines whose numbers are not finite, by their places."""
        batch = MeasuredBatch(self.checkpoint, items, self.pieces)
        watch = Watch(batch, self.factors, self.found, self._linkings(items))
        memory, losses, ranks = self._read(batch, tap_of(watch))
        if bool(losses.isfinite().all()) and watch.finite:
            self._keep(batch, losses, ranks)
            if self.options.effect and len(losses):
                self._keep_effects(batch, memory, losses)
            return {}
        if len(items) > 1:
            return {place: problem for item in items for place, problem in self.measure([item]).items()}
        site = first_site(lambda tap: self._read(batch, tap), tap=NO_TAP) or "logits"
        return {items[0].place: str(not_finite(site))}

    def _linkings(self, items: Sequence[Item]) -> dict[int, Linking]:
        """The gold alignments of a batch's rows; what is known of their lines is kept."""
        linkings: dict[int, Linking] = {}
        for row, item in enumerate(items):
            line = self.lines[item.place]
            gold = self.gold.get(line.number)
            found = gold and linking(self.checkpoint, line, item, self.pieces, gold)
            if found:
                linkings[row] = found
                self.found.sentences.sure[item.place] = len(found.links.sure)
        return linkings

    def _read(self, batch: MeasuredBatch, tap: Tap) -> tuple[Tensor | None, Tensor, Tensor]:
        """The memory, losses and ranks of all predicted pieces [N] of a pass."""
        memory = batch.memory(tap)
        if not self.parts.writes:
            return memory, torch.zeros(0), torch.zeros(0, dtype=torch.long)
        return memory, *self._judged(batch, batch.hidden(memory, tap), tap)

    def _judged(self, batch: MeasuredBatch, hidden: Tensor, tap: Tap) -> tuple[Tensor, Tensor]:
        parts: list[tuple[Tensor, Tensor]] = []
        ids = iter(batch.ids.split(ROWS))
        for logits, wanted in zip(logits_of(self.checkpoint.model, hidden, tap=tap), ids, strict=True):
            log_probs = logits.log_softmax(dim=-1)  # [n, V]
            own = log_probs.gather(1, wanted[:, None])  # [n, 1]
            parts.append((-own[:, 0], _ranks(log_probs, own, wanted)))
        losses, ranks = (torch.cat(found).cpu() for found in zip(*parts, strict=True))
        return losses, ranks

    def _keep(self, batch: MeasuredBatch, losses: Tensor, ranks: Tensor) -> None:
        found, row = self.found.sentences, 0
        for item in batch.items:
            rows, row = slice(row, row + len(item.ids)), row + len(item.ids)
            if item.ids:
                worst = int(ranks[rows].argmax())
                found.log_prob[item.place] = -float(losses[rows].double().sum())
                found.rank[item.place] = int(ranks[rows][worst])
                found.step[item.place] = item.first - (item.first if item.step is None else item.step) + worst

    def _keep_effects(self, batch: MeasuredBatch, memory: Tensor | None, losses: Tensor) -> None:
        """Read the batch once for each head, which then writes zeros."""
        total, effect = batch.sums(losses), NAMES.index("effect")
        for one in self.parts.attentions:
            heads = self.found.heads[one.kind].values
            for layer, head in np.ndindex(heads.shape[:2]):
                tap = tap_of(Replacer({one.site(layer, "heads"): partial(_without, head)}, causal=True))
                seen = batch.memory(tap) if one.stack == "encoder" else memory
                lost = losses_of(self.checkpoint.model, batch.hidden(seen, tap), batch.ids).cpu()
                heads[layer, head, batch.places, effect] = (batch.sums(lost) - total).numpy()


def _ranks(log_probs: Tensor, own: Tensor, ids: Tensor) -> Tensor:
    """`ranks_of`, in half the time: only where pieces are equally probable [n, V] the ids are asked."""
    room = torch.empty_like(log_probs)  # for 0 and 1: of such sums the processor is quick
    above, reached = (compare(log_probs, own, out=room).sum(dim=1) for compare in (torch.gt, torch.ge))
    if bool((reached > above + 1).any()):
        return ranks_of(log_probs, ids)
    return above.long() + 1


def _without(head: int, value: Tensor) -> Tensor:
    """Zeros instead of what a head gives [B, H, Q, d]."""
    changed = value.clone()
    changed[:, head] = 0.0
    return changed


def _sentence(job: _Job, place: int, item: Item | None, problem: str | None) -> Mapping[str, object]:
    """What is known of a line."""
    line, found = job.lines[place], job.found.sentences
    row: dict[str, object] = {"line": line.number, "source": line.source, "target": line.target, "problem": problem}
    if item is None:
        return row
    row |= {"n_source": item.n_source, "sure": None if found.sure[place] < 0 else int(found.sure[place])}
    if item.ids:
        log_prob, rank = float(found.log_prob[place]), int(found.rank[place])
        row |= {"n_target": len(item.ids), "log_prob": log_prob, "loss": -log_prob / len(item.ids)}
        row |= {"worst_rank": rank, "worst_step": int(found.step[place]), "exact": rank == 1}
    if item.output is not None:
        row |= {"output": item.output, "exact": None if line.target is None else item.output == line.target}
        row |= {} if line.target is None else {"bleu": job.bleu(item.output, line.target)}
        row |= {} if line.target is None else {"chrf": [*chain(*chrf_counts(item.output, line.target))]}
    return row
