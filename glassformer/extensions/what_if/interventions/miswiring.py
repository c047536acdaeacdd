"""`MISTAKES` of Transformer code, and `Miswiring`: masks, softmax axis, head splits, fused matrices, norms.

A miswiring is a typical mistake in a Transformer's code, made in one layer, one stack or the whole model.

What other changes of *What if* cannot make: masks that are added, multiplied or thrown away, a softmax over another
axis, heads that are cut or joined without the transpose, fused matrices that are read in another order, norms and
layers that are exchanged or lost. `glassformer.extensions.wirings` has all mistakes, those of other changes, too.

Closed scores are -1e9 here, as such code has it: a row without open keys gets equal weights.

Source: Vaswani et al. (2017), section 3, for what is right.

Shapes: B batch, H heads, Q queries, K keys, d d_head, T tokens, D d_model.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor

from transformer.i18n import Sentence, say
from transformer.model.anatomy import Attention, Kind, Stack, StackName, anatomy
from transformer.model.attention_scores import Scoring
from transformer.model.config import ModelConfig
from transformer.model.feed_forward import ACTIVATIONS
from transformer.model.taps import Hook, Replacer, Rewirer, all_seen
from transformer.runs.interventions.base import InterventionContext, InterventionError
from transformer.runs.interventions.fields import choice
from transformer.runs.interventions.targets import LayerChange

CLOSED: Final = -1e9
Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Ground:
    """What a mistake is made in."""

    change: "Miswiring"
    config: ModelConfig
    parameter: Callable[[str], Tensor]  # by its name in the model

    @property
    def stacks(self) -> list[Stack]:
        """The stacks that are changed."""
        names = self.change.stacks(self.config)
        return [one for one in anatomy(self.config).stacks if one.name in names]

    @property
    def attentions(self) -> list[Attention]:
        """Their attentions."""
        names = self.change.stacks(self.config)
        return [one for one in anatomy(self.config).attentions if one.stack in names]

    def layers(self, stack: StackName) -> list[int]:
        """The layers that are changed, from 0."""
        n_layers = anatomy(self.config).stack(stack).n_layers
        return list(range(n_layers)) if self.change.layer is None else [self.change.layer]

    def names(self, name: str, *kinds: Kind) -> list[str]:
        """A value or a setting of attention in each changed layer, of some kinds or of all."""
        chosen = [one for one in self.attentions if not kinds or one.kind in kinds]
        if not chosen:
            raise InterventionError(say("The chosen part of this model has no such attention."))
        return [one.site(layer, name) for one in chosen for layer in self.layers(one.stack)]


Made = Callable[[Ground], tuple[Hook, ...]]

# ------------------------------------------------------------------------------------------------ weights from scores


def _rewired(names: list[str], change: Change, *, causal: bool = False) -> tuple[Hook, ...]:
    return (Rewirer(dict.fromkeys(names, change), causal=causal),)


def _replaced(names: list[str], change: Callable[[Tensor], Tensor], *, causal: bool = False) -> tuple[Hook, ...]:
    return (Replacer(dict.fromkeys(names, change), causal=causal),)


def _weighing(weigh: Callable[[Tensor, Tensor], Tensor], *kinds: Kind) -> Made:
    """Weights [B, H, Q, K] by a function of scores and of the mask in their shape."""

    def weights(_: Scoring, scores: Tensor, mask: Tensor | None) -> Tensor:
        seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
        return weigh(scores, seen)

    return lambda ground: _rewired(ground.names("scoring", *kinds), lambda how: replace(how, weigh=weights))


def _softmax(scores: Tensor, seen: Tensor, dim: int = -1) -> Tensor:
    return scores.masked_fill(~seen, CLOSED).softmax(dim)


def _triangle(scores: Tensor, seen: Tensor) -> Tensor:
    return _softmax(scores, seen & torch.ones_like(scores[0, 0], dtype=torch.bool).tril())


def _transposed(q: Tensor, k: Tensor, scale: float) -> Tensor:
    return k @ q.transpose(-2, -1) * scale


def _padding_inverted(ground: Ground) -> tuple[Hook, ...]:
    names = {"encoder": "encoder.padding", "cross": "decoder.source_padding"}
    kinds = [one.kind for one in ground.attentions if one.kind in names]
    fill = _rewired(ground.names("scoring", *kinds), lambda how: replace(how, fill=CLOSED))
    return _rewired([names[kind] for kind in kinds], lambda open_: None if open_ is None else ~open_) + fill


# ------------------------------------------------------------------------------------------------ heads


def _cut(ground: Ground) -> list[str]:
    """Queries, keys and values as they are cut into heads, before they are normed or turned."""
    turned = ground.config.qk_norm or ground.config.placing.adds == "turn"
    of_self = [f"projected_{name}" if turned else name for name in ("queries", "keys")]
    plain = ["queries", "keys"] if not ground.config.qk_norm else of_self
    own = [name for part in (*of_self, "values") for name in ground.names(part) if ".self_attn." in name]
    cross = [name for part in (*plain, "values") for name in ground.names(part) if ".cross_attn." in name]
    return own + cross


def _view(heads: Tensor) -> Tensor:
    """[B, T, H * d] in memory, taken for [B, H, T, d]."""
    return heads.transpose(1, 2).reshape(heads.shape)


def _reshape(heads: Tensor) -> Tensor:
    """[B, H, T, d] in memory, taken for [B, T, H * d]."""
    n, h, t, d = heads.shape
    return heads.reshape(n, t, h, d).transpose(1, 2)


def _by_dimension(heads: Tensor) -> Tensor:
    """Each head gets every H-th number."""
    n, h, t, d = heads.shape
    return heads.transpose(1, 2).reshape(n, t, d, h).permute(0, 3, 1, 2)


def _mean_map(weights: Tensor) -> Tensor:
    return weights.mean(1, keepdim=True).expand_as(weights)


# ------------------------------------------------------------------------------------------------ parameters


def _named(place: str) -> str:
    """The name of a part of the model, by that of its site: `encoder.0.ffn` is `encoder.layers.0.ffn`."""
    stack, layer, rest = place.split(".", 2)
    return f"{stack}.layers.{layer}.{rest}"


_MAPS: Final = ("q_proj", "k_proj", "v_proj")


def _fused(order: Callable[[list[Tensor], int], list[Tensor]]) -> Made:
    """W_Q, W_K and W_V of other rows of the same file: a function of the three and the number of heads."""

    def hooks(ground: Ground) -> tuple[Hook, ...]:
        changes = dict[str, Change].fromkeys(ground.names("joined"), lambda joined: None)
        for place in [one.place(layer) for one in ground.attentions for layer in ground.layers(one.stack)]:
            for kind in ("weight", "bias") if ground.config.biases.attention else ("weight",):
                own = [ground.parameter(f"{_named(place)}.{name}.{kind}") for name in _MAPS]
                for name, other in zip(_MAPS, order(own, ground.config.n_heads), strict=True):
                    changes[f"{place}.{name}.{kind}"] = partial(_other, other)
        return (Rewirer(changes),)

    return hooks


def _other(value: Any, _: object) -> Any:
    return value


def _interleaved(own: list[Tensor], n_heads: int) -> list[Tensor]:
    whole = torch.cat(own)
    cut = whole.reshape(n_heads, 3, len(whole) // (3 * n_heads), *whole.shape[1:])
    return [cut[:, i].reshape(own[0].shape) for i in range(3)]


def _ordered(*places: int) -> Callable[[list[Tensor], int], list[Tensor]]:
    return lambda own, _: [own[i] for i in places]


def _gates(ground: Ground) -> tuple[Hook, ...]:
    changes: dict[str, Change] = {}
    for stack in ground.stacks:
        for layer in ground.layers(stack.name):
            place = f"{stack.name}.{layer}.ffn"
            for name, other in (("gate_proj", "up_proj"), ("up_proj", "gate_proj")):
                for kind in ("weight", "bias") if ground.config.biases.ffn else ("weight",):
                    value = ground.parameter(f"{_named(place)}.{other}.{kind}")
                    changes[f"{place}.{name}.{kind}"] = partial(_other, value)
    return (Rewirer(changes),)


# ------------------------------------------------------------------------------------------------ norms and layers


def _norms(ground: Ground, change: Callable[[str, Any], Any], *, final: bool) -> tuple[Hook, ...]:
    """Norms by a function of the place and the norm itself."""
    changes: dict[str, Change] = {}
    for stack in ground.stacks:
        for place in [f"{stack.name}.{layer}.{sub}" for layer in ground.layers(stack.name) for sub in stack.sublayers]:
            changes[f"{place}.norm"] = partial(change, place)
        if final and ground.config.final_norm and ground.change.layer is None:
            changes[f"{stack.name}.final_norm"] = partial(change, "")
    return (Rewirer(changes),)


def _without_mean(_: str, norm: Any) -> Callable[[Tensor], Tensor]:
    """A layer norm that does not take off the mean; or one that does, of a norm that does not."""
    if not hasattr(norm, "eps"):  # another change has taken it away
        return norm
    plain = bool(getattr(norm, "bias", None) is None and type(norm).__name__ == "RMSNorm")

    def normed(x: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True) if plain else x
        made = x * (x.square().mean(-1, keepdim=True) + norm.eps).rsqrt() * norm.weight
        return made if norm.bias is None else made + norm.bias

    return normed


def _exchanged_norms(ground: Ground) -> tuple[Hook, ...]:
    """The first and the last norm of a layer."""

    def other(place: str, norm: Any) -> Callable[[Tensor], Tensor]:
        stack, layer, sub = place.split(".")
        if sub == "cross_attn" or not hasattr(norm, "size"):
            return norm
        name = f"{stack}.layers.{layer}.{'ffn' if sub == 'self_attn' else 'self_attn'}_residual.norm"
        weight = ground.parameter(f"{name}.weight")
        bias = None if norm.bias is None else ground.parameter(f"{name}.bias")

        def normed(x: Tensor) -> Tensor:
            made = (x - norm.centre(x)) / norm.size(x) * weight
            return made if bias is None else made + bias

        return normed

    return _norms(ground, other, final=False)


def _skipping(ground: Ground, layers: Callable[[int], list[int]]) -> tuple[Hook, ...]:
    """Layers without effect, by a function of their number."""
    names = [
        f"{one.name}.{layer}.{sub}.around"
        for one in ground.stacks
        for layer in layers(one.n_layers)
        for sub in one.sublayers
    ]
    if not names:
        raise InterventionError(say("The chosen part of this model has only one layer."))
    return _rewired(names, partial(replace, skips=True), causal=True)


def _around(ground: Ground, **changes: bool) -> tuple[Hook, ...]:
    return _rewired(ground.change.patterns(ground.config, "*.around"), partial(replace, **changes), causal=True)


def _activation(name: str) -> Made:
    return lambda ground: _rewired(
        ground.change.patterns(ground.config, "ffn.function"), partial(_other, ACTIVATIONS[name]), causal=True
    )


# ------------------------------------------------------------------------------------------------ positions


def _positions(change: Callable[[Tensor], Tensor]) -> Made:
    return lambda ground: _replaced([f"{one.name}.embedding.positions" for one in ground.stacks], change, causal=True)


def _halves(table: Tensor) -> Tensor:
    return torch.cat((table[..., 0::2], table[..., 1::2]), -1)


def _alternating(table: Tensor) -> Tensor:
    half = -(-table.size(-1) // 2)
    found = torch.empty_like(table)
    found[..., 0::2], found[..., 1::2] = table[..., :half], table[..., half:]
    return found


def _first_row(ground: Ground) -> tuple[Hook, ...]:
    names = [f"{one.name}.embedding.moves" for one in ground.stacks]
    return _rewired(names, partial(_other, torch.zeros_like), causal=True)


@dataclass(frozen=True)
class Mistake:
    title: Sentence  # in a menu
    made: Made
    fits: Callable[[ModelConfig], bool] = lambda _: True  # whether it makes sense in a model


def _writes(config: ModelConfig) -> bool:
    return config.n_decoder_layers > 0


def _reads(config: ModelConfig) -> bool:
    return config.n_encoder_layers > 0


def _pads(config: ModelConfig) -> bool:
    return config.pad_id is not None and config.n_encoder_layers > 0


def _both(config: ModelConfig) -> bool:
    return config.n_decoder_layers > 0 and config.n_encoder_layers > 0


def _has_table(config: ModelConfig) -> bool:
    return config.placing.adds == "table"


def _several(config: ModelConfig) -> bool:
    return config.n_heads > 1


def _alike(config: ModelConfig) -> bool:
    return config.n_kv_heads == config.n_heads


def _has_other_table(config: ModelConfig) -> bool:
    """Whether there is a table of the output's shape that the output does not use."""
    own = not (config.tie_output and config.shared_vocab)
    return _writes(config) and own and config.src_vocab_size == config.tgt_vocab_size


