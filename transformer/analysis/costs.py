"""The cost of each component of a model: parameters, multiply-adds, shapes of one pass; placeholder tensors.

The count is for one teacher-forced pass over a source of S and a target of T tokens, without a cache and without
padding. A multiply-add is one multiplication whose product is added to a sum; a product of [a, b] and [b, c] takes
a·b·c of them. The half of a decoder map that the causal mask hides is computed like the rest, so it counts.

Not counted: operations that touch every value once (norms, softmax, activation, biases, residual sums, the
embedding's scale), and looking up a row of a table, which multiplies nothing. Nor are placeholder tensors: the smallest
models of articles leave parts out, and an import fills their places with matrices that change nothing (see
`extensions.importers.library.renaming`). They are known by their values: an output projection or a second linear map
that is exactly the identity, a table of embeddings that holds the unit vectors.

Source: Vaswani et al. (2017), section 4 and table 1, which give the orders n²·d and n·d².

Shapes: S source tokens, T target tokens, D d_model, F d_ff, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, get_args
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from transformer.i18n import Sentence, say
from transformer.model.anatomy import EVERY_PART, Kind, StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.model.taps import Observer, tap_of

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

PROJECTION, MAP, TABLE = ".out_proj.weight", ".ffn.down_proj.weight", "src_table"
SAID: dict[str, Sentence] = {
    PROJECTION: say("The model has no output projection; an identity matrix takes its place and is not counted."),
    MAP: say(
        "The feed-forward network is a single linear map; an identity matrix takes the place of the second one and "
        "is not counted."
    ),
    TABLE: say("The model has no embeddings; unit vectors take their place and are not counted."),
}
_FOUND: WeakKeyDictionary[Transformer, frozenset[str]] = WeakKeyDictionary()


def stand_ins(model: Transformer) -> frozenset[str]:
    """The names of a model's placeholder tensors, with their biases."""
    if model not in _FOUND:
        tensors = dict(model.named_parameters())
        ends = (PROJECTION, TABLE, *((MAP,) if model.config.activation == "none" else ()))
        identities = [name for name, one in tensors.items() if name.endswith(ends) and _is_identity(one)]
        biases = (name.removesuffix("weight") + "bias" for name in identities)
        zeros = (name for name in biases if name in tensors and not tensors[name].any())
        _FOUND[model] = frozenset((*identities, *zeros))
    return _FOUND[model]


def said(names: frozenset[str], beginning: str = "") -> list[Sentence]:
    """What to say of those whose names begin so."""
    ours = [one for one in names if one.startswith(beginning)]
    return [text for end, text in SAID.items() if any(one.endswith(end) for one in ours)]


def _is_identity(one: Tensor) -> bool:
    if one.dim() != 2 or one.size(0) != one.size(1) or not bool((one.diagonal() == 1).all()):
        return False
    return int(torch.count_nonzero(one)) == len(one)


Part = Literal[
    "source_embedding", "target_embedding", "positions", "encoder_projections", "encoder_maps", "encoder_ffn",
    "decoder_projections", "decoder_maps", "cross_projections", "cross_maps", "decoder_ffn", "norms", "output",
]  # fmt: skip
PARTS: Final[tuple[Part, ...]] = get_args(Part)
"""The components in the order of a pass. `..._projections` are linear in the length, `..._maps` its n² part."""

MAPS: Final[tuple[Part, ...]] = ("encoder_maps", "decoder_maps", "cross_maps")
PROJECTIONS: Final[tuple[Part, ...]] = ("encoder_projections", "decoder_projections", "cross_projections")
FEED_FORWARD: Final[tuple[Part, ...]] = ("encoder_ffn", "decoder_ffn")

_OF_ATTENTION: Final[dict[Kind, tuple[Part, Part]]] = {
    "encoder": ("encoder_projections", "encoder_maps"),
    "decoder": ("decoder_projections", "decoder_maps"),
    "cross": ("cross_projections", "cross_maps"),
}
_OF_FFN: Final[dict[StackName, Part]] = {"encoder": "encoder_ffn", "decoder": "decoder_ffn"}

