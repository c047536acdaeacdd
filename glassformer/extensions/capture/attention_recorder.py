"""Recorder of softmax attention: a torch dispatch mode that traces tensors, its records, weights of fused kernels.

Attention is a softmax over keys whose result is multiplied with values. The recorder sees what every code comes down
to, below Python's modules and functions: nothing of the model changes, not even its choice of a fused kernel.

    softmax        and exp divided by its sum, followed by a product in which the keys are summed over
    fused kernels  scaled dot product attention, multi-head attention and encoder layers that torch computes as one
                   operation: the weights are computed a second time, from the same queries, keys and mask

Every tensor is known by its memory, so a view of it is the same tensor. Of each memory three things are noted as
operations go by: from which arguments of the call it comes (`taint`), whether it holds scores, and of which queries
and keys, and whether it holds weights of a softmax. Queries and keys that come from the same arguments are those of
self-attention: the first argument's are the encoder's.

Shapes: B batch, H heads, Q queries, K keys, D width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CLOSED: Final = -9_000.0  # a score below is a mask's: those of 16 bits are often filled with -10,000
_ATEN = torch.ops.aten
_LATER = 1_000  # beyond the places of arguments
_SOFTMAX = {_ATEN._softmax.default, _ATEN._safe_softmax.default}
_PRODUCTS = {_ATEN.bmm.default, _ATEN.mm.default}
_ADDED_PRODUCTS = {_ATEN.baddbmm.default, _ATEN.addmm.default}
# What gives new memory with the same numbers at other places, in another type, or some of them closed or left out.
_CARRIES = {
    _ATEN.clone.default, _ATEN._to_copy.default, _ATEN.native_dropout.default, _ATEN.mul.Tensor, _ATEN.mul.Scalar,
    _ATEN.div.Tensor, _ATEN.div.Scalar, _ATEN.add.Tensor, _ATEN.add.Scalar, _ATEN.sub.Tensor,
    _ATEN.masked_fill.Scalar, _ATEN.masked_fill.Tensor, _ATEN.where.self, _ATEN.where.ScalarSelf,
    _ATEN.where.ScalarOther, _ATEN.cat.default, _ATEN.stack.default, _ATEN.tanh.default, _ATEN.neg.default,
    _ATEN.tril.default, _ATEN.nan_to_num.default, _ATEN.copy.default, _ATEN._unsafe_view.default,
    _ATEN.bernoulli.p, _ATEN.softplus.default, _ATEN.clamp.default,
}  # fmt: skip
_FUSED = frozenset((
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_attention_math",
    "_scaled_dot_product_attention_math_for_mps",
))  # fmt: skip


@dataclass(frozen=True)
class Scores:
    """Of which queries and keys scores are: where those come from."""

    queries: frozenset[int]
    keys: frozenset[int]

    def is_across(self) -> bool:
        """Whether queries look at keys of another text."""
        return bool(self.queries and self.keys) and self.queries != self.keys


@dataclass(frozen=True)
class Running:
    """A module that runs."""

    path: str = ""
    reads: int = 0  # which memory its first argument is
    heads: int | None = None  # how many it says that it has


@dataclass(eq=False)
class Recorded:
    """One softmax of scores, in the shape in which the code computed it; attention once its weights are multiplied."""

    place: Running  # the module that computed it
    weights: Tensor  # with the keys last, once it is attention
    closed: Tensor  # bool, of the same shape
    scores: Scores | None  # None where they were not made by a product
    order: int  # of its first operation in the call
    heads: int | None = None  # where the operation says how many; else the shape does
    dim: int = -1  # the axis of the keys
    is_taken: bool = False  # whether it is known to be attention


@dataclass
class _Memory:
    """What is known of the memory of a tensor."""

    keep: Any  # the storage: no other tensor shall get the same place
    taint: frozenset[int] = frozenset()
    scores: Scores | None = None
    softmax: Recorded | None = None
    log_of: Recorded | None = None  # of a logarithm of weights: the weights, which are not there yet
    exp_of: Any = None  # of an exponential: what it is of
    sum_of: Any = None  # of a sum of exponentials: them, and over which axis


@dataclass
class AttentionRecorder(TorchDispatchMode):
    """Sees each operation while it is entered; `begin` tells of a call's arguments, `running` which module runs."""

    running: Callable[[], Running]
    found: list[Recorded] = field(default_factory=list)
    batch: int | None = None  # how many texts are read at once, as far as that is known

    def __post_init__(self) -> None:
        super().__init__()
        self._memory: dict[int, _Memory] = {}
        self._given_twice: set[int] = set()  # memory that is two arguments, as where a text is copied
        self._count = 0

    def begin(self, arguments: Iterable[Any]) -> None:
        """A call begins: what its tensors are is forgotten, and these are its arguments."""
        self._memory.clear()
        self._given_twice.clear()
        self._count, self.batch = 0, None
        for place, argument in enumerate(arguments):
            for tensor in tree_leaves(argument):
                if isinstance(tensor, Tensor):
                    known = self._of(tensor)
                    if known.taint and known.taint != {place}:
                        self._given_twice.add(id(known))
                    known.taint = frozenset((place,))
        for known in self._memory.values():
            known.taint = frozenset() if id(known) in self._given_twice else known.taint

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Compute the operation as it is, then note what it made."""
        named = dict(kwargs or {})
        made = func(*args, **named)
        self._count += 1
        with torch.no_grad():
            self._note(func, args, named, made)
        return made

    def _note(self, func: Any, args: Sequence[Any], named: Mapping[str, Any], made: Any) -> None:
        given = [one for one in tree_leaves((args, named)) if isinstance(one, Tensor)]
        taint = frozenset().union(*(self._taint(one) for one in given))
        outputs = [one for one in tree_leaves(made) if isinstance(one, Tensor)]
        if taint:
            for one in outputs:
                self._of(one).taint |= taint
        name = func._schema.name.removeprefix("aten::")
        if name == "embedding":
            self._look_up(args[1], made)
        if func in _SOFTMAX:
            self._of(made).softmax = self._soft(args, made, (args[0] <= CLOSED) & (made == 0))
        elif func in _PRODUCTS:
            self._product(args[0], args[1], made)
        elif func in _ADDED_PRODUCTS:
            self._product(args[1], args[2], made)
        elif name in _FUSED:
            self._fused(args, named)
        elif name == "_transformer_encoder_layer_fwd":
            self._layer(args, named)
        elif name == "_native_multi_head_attention":
            self._native(args, named)
        elif name == "_log_softmax":
            self._of(made).log_of = self._soft(args, made, args[0] <= CLOSED)
        elif name in ("exp", "exp_"):
            known = self._known(args[0])
            if known is not None and known.log_of is not None:
                self._of(made).softmax = replace(known.log_of, weights=made)
            else:
                self._of(made).exp_of = (known.scores if known else None, made)
        elif name == "sum" and len(args) > 1 and len(args[1]) == 1 and (known := self._known(args[0])) is not None:
            self._sum(args[0], int(args[1][0]), known, made)
        elif name in ("div", "div_") and (normalised := self._normalised(args)) is not None:
            scores, dim = normalised
            self._of(made).softmax = Recorded(self.running(), made, made == 0, scores, self._count, dim=dim)
        elif func in _CARRIES or name.endswith("_"):
            self._carry(given, outputs)

    def _normalised(self, args: Sequence[Any]) -> tuple[Scores | None, int] | None:
        """Of what scores, and over which axis, exponentials are divided by their own sum, which is a softmax."""
        above, below = self._known(args[0]), self._known(args[1])
        if above is None or below is None or above.exp_of is None or below.sum_of is None:
            return None
        return (above.exp_of[0], below.sum_of[1]) if below.sum_of[0] is above.exp_of else None

    # ------------------------------------------------------------------------------------------ what is known

    def key_of(self, arguments: Any) -> int:
        """Which memory the first tensor of some arguments is."""
        first = next((one for one in tree_leaves(arguments) if isinstance(one, Tensor)), None)
        if first is None or first.is_nested:
            return 0
        self._of(first)
        return first.untyped_storage()._cdata

    def _of(self, tensor: Tensor) -> _Memory:
        storage = tensor.untyped_storage()
        return self._memory.setdefault(storage._cdata, _Memory(storage))

    def _known(self, tensor: Any) -> _Memory | None:
        if not isinstance(tensor, Tensor) or tensor.is_nested:
            return None
        return self._memory.get(tensor.untyped_storage()._cdata)

    def _taint(self, tensor: Tensor) -> frozenset[int]:
        known = self._known(tensor)
        return known.taint if known else frozenset()

    def _carry(self, given: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        known = [one for one in map(self._known, given) if one is not None]
        scores = next((one.scores for one in known if one.scores is not None), None)
        softmax = next((one.softmax for one in known if one.softmax is not None), None)
        product = next((one.exp_of for one in known if one.exp_of is not None), None)
        for one in outputs:
            if one.is_floating_point():
                memory = self._of(one)
                memory.scores = memory.scores or scores
                memory.softmax = memory.softmax or softmax
                memory.exp_of = memory.exp_of or product

    def _look_up(self, ids: Tensor, made: Tensor) -> None:
        """Ids are looked up: where they come from nothing that is known, they are one more argument."""
        self.batch = self.batch or (len(ids) if ids.dim() > 1 else None)
        known = self._of(ids)
        if id(known) in self._given_twice:
            self._of(made).taint = frozenset((self._count + _LATER,))  # each of the two is looked up by itself
        elif not known.taint:
            known.taint = self._of(made).taint = frozenset((self._count + _LATER,))

    # ------------------------------------------------------------------------------------------ what is found

    def _soft(self, args: Sequence[Any], made: Tensor, closed: Tensor) -> Recorded:
        """What a softmax made: its arguments are scores, and the axis over which it is."""
        known = self._known(args[0])
        scores = known.scores if known else None
        return Recorded(self.running(), made, closed, scores, self._count, dim=int(args[1]) % made.dim())

    def _product(self, left: Tensor, right: Tensor, made: Tensor) -> None:
        """A product: of weights with values, which makes them attention's, or of queries with keys."""
        for given, factor in ((left, left), (right, right.mT)):  # [..., queries, keys] if these are weights
            known = self._known(given)
            if known is not None and known.softmax is not None:
                if not self._confirm(known.softmax, factor.shape[-1], factor.shape[-2], factor):
                    self._of(made).softmax = known.softmax  # heads may be mixed before the values
                return
        first, second = self._taint(left), self._taint(right)
        if first and second:  # of two that both come from the call: a parameter has no taint
            self._of(made).scores = Scores(first, second)

    def _sum(self, given: Tensor, dim: int, known: _Memory, made: Tensor) -> None:
        """A sum: of exponentials, for a softmax; or of weights times values, one by one."""
        if known.exp_of is not None:
            self._of(made).sum_of = (known.exp_of, dim % given.dim())
        elif known.softmax is not None and given.dim() > known.softmax.weights.dim():
            weights = known.softmax.weights.movedim(known.softmax.dim, -1)
            self._confirm(known.softmax, given.shape[dim], weights.shape[-2])

    def _confirm(self, soft: Recorded, summed: int, queries: int, factor: Tensor | None = None) -> bool:
        """Take weights that are multiplied with values if the keys are summed over; whether they are.

        `factor` [..., queries, keys] is what they are in the product, if they are one there.
        """
        if soft.is_taken or soft.weights.dim() < 2 or soft.weights.shape[soft.dim] != summed:
            return False
        weights, closed = (one.detach().movedim(soft.dim, -1) for one in (soft.weights, soft.closed))
        if weights.dim() == 2 and queries == 1:  # one query of each sentence
            weights, closed = weights[:, None], closed[:, None]
        places = [place for place in range(weights.dim() - 1) if weights.shape[place] == queries]
        if not places:  # each row of its own product, as a choice among experts is
            return False
        if len(places) > 1 and factor is not None and factor.numel() == weights.numel():  # as many heads as queries
            alike = (place for place in places[::-1] if weights.movedim(place, -2).reshape(factor.shape).equal(factor))
            places = [next(alike, places[-1])]
        if weights.shape[-2] != queries or len(places) == 1:  # heads may lie between queries and keys
            weights, closed = (one.movedim(places[-1], -2) for one in (weights, closed))
        scores = soft.scores
        if scores is not None and soft.dim == soft.weights.dim() - 2:  # keys came first in the product
            scores = Scores(scores.keys, scores.queries)
        self._add(replace(soft, weights=weights, closed=closed, scores=scores))
        soft.is_taken = True
        return True

    def _add(self, one: Recorded) -> None:
        weights, closed = one.weights.float().cpu().clone(), one.closed.cpu().expand(one.weights.shape).clone()
        self.found.append(replace(one, weights=weights, closed=closed))

    def _fused(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Scaled dot product attention that torch computes as one operation."""
        query, key = args[0], args[1]
        said = dict(named)
        for value in args[3:]:
            if isinstance(value, Tensor):
                said.setdefault("attn_mask", value)
            elif isinstance(value, bool):
                said.setdefault("is_causal", value)
        mask, scale = said.get("attn_mask"), said.get("scale")
        if "attn_bias" in said:
            mask = said["attn_bias"]
        weights, closed = attended(query, key, mask, is_causal=bool(said.get("is_causal")), scale=scale)
        scores = Scores(self._taint(query), self._taint(key))
        self._add(Recorded(self.running(), weights, closed, scores, self._count, heads=query.shape[-3]))

    def _native(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Self-attention with its projections as one operation: query, key, value, width, heads, weight, bias, ..."""
        mask = named.get("mask", args[9] if len(args) > 9 else None)
        kind = named.get("mask_type", args[12] if len(args) > 12 else None)
        self._projected(args[0], args[1], args[4:7], mask, kind)

    def _layer(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        """A whole encoder layer as one operation: src, width, heads, weight, bias, ..., gelu, norm first, eps, ..."""
        source, width, norm_first, eps = args[0], args[1], args[8], args[9]
        mask = named.get("mask", args[18] if len(args) > 18 else None)
        kind = named.get("mask_type", args[19] if len(args) > 19 else None)
        if norm_first and not source.is_nested:
            source = torch.nn.functional.layer_norm(source, (int(width),), args[10], args[11], float(eps))
        self._projected(source, source, args[2:5], mask, kind)

    def _projected(
        self, query: Tensor, key: Tensor, given: Sequence[Any], mask: Tensor | None, kind: int | None
    ) -> None:
        """Self-attention of queries and keys before their maps; `given` are the number of heads, weight and bias."""
        heads, weight, bias = int(given[0]), given[1], given[2]
        taint = frozenset((0,)) if query.is_nested else self._taint(query)
        closed = None
        if query.is_nested:
            lengths = [len(one) for one in query.unbind()]
            query = key = query.to_padded_tensor(0.0)
            closed = torch.arange(query.shape[1])[None, :] >= torch.tensor(lengths)[:, None]
            closed = closed[:, None, None, :].to(query.device)
        elif mask is not None:
            closed = mask.bool()
            closed = closed[:, None, None, :] if kind == 1 else closed
        width = weight.shape[0] // 3
        q = torch.nn.functional.linear(query, weight[:width], bias[:width])
        k = torch.nn.functional.linear(key, weight[width : 2 * width], bias[width : 2 * width])
        q, k = (one.unflatten(-1, (heads, -1)).transpose(1, 2) for one in (q, k))
        weights, shut = attended(q, k, None if closed is None else ~closed, is_causal=False, scale=None)
        self._add(Recorded(self.running(), weights, shut, Scores(taint, taint), self._count, heads=heads))


def attended(
    query: Tensor, key: Tensor, mask: Tensor | None, *, is_causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    """Weights of scaled dot product attention, and the cells that its mask closes, [..., Q, K].

    `mask` is bool, True = open, or is added; a head of keys may serve several of queries. As torch documents
    `scaled_dot_product_attention`; the mask of `is_causal` begins at the first key.
    """
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    if key.dim() == query.dim() > 3 and key.shape[-3] != query.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    scores = (query.float() @ key.float().transpose(-2, -1)) * scale
    if is_causal:
        opened = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~opened, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask.float()
    closed = scores <= CLOSED
    weights = torch.nan_to_num(scores.softmax(-1)) if mask is not None else scores.softmax(-1)
    return weights, closed
