"""Lines measured in batches: heads layer by layer during a pass, losses, ranks, effects of removed heads.

`measure` is a pure function: the same lines give the same bytes in any process with the same number of torch threads.
Its numbers are those of `head_statistics` and `teacher_forcing` for one line, up to a batch's rounding
(about 1e-6). Each layer's maps are measured during the pass and never kept.

Shapes: B lines, H heads, G key-value heads, S source tokens, T target tokens, N predicted pieces, Q queries, K keys,
V target vocabulary, D d_model, d d_head.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    HeadResults,
    LayerTokens,
    Linking,
    Side,
    Vectors,
    heads_table,
    linking,
    measure_layer,
    norm_shares,
    output_factors,
    room_for,
    tokens_of,
    vectors_table,
)
from glassformer.extensions.corpus.library.tables import NAMES, SENTENCES, CorpusLine, CorpusOptions
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
    """Measures each layer as the model computes it, into the arrays of `heads` and `vectors`.

    Args:
        factors: `output_factors` of every layer.
        links: The gold alignments of rows.
    """

    causal = True

    def __init__(
        self,
        batch: MeasuredBatch,
        factors: Mapping[Kind, Sequence[Tensor]],
        heads: Mapping[Kind, HeadResults],
        vectors: Vectors,
        links: Mapping[int, Linking],
    ) -> None:
        self._batch, self._factors, self._heads, self._vectors = batch, factors, heads, vectors
        self._links, self.finite = links, True
        self._kept = [row for row, item in enumerate(batch.items) if item.place in vectors]
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
        measures, *peaks = measure_layer(weights, shares, fixed)
        found, places = self._heads[one.kind], self._batch.places
        found.values[layer][:, places, : measures.size(2)] = measures.transpose(0, 1).cpu().numpy()
        for peak, values in zip(found.peaks, peaks, strict=True):
            peak[layer][:, places] = values.T.cpu().numpy()
        self.finite &= bool(measures[..., 0].isfinite().all())  # the entropy, which each map has
        for row, link in self._links.items() if one.kind == "cross" else ():
            found.links[:, layer, :, places[row]] = link.counts(weights[row])

    def _keep(self, one: Attention, layer: int, side: Side, value: Tensor) -> None:
        """Keep the queries [B, H, Q, d] or keys [B, G, K, d] of the first lines."""
        value = share_heads(value, self._batch.model.config.of(one.stack).n_heads)
        for row in self._kept:
            item = self._batch.items[row]
            values = value[row, :, : len(tokens_of(item, one.kind, side))]
            self._vectors[item.place][one.kind, side, layer] = values.float().cpu().numpy().copy()


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
    heads, vectors = HeadResults.empty(checkpoint.config, len(lines)), room_for(checkpoint.config, first)
    job = _Job(checkpoint, lines, options, pieces, {} if options.decode else gold or {}, heads, vectors)
    for batch in batches(checkpoint, items):
        problems |= job.measure(batch)
    rows: list[dict[str, object]] = [
        {"line": one.number, "source": one.source, "target": one.target, "problem": problems.get(place)}
        | job.found.get(place, {})
        for place, one in enumerate(lines)
    ]
    items = [item for item in items if item.place not in problems]
    return MeasuredTables(
        pa.Table.from_pylist(rows, schema=SENTENCES),
        heads_table(lines, items, pieces, heads),
        vectors_table(job.parts.attentions, lines, items, pieces, vectors),
    )


@dataclass(frozen=True, eq=False)
class _Job:
    """What stays the same for all batches, and what was found so far."""

    checkpoint: Checkpoint
    lines: Sequence[CorpusLine]
    options: CorpusOptions
    pieces: LinePieces
    gold: Mapping[int, GoldPair]
    heads: Mapping[Kind, HeadResults]
    vectors: Vectors
    found: dict[int, dict[str, object]] = field(default_factory=dict)  # columns of `SENTENCES`, by a line's place

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

    @cached_property
    def bleu(self) -> Any:
        """sacreBLEU's BLEU, as the card says how words are cut."""
        from sacrebleu import BLEU  # only decoding needs it

        words = usual_words(self.checkpoint.card.target_code)
        return BLEU(tokenize=words, effective_order=True)  # else it warns; counts alike

    def measure(self, items: Sequence[Item]) -> dict[int, str]:
        """Measure a batch; the problems of lines whose numbers are not finite, by their places."""
        batch = MeasuredBatch(self.checkpoint, items, self.pieces)
        links = self._linkings(items)
        watch = Watch(batch, self.factors, self.heads, self.vectors, links)
        memory, losses, ranks = self._read(batch, tap_of(watch))
        if bool(losses.isfinite().all()) and watch.finite:
            self._keep(batch, losses, ranks, links)
            if self.options.effect and len(losses):
                self._keep_effects(batch, memory, losses)
            return {}
        if len(items) > 1:
            return {place: problem for item in items for place, problem in self.measure([item]).items()}
        site = first_site(lambda tap: self._read(batch, tap), tap=NO_TAP) or "logits"
        return {items[0].place: str(not_finite(site))}

    def _linkings(self, items: Sequence[Item]) -> dict[int, Linking]:
        """The gold alignments of a batch's rows that have any."""
        linkings: dict[int, Linking] = {}
        for row, item in enumerate(items):
            line = self.lines[item.place]
            gold = self.gold.get(line.number)
            found = gold and linking(self.checkpoint, line, item, self.pieces, gold)
            if found:
                linkings[row] = found
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

    def _keep(self, batch: MeasuredBatch, losses: Tensor, ranks: Tensor, links: Mapping[int, Linking]) -> None:
        counts = [len(item.ids) for item in batch.items]
        for row, (item, *of_item) in enumerate(
            zip(batch.items, losses.split(counts), ranks.split(counts), strict=True)
        ):
            sure = {"sure": len(links[row].links.sure)} if row in links else {}
            self.found[item.place] = self._numbers(item, *of_item) | sure

    def _numbers(self, item: Item, losses: Tensor, ranks: Tensor) -> dict[str, object]:
        """What is known of a line, from the losses and ranks of its pieces."""
        row: dict[str, object] = {"n_source": item.n_source}
        if item.ids:
            log_prob, worst = -float(losses.double().sum()), int(ranks.argmax())
            row |= {"n_target": len(item.ids), "log_prob": log_prob, "loss": -log_prob / len(item.ids)}
            step = item.first - (item.first if item.step is None else item.step) + worst
            row |= {"worst_rank": int(ranks[worst]), "worst_step": step, "exact": int(ranks[worst]) == 1}
        if item.output is not None:
            target = self.lines[item.place].target
            row |= {"output": item.output, "exact": None if target is None else item.output == target}
            if target is not None:
                bleu = self.bleu.sentence_score(item.output, [target])
                row["bleu"] = [bleu.sys_len, bleu.ref_len, *bleu.counts, *bleu.totals]
                row["chrf"] = [*chain(*chrf_counts(item.output, target))]
        return row

    def _keep_effects(self, batch: MeasuredBatch, memory: Tensor | None, losses: Tensor) -> None:
        """Read the batch once for each head, which then writes zeros."""
        total, effect = batch.sums(losses), NAMES.index("effect")
        for one in self.parts.attentions:
            heads = self.heads[one.kind].values
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