_OF_NAME: Final[tuple[tuple[str, Part], ...]] = (
    ("src_table", "source_embedding"),
    ("tgt_table", "target_embedding"),
    ("*.embedding.positions.table", "positions"),
    ("encoder.embedding.types.table", "source_embedding"),
    ("mlm_head.*", "output"),
    ("*.order.table", "positions"),
    ("*norm.weight", "norms"),
    ("*norm.bias", "norms"),
    *((f"{one.stack}.layers.*.{one.sublayer}.*", _OF_ATTENTION[one.kind][0]) for one in EVERY_PART.attentions),
    *((f"{stack}.layers.*.ffn.*", part) for stack, part in _OF_FFN.items()),
    ("output_table", "output"),
    ("output_bias", "output"),
)


@dataclass(frozen=True)
class Holding:
    """The learned tensors of one component."""

    part: Part  # the component
    # Name without the layer, shape, and how many of that name and shape there are.
    tensors: tuple[tuple[str, tuple[int, ...], int], ...]
    parameters: int  # learned values in all of them


@dataclass(frozen=True)
class Crossing:
    """Where the n² part needs more multiply-adds than a part that is linear in the length.

    Both sides have n tokens: the linear part takes `linear`·n multiply-adds, the n² part `quadratic`·n².
    """

    n: int  # the smallest whole n at which the n² part is larger
    linear: int  # multiply-adds a token
    quadratic: int  # multiply-adds of the n² part at n = 1


@cache
def part_of(name: str) -> Part:
    """The component of a tensor, by its name in `Transformer.named_parameters`; a KeyError if there is none."""
    for pattern, part in _OF_NAME:
        if fnmatchcase(name, pattern):
            return part
    raise KeyError(f"{name} belongs to no component; expected a name of Transformer.named_parameters.")


def parts_of(config: ModelConfig) -> tuple[Part, ...]:
    """The components that a model has, in the order of a pass; with one stack, its only table is the source's."""
    has = anatomy(config)
    lacks = {part for one in EVERY_PART.attentions if one.kind not in has.kinds for part in _OF_ATTENTION[one.kind]}
    lacks |= {_OF_FFN[stack.name] for stack in EVERY_PART.stacks} - {_OF_FFN[stack.name] for stack in has.stacks}
    lacks |= set() if has.gives_logits else {"output"}
    lacks |= set() if has.reads and has.writes else {"target_embedding"}
    return tuple(part for part in PARTS if part not in lacks)


def holdings(model: Transformer) -> dict[Part, Holding]:
    """The parameters of each component of `PARTS`, without tensors that replace a missing part.

    If there are no such tensors, their sum is `config.count_parameters()`.
    """
    counted: dict[Part, dict[tuple[str, tuple[int, ...]], int]] = {part: {} for part in PARTS}
    totals = dict.fromkeys(PARTS, 0)
    absent = stand_ins(model)
    for name, tensor in model.named_parameters():
        if name in absent:
            continue
        in_layer = name.split(".", 3)[3] if ".layers." in name else name  # such as ffn.up_proj.weight
        part, kind = part_of(name), (in_layer, tuple(tensor.shape))
        counted[part][kind] = counted[part].get(kind, 0) + 1
        totals[part] += tensor.numel()
    return {
        part: Holding(part, tuple((*kind, count) for kind, count in counted[part].items()), totals[part])
        for part in PARTS
    }


def buffers(model: Transformer) -> dict[str, tuple[int, ...]]:
    """The values of a model that are not learned: the shape of each buffer by its name."""
    return {name: tuple(tensor.shape) for name, tensor in model.named_buffers()}