MISTAKES: Final[dict[str, Mistake]] = {
    "future": Mistake(
        say("The future is open, and padding is closed"),
        lambda ground: _replaced(ground.names("mask", "decoder"), all_seen),
        _writes,
    ),
    "discarded": Mistake(
        say("Masks are made, but not used"), lambda ground: _replaced(ground.names("mask"), torch.ones_like)
    ),
    "tril": Mistake(say("The encoder has a causal mask"), _weighing(_triangle, "encoder"), _reads),
    "trilcross": Mistake(say("Cross-attention has a causal mask"), _weighing(_triangle, "cross"), _both),
    "padsonly": Mistake(say("The padding mask is inverted"), _padding_inverted, _pads),
    "zerofill": Mistake(
        say("Closed scores are 0"), _weighing(lambda scores, seen: (scores * seen).softmax(-1)), _writes
    ),
    "maskafter": Mistake(
        say("The mask comes after the softmax"), _weighing(lambda scores, seen: scores.softmax(-1) * seen), _writes
    ),
    "maskadded": Mistake(
        say("The mask of ones and zeros is added"),
        _weighing(lambda scores, seen: (scores + seen.to(scores.dtype)).softmax(-1)),
        _writes,
    ),
    "transposed": Mistake(
        say("Queries and keys are exchanged in the product"),
        lambda ground: _rewired(
            ground.names("scoring", "encoder", "decoder"), lambda how: replace(how, similarity=_transposed)
        ),
    ),
    "overqueries": Mistake(say("The softmax runs over the queries"), _weighing(partial(_softmax, dim=-2))),
    "overheads": Mistake(say("The softmax runs over the heads"), _weighing(partial(_softmax, dim=1)), _several),
    "nosoftmax": Mistake(say("No softmax"), _weighing(lambda scores, seen: scores * seen)),
    "onemap": Mistake(
        say("All heads have the mean of their maps"),
        lambda ground: _replaced(ground.names("weights"), _mean_map, causal=True),
        _several,
    ),
    "split": Mistake(
        say("Heads are cut without the transpose"), lambda ground: _replaced(_cut(ground), _view), _several
    ),
    "merged": Mistake(
        say("Heads are joined without the transpose"),
        lambda ground: _replaced(ground.names("heads"), _reshape),
        _several,
    ),
    "bydimension": Mistake(
        say("Each head gets every n-th number"),
        lambda ground: _replaced(_cut(ground), _by_dimension, causal=True),
        _several,
    ),
    "interleaved": Mistake(say("W_Q, W_K and W_V are interleaved head by head"), _fused(_interleaved), _alike),
    "kqv": Mistake(say("W_Q and W_K are exchanged"), _fused(_ordered(1, 0, 2)), _alike),
    "qvk": Mistake(say("W_K and W_V are exchanged"), _fused(_ordered(0, 2, 1)), _alike),
    "vkq": Mistake(say("W_Q and W_V are exchanged"), _fused(_ordered(2, 1, 0)), _alike),
    "qkk": Mistake(say("The values are the keys"), _fused(_ordered(0, 1, 1)), _alike),
    "ontonorm": Mistake(
        say("The residual connection begins after the norm"),
        lambda ground: _around(ground, onto_norm=True),
        lambda config: config.norm == "pre" and config.norm_kind != "none" and not config.parallel_residual,
    ),
    "normorder": Mistake(
        say("The first and the last norm of a layer are exchanged"),
        _exchanged_norms,
        lambda config: config.norm_kind != "none" and config.norm != "both",
    ),
    "nomean": Mistake(
        say("LayerNorm and RMSNorm are taken for each other"),
        lambda ground: _norms(ground, _without_mean, final=True),
        lambda config: config.norm_kind in ("layer", "rms"),
    ),
    "linear": Mistake(say("No non-linearity"), _activation("none"), lambda config: config.activation != "none"),
    **{
        name: Mistake(
            say("The non-linearity is {name}", name=name), _activation(name),
            lambda config, name=name: not config.activation.startswith(name),  # type: ignore[misc]
        )
        for name in ("relu", "gelu", "silu")
    },
    "gate": Mistake(say("The gate and the other map are exchanged"), _gates, lambda config: config.gated),
    "lastlayer": Mistake(
        say("Only the last layer counts"),
        lambda ground: _skipping(ground, lambda n: list(range(n - 1))),
        lambda config: max(config.n_encoder_layers, config.n_decoder_layers) > 1,
    ),
    "nolayers": Mistake(say("No layer is called"), lambda ground: _skipping(ground, lambda n: list(range(n)))),
    "nocross": Mistake(
        say("The output of cross-attention is thrown away"),
        lambda ground: _replaced(ground.names("output", "cross"), torch.zeros_like, causal=True),
        _both,
    ),
    "sourcetable": Mistake(  # or the target's of the same shape, where the output has its own
        say("The output uses the source’s table"),
        lambda ground: (Rewirer({"output_weight": partial(_other, ground.parameter("src_table"))}),),
        _has_other_table,
    ),
    "halves": Mistake(say("Sines first, then cosines"), _positions(_halves), _has_table),
    "alternating": Mistake(say("Sines and cosines alternate"), _positions(_alternating), _has_table),
    "firstrow": Mistake(say("All tokens have the first position"), _first_row, _has_table),
}  # fmt: skip


class Miswiring(LayerChange):
    how: str = choice(
        say("Mistake", about="in code"), {name: one.title for name, one in MISTAKES.items()}, "discarded", target=True
    )

    word = "miswired"
    group = "layers"
    title = say("A mistake in the code")
    about = say(
        "Something that is easily written wrongly, and raises no error: all shapes fit, and the model computes "
        "something else than it was trained for."
    )

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        if not MISTAKES[self.how].fits(config):
            raise InterventionError(
                "{change} makes no sense in this model: it has no such part. Choose another mistake.", change=str(self)
            )

    def told(self) -> str:
        return say("{place}: {mistake}", place=self.name, mistake=MISTAKES[self.how].title)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return MISTAKES[self.how].made(Ground(self, ground.config, ground.parameter))
