"""A batch of lines as the model reads it, and what looks at each layer while the model reads.

Nothing of a layer is kept but its measures. Shapes: B lines, H heads, G key-value heads, S source tokens, T target
tokens, N predicted pieces, Q queries, K keys, d d_head, D d_model.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.corpus.library.found import Found
from glassformer.extensions.corpus.library.layer import Fixed, Measures, Tokens, measure_layer, norm_shares
from glassformer.extensions.corpus.library.linking import Linking
from glassformer.extensions.corpus.library.reading import Item, Pieces
from glassformer.extensions.corpus.library.vectors import Side
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import Attention, Kind, StackName, anatomy
from transformer.model.attention import share_heads
from transformer.model.taps import NO_TAP, Tap
from transformer.runs.reading import padded

_SIDES: dict[str, Side] = {"queries": "query", "keys": "key"}


class Batch:
    """Lines that are read together."""

    def __init__(self, checkpoint: Checkpoint, items: Sequence[Item], pieces: Pieces) -> None:
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

    def side(self, stack: StackName) -> Tokens:
        """The tokens of a stack."""
        return self._encoder if stack == "encoder" else self._decoder

    @cached_property
    def _encoder(self) -> Tokens:
        return self._side([item.source for item in self.items], self._ends)

    @cached_property
    def _decoder(self) -> Tokens:
        return self._side([item.read for item in self.items], [False] * len(self.items))

    def _side(self, numbers: Sequence[tuple[int, ...]], ends: Sequence[bool]) -> Tokens:
        width = max(map(len, numbers))
        texts = np.full((len(numbers), width), -1)
        punctuation = np.zeros((len(numbers), width), bool)
        for row, some in enumerate(numbers):
            texts[row, : len(some)] = [self.pieces.texts[n] for n in some]
            punctuation[row, : len(some)] = [self.pieces.punctuation[n] for n in some]
        values = np.array([len(some) for some in numbers]), texts, punctuation, np.array(ends)
        return Tokens(*(torch.from_numpy(each).to(self._device) for each in values))


class Watch:
    """Measures each layer as the model computes it, into the arrays of `found`.

    Args:
        factors: `output_factors` of every layer.
        links: The gold alignments of rows.
    """

    causal = True

    def __init__(
        self, batch: Batch, factors: Mapping[Kind, Sequence[Tensor]], found: Found, links: Mapping[int, Linking]
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