def multiply_adds(config: ModelConfig, *, n_source: int, n_target: int) -> dict[Part, int]:
    """Multiply-adds of one teacher-forced pass over this many tokens, for every component of `PARTS`, in that order.

    Target tokens are those that the decoder reads, its prompt included; tokens of a missing stack are ignored.
    `max_len` does not limit them. A length below 1 is a ValueError.
    """
    n_tokens: dict[StackName, int] = {"encoder": n_source, "decoder": n_target}
    if min(n_tokens[stack.name] for stack in anatomy(config).stacks) < 1:
        raise ValueError(f"found {n_source} source and {n_target} target tokens, expected at least 1 of each.")
    parts, d, done = anatomy(config), config.d_model, dict.fromkeys(PARTS, 0)
    for one in parts.attentions:
        projections, maps = _OF_ATTENTION[one.kind]
        q, k = n_tokens[one.stack], n_tokens[one.keys_from]
        own = config.of(one.stack)
        heads = q * own.n_heads + k * own.n_kv_heads  # W_Q and W_O on the queries; W_K and W_V on the keys
        done[projections] = one.n_layers * 2 * d * own.d_head * heads
        done[maps] = one.n_layers * 2 * q * k * own.n_heads * own.d_head  # q·k, and weights·v
    for stack in parts.stacks:
        n_maps = 3 if config.gated else 2  # up, down, and the gate
        done[_OF_FFN[stack.name]] = stack.n_layers * n_maps * n_tokens[stack.name] * d * config.of(stack.name).d_ff
    if parts.gives_logits:
        n_last = n_target if parts.writes else n_source
        done["output"] = n_last * d * (config.tgt_vocab_size + (d if parts.fills else 0))  # d: an MLM head's own map
    return done


def overtakes(config: ModelConfig, *, parts: tuple[Part, ...] | None = None) -> Crossing:
    """The length of both sides above which the n² part costs more than one linear part, or than all of them."""
    one = multiply_adds(config, n_source=1, n_target=1)  # so every component's coefficient
    quadratic = sum(one[part] for part in MAPS)
    linear = sum(count for part, count in one.items() if (part not in MAPS if parts is None else part in parts))
    return Crossing(linear // quadratic + 1, linear, quadratic)


def grouped(counts: Mapping[Part, int]) -> dict[str, int]:
    """Counts of components in the few groups that curves can show; their sum stays the same."""
    groups = {"projections": PROJECTIONS, "maps": MAPS, "ffn": FEED_FORWARD, "output": ("output",)}
    sums = {name: sum(counts[part] for part in PARTS if part in parts) for name, parts in groups.items()}
    return sums | {"rest": sum(counts.values()) - sum(sums.values())}


def kinds_of_layers(n: int, d: int, *, side: int) -> dict[str, tuple[int, int, int]]:
    """What a layer over n tokens of width d needs: path, steps in training, multiply-adds; reach: `side` on each side.

    The path is how many layers, or steps, take the first token to the last. Table 1 of the paper gives orders: it
    leaves out attention's projections, 4·n·d², and log_k(n) is the path of dilated convolutions only (section 4).
    """
    k, maps = 2 * side + 1, 2 * n * d
    dilated = next(depth for depth in range(n + 1) if (k**depth - 1) // 2 >= n - 1)  # each layer reaches k times as far
    return {
        "attention": (min(n - 1, 1), 1, 4 * n * d * d + maps * n),
        "window": (-(-(n - 1) // side), 1, 4 * n * d * d + maps * min(k, n)),
        "recurrence": (n - 1, n, 2 * n * d * d),
        "convolution": (-(-(n - 1) // side), 1, k * n * d * d),
        "dilated": (dilated, 1, k * n * d * d),
    }


Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pass:
    """The shapes of one teacher-forced pass; equal only to itself, so results computed from it can be cached."""

    src_ids: Shape  # shapes of the two inputs, [batch, token]
    tgt_ids: Shape  # shapes of the two inputs, [batch, token]
    # Each site of `transformer.model.sites.SITES` in the model, in the pass's order; its shape has the batch axis.
    sites: dict[str, Shape]


@torch.inference_mode()
def shapes_of(model: Transformer, src_ids: Sequence[int], tgt_ids: Sequence[int]) -> Pass:
    """Run one sentence and record the shape of every value; the decoder reads its start id or prompt first."""
    seen: dict[str, Shape] = {}
    keep = Observer(["*"], lambda site, value: seen.update({site: tuple(value.shape)}))
    src, tgt = (torch.tensor([list(ids)], dtype=torch.long) for ids in (src_ids, tgt_ids))
    model(src, tgt, tap=tap_of(keep))
    return Pass(tuple(src.shape), tuple(tgt.shape), seen)
