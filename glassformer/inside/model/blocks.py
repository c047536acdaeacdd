"""Blocks of the model diagram: labels, roles, shapes, parameter counts, links to pages; equal layers drawn once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from glassformer.charts.diagram import DiagramBlock, DiagramLayer, Kind, Stack, Sublayer
from glassformer.inside.features import ACTIVATIONS, FORMULAS, further, heads
from glassformer.runs.map_axes import SIDE_OF, has_one_stack
from transformer.analysis.costs import TABLE, Holding, Part, buffers, holdings, multiply_adds, said, stand_ins
from transformer.i18n import joined, say
from transformer.model import anatomy as parts
from transformer.model.anatomy import EVERY_PART, StackName, anatomy
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

Grouping = Callable[[int], list[tuple[int, int]]]
"""From a number of layers to the first and last of each group, from 0."""

MOST_DRAWN = 6  # more layers than that are folded
_SUBLAYERS: dict[parts.Sublayer, str] = {
    "self_attn": say("self-attention"),
    "cross_attn": say("cross-attention"),
    "ffn": say("feed-forward"),
}
_COLOURS: dict[parts.Sublayer, Kind] = {"self_attn": "attention", "cross_attn": "cross", "ffn": "linear"}
_INPUTS: dict[StackName, tuple[str, str, str, str]] = {
    "encoder": (say("Source ids"), say("Mask of the encoder"), say("Source embedding"),
                say("Positions of the source")),
    "decoder": (say("Target ids"), say("Mask of the decoder"), say("Target embedding"),
                say("Positions of the target")),
}  # fmt: skip
_PARTS: dict[str, tuple[Part, ...]] = {
    "encoder.self_attn": ("encoder_projections", "encoder_maps"),
    "encoder.ffn": ("encoder_ffn",),
    "decoder.self_attn": ("decoder_projections", "decoder_maps"),
    "decoder.cross_attn": ("cross_projections", "cross_maps"),
    "decoder.ffn": ("decoder_ffn",),
}
_STREAM, _LENS = say("the Residual stream part"), say("the Logit lens part")


# ------------------------------------------------------------------------------------------------ a model and lengths


@dataclass(frozen=True)
class Contents:
    """What a model holds, which no sentence changes."""

    parameters: tuple[tuple[str, int], ...]  # the full name of each tensor, and how many values are learned in it
    held: dict[Part, Holding]  # the parameters of each component
    buffers: dict[str, tuple[int, ...]]  # what is kept that is not learned: the shape of each by its name
    absent: frozenset[str]  # names of tensors that replace parts which the model does not have


# A walk through all modules takes longer than drawing a table, and a page is drawn at every step.
_READ: WeakKeyDictionary[Transformer, Contents] = WeakKeyDictionary()


def contents(model: Transformer) -> Contents:
    """What a model holds, read off it once."""
    found = _READ.get(model)
    if found is None:
        absent = stand_ins(model)
        counts = tuple((name, one.numel()) for name, one in model.named_parameters() if name not in absent)
        _READ[model] = found = Contents(counts, holdings(model), buffers(model), absent)
    return found


@dataclass(frozen=True)
class SizedBlock:
    """A model and the lengths of a sentence."""

    config: ModelConfig  # the features of the model
    parameters: tuple[tuple[str, int], ...]  # the full name of each tensor, and how many values are learned in it
    n_source: int  # tokens on each side
    n_target: int  # tokens on each side
    absent: frozenset[str]  # names of tensors that replace parts which the model does not have

    def held(self, *beginnings: str) -> int:
        """Learned values of all tensors whose names begin so."""
        return sum(count for name, count in self.parameters if name.startswith(beginnings))

    def length(self, stack: StackName) -> int:
        """Tokens that a stack reads."""
        return self.n_source if stack == "encoder" else self.n_target

    def done(self, *components: Part) -> int:
        """Multiply-adds of components in one pass."""
        counts = multiply_adds(self.config, n_source=self.n_source, n_target=self.n_target)
        return sum(counts[component] for component in components)

    def stream(self, stack: StackName) -> str:
        """Shape of a stack's residual stream."""
        return f"[{self.length(stack)}, {self.config.d_model}]"


def sized(model: Transformer, *, n_source: int, n_target: int) -> SizedBlock:
    """What the blocks are made from; lengths count tokens."""
    found = contents(model)
    return SizedBlock(model.config, found.parameters, n_source, n_target, found.absent)


def stacks(one: SizedBlock, *, grouping: Grouping) -> tuple[Stack, ...]:
    """The stacks of a model as the diagram draws them: with `each_layer`, `few_layers` or `one_layer`."""
    return tuple(
        Stack(
            SIDE_OF[stack.name],
            one.config.norm != "post",
            *_inputs(one, stack.name),
            tuple(_layer(one, stack, *group) for group in grouping(stack.n_layers)),
            tuple(_end_of(one, stack.name)),
        )
        for stack in anatomy(one.config).stacks
    )


def each_layer(n_layers: int) -> list[tuple[int, int]]:
    """Every layer for itself."""
    return [(layer, layer) for layer in range(n_layers)]


def few_layers(n_layers: int) -> list[tuple[int, int]]:
    """Every layer for itself; above `MOST_DRAWN` layers those between the first and the last are drawn once."""
    if n_layers <= MOST_DRAWN:
        return each_layer(n_layers)
    return [(0, 0), (1, n_layers - 2), (n_layers - 1, n_layers - 1)]


def one_layer(n_layers: int) -> list[tuple[int, int]]:
    """All layers drawn once."""
    return [(0, n_layers - 1)]


def blocks_of(stack: Stack) -> Iterator[DiagramBlock]:
    """Every block of a stack, from the bottom up."""
    yield from (stack.ids, stack.mask, stack.embedding, *([stack.positions] if stack.positions else []))
    for layer in stack.layers:
        for sublayer in layer.sublayers:
            yield from (sublayer.norm, sublayer.block, sublayer.plus)
    yield from stack.end


def _inputs(one: SizedBlock, stack: StackName) -> tuple[DiagramBlock, DiagramBlock, DiagramBlock, DiagramBlock | None]:
    n, (ids, mask, embedding, positions) = one.length(stack), _INPUTS[stack]
    return (
        DiagramBlock(place=f"{stack}.ids", text=say("Ids [{n}]", n=n), name=ids, shape=f"[{n}]", kind="edge",
              role=say("Each token's id: its number in the vocabulary."), leads_to=say("the Embeddings part")),
        DiagramBlock(place=f"{stack}.mask", text=say("Mask"), name=mask, role=_mask_role(one, stack), kind="edge",
              shape=say("[{n}, {n}], the same for all heads", n=n) if any(one.config.windows)
              else say("[{n}, {n}], the same for all heads and layers", n=n), leads_to=say("the Masks page")),
        _embedding(one, stack, embedding),
        _positions(one, stack, positions),
    )  # fmt: skip


def _positions(one: SizedBlock, stack: StackName, name: str) -> DiagramBlock | None:
    if one.config.placing.adds != "table":
        return None
    text, role = say("Positions, learned"), say("A learned table. Each position's vector is added to the embedding.")
    if one.config.positions == "sinusoidal":
        text = say("Positions, {formula}", formula=FORMULAS["interleaved"])
        role = say("A fixed formula, not learned. Each position's vector is added to the embedding.")
    parameters = one.held(f"{stack}.embedding.positions.")
    return DiagramBlock(place=f"{stack}.positions", name=name, shape=one.stream(stack), kind="table", text=text,
                 role=role, parameters=parameters, leads_to=say("the Positions page"))  # fmt: skip


def _mask_role(one: SizedBlock, stack: StackName) -> str:
    has = anatomy(one.config)
    if any(attention.causal for attention in has.attentions if attention.stack == stack):
        return say("No token attends to padding or to a later token.")
    said = [say("No token attends to padding.")]
    if any(attention.stack != stack and attention.keys_from == stack for attention in has.attentions):
        said += [say("Cross-attention in the decoder uses the source's mask.")]
    return joined(" ", said)


def _embedding(one: SizedBlock, stack: StackName, name: str) -> DiagramBlock:
    c, first = one.config, stack == anatomy(one.config).stacks[0].name
    rows = c.src_vocab_size if first else c.tgt_vocab_size
    role = say("Looks up each token's row in a table and passes it on without scaling it.")
    if c.scale_embedding:
        role = say("Looks up each token's row in a table and multiplies it by √{width}.", width=c.d_model)
    if c.shared_vocab and not first:
        role = joined(" ", [role, say("Uses the source's table; the table's parameters are counted with the source.")])
    text = say("Embedding {rows:,} × {width}", rows=rows, width=c.d_model)
    if absent := said(one.absent, TABLE):
        text, role = say("Unit vectors {rows:,} × {width} *", rows=rows, width=c.d_model), joined(" ", [role, *absent])
    beside = f"{stack}.embedding.norm.", f"{stack}.embedding.types."
    if one.held(*beside):
        more = say("This count includes embedding parameters that the diagram leaves out (token types, norm).")
        role = joined(" ", [role, more])
    return DiagramBlock(
        place=f"{stack}.embedding", text=text, name=name,
        role=role, shape=f"[{one.length(stack)}] → {one.stream(stack)}", kind="table", multiply_adds=0,
        parameters=one.held("src_table" if first else "tgt_table", *beside),
        leads_to=say("the Sentence part of the Positions page"),
    )  # fmt: skip


def _layer(one: SizedBlock, stack: parts.Stack, first: int, last: int) -> DiagramLayer:
    count, start, end, encoder = last - first + 1, first + 1, last + 1, stack.name == "encoder"
    name = say("Layer {n}", n=start)
    whose = say("Encoder layer {n}", n=start) if encoder else say("Decoder layer {n}", n=start)
    if count > 1:
        name = say("Layers {first} to {last}, × {count}", first=start, last=end, count=count)
        whose = say("Decoder layers {first} to {last}, × {count}", first=start, last=end, count=count)
        if encoder:
            whose = say("Encoder layers {first} to {last}, × {count}", first=start, last=end, count=count)
    sublayers = (_sublayer(one, stack, first, sub, whose, each=count > 1) for sub in stack.sublayers)
    return DiagramLayer(name, tuple(sublayers))


def _sublayer(
    one: SizedBlock, stack: parts.Stack, layer: int, sub: parts.Sublayer, called: str, *, each: bool
) -> Sublayer:
    place, beginning, part = f"{stack.name}.{layer}.{sub}", f"{stack.name}.layers.{layer}.{sub}", _SUBLAYERS[sub]
    text, role, shape = _feed_forward(one, stack.name) if sub == "ffn" else _attention(one, stack.name, sub)
    if absent := said(one.absent, f"{beginning}."):
        text, role = say("{block} *", block=text), joined(" ", [role, *absent])
    block = DiagramBlock(
        place=place, text=text, role=role, shape=shape, parameters=one.held(f"{beginning}."),
        name=say("{layers}: {part} each", layers=called, part=part) if each
        else say("{layer}: {part}", layer=called, part=part),
        multiply_adds=one.done(*_PARTS[f"{stack.name}.{sub}"]) // stack.n_layers, kind=_COLOURS[sub],
        leads_to=say("the Feed-forward part") if sub == "ffn" else say("the Attention page"),
    )  # fmt: skip
    norm = DiagramBlock(
        place=f"{place}.norm", text=say("norm"), shape=one.stream(stack.name), kind="norm", leads_to=_STREAM,
        name=say("{layers}: {part}, one norm per layer", layers=called, part=part) if each
        else say("{layer}: {part}, norm", layer=called, part=part),
        role=_norm_role(one.config), parameters=one.held(f"{beginning}_residual."),
    )  # fmt: skip
    plus = DiagramBlock(
        place=f"{place}.plus", text="+", name=say("{layer}: {part}, residual sum", layer=called, part=part),
        shape=one.stream(stack.name), kind="edge", role=say("Adds the sub-layer's output to the stream."),
        leads_to=_STREAM,
    )  # fmt: skip
    return Sublayer(block, norm, plus)


def _norm_role(config: ModelConfig) -> str:
    if config.norm == "both":
        return say("Normalises the sub-layer's input; a second norm is applied to the sub-layer's output.")
    if config.norm_kind == "none":
        return say("This model has no norms; the vector passes through unchanged.")
    where = say("Normalises the sum of the stream and the sub-layer's output (post-norm).")
    if config.norm == "pre":
        where = say("Normalises the sub-layer's input (pre-norm).")
    if config.norm_kind != "layer":
        return joined(" ", [where, *islice(further(config), 1)])
    how = say("Layer norm: brings each vector to mean 0 and variance 1, then scales it.")
    if config.biases.norms:
        how = say("Layer norm: brings each vector to mean 0 and variance 1, then scales and shifts it.")
    return joined(" ", [where, how])


def _attention(one: SizedBlock, stack: StackName, sub: parts.Sublayer) -> tuple[str, str, str]:
    """What is written in the block, its role and its shape."""
    c, queries = one.config.of(stack), one.length(stack)
    attention = next(found for found in EVERY_PART.attentions if (found.stack, found.sublayer) == (stack, sub))
    role = {
        "encoder": say("Every source token reads from all source tokens, with {heads}.", heads=heads(c)),
        "decoder": say("Every target token reads from itself and the tokens before it, with {heads}.", heads=heads(c)),
        "cross": say("Every target token reads from the encoder's output, with {heads}.", heads=heads(c)),
    }[attention.kind]
    if c.placing.in_attention and attention.keys_from == stack:
        role = joined(" ", [role, c.placing.in_attention])
    text, stream = _attention_text(c, within=attention.keys_from == stack), one.stream(stack)
    maps = f"[{c.n_heads}, {queries}, {one.length(attention.keys_from)}]"
    return text, role, say("{before} → maps {maps} → {after}", before=stream, maps=maps, after=stream)


def _attention_text(config: ModelConfig, *, within: bool) -> str:
    """The block's label: how many heads of which width, and how many key-value heads if those are fewer."""
    n, width, shared = config.n_heads, config.d_head, config.n_kv_heads
    if shared < n:
        if within:
            return say("Self-attention {n} × {width}\nKV heads: {shared}", n=n, width=width, shared=shared)
        return say("Cross-attention {n} × {width}\nKV heads: {shared}", n=n, width=width, shared=shared)
    if within:
        return say("Self-attention {n} × {width}", n=n, width=width)
    return say("Cross-attention {n} × {width}", n=n, width=width)


def _feed_forward(one: SizedBlock, stack: StackName) -> tuple[str, str, str]:
    c, n = one.config.of(stack), one.length(stack)
    function = ACTIVATIONS[c.activation]
    role = say(
        "Handles each token separately: widens its vector to d_ff = {d_ff:,} numbers, applies {function} and "
        "narrows it again.",
        d_ff=c.d_ff,
        function=function,
    )
    if c.activation == "none":
        role = say("Handles each token separately, with linear maps and no activation function.")
    if c.gated:
        role = say(
            "Handles each token separately. Two linear maps each widen its vector to d_ff = {d_ff:,} numbers. The "
            "first result passes through {function} and is multiplied by the second; the product is narrowed again.",
            d_ff=c.d_ff,
            function=function,
        )
    shape = f"{one.stream(stack)} → [{n}, {c.d_ff}] → {one.stream(stack)}"
    return say("Feed-forward {d_ff:,}", d_ff=c.d_ff), role, shape


def _end_of(one: SizedBlock, stack: StackName) -> list[DiagramBlock]:
    """What follows the layers of a stack."""
    norm = []
    if one.config.final_norm:
        names = {"encoder": say("Final norm of the encoder"), "decoder": say("Final norm of the decoder")}
        norm.append(DiagramBlock(
            place=f"{stack}.final_norm", text=say("final norm"), name=names[stack], kind="norm",
            role=say("One more norm after the last layer."), shape=one.stream(stack),
            parameters=one.held(f"{stack}.final_norm."), leads_to=_STREAM,
        ))  # fmt: skip
    if stack == "encoder" and not anatomy(one.config).fills:
        return [*norm, _memory(one)]
    head = [_mlm_head(one)] if stack == "encoder" else []
    return [*norm, *head, _output(one, stack), _logits(one, stack)]


def _memory(one: SizedBlock) -> DiagramBlock:
    shape = one.stream("encoder")
    text, name = say("Memory {shape}", shape=shape), say("Memory: the encoder's output")
    role = say(
        "One vector per source token. Every cross-attention sub-layer computes its keys and values from these vectors."
    )
    if has_one_stack(one.config):
        text, name = say("Output {shape}", shape=shape), say("The encoder's output")
        role = say("One vector per source token. This model is encoder-only, so these vectors are its final output.")
    return DiagramBlock(
        place="encoder.memory", text=text, name=name, role=role, shape=shape, leads_to=_STREAM, kind="edge"
    )


def _mlm_head(one: SizedBlock) -> DiagramBlock:
    c, shape = one.config, one.stream("encoder")
    return DiagramBlock(
        place="encoder.mlm_head",
        text=say("MLM head: {function} and norm", function=ACTIVATIONS[c.mlm_activation]),
        name=say("MLM head: predicts masked tokens"),
        kind="linear",
        shape=f"{shape} → {shape}",
        role=say("A dense layer, a non-linear function and a norm, applied to each token separately."),
        leads_to=_STREAM,
        parameters=one.held("mlm_head."),
        multiply_adds=one.n_source * c.d_model**2,
    )


def _output(one: SizedBlock, stack: StackName) -> DiagramBlock:
    c, n = one.config, one.length(stack)
    role: str = say("Has its own table: compares each vector with every row.")
    if c.tie_output:
        role = say("Uses the target embedding's table: compares each vector with every row.")
    if c.output_bias:
        role = joined(" ", [role, say("A bias is added.")])
    return DiagramBlock(
        place=f"{stack}.output", name=say("Output layer"), role=role, kind="table",
        text=say("Output {width} → {n:,}", width=c.d_model, n=c.tgt_vocab_size),
        shape=f"{one.stream(stack)} → [{n}, {c.tgt_vocab_size}]",
        parameters=one.held("output_"), multiply_adds=n * c.d_model * c.tgt_vocab_size, leads_to=_LENS,
    )  # fmt: skip


def _logits(one: SizedBlock, stack: StackName) -> DiagramBlock:
    shape = f"[{one.length(stack)}, {one.config.tgt_vocab_size:,}]"
    role = say(
        "Gives every token of the vocabulary a score at each token; softmax turns the scores into probabilities."
    )
    return DiagramBlock(
        place=f"{stack}.logits", text=say("Logits {shape}", shape=shape), name=say("Logits"), shape=shape,
        kind="edge", role=role, leads_to=_LENS,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------ where they lead


@dataclass(frozen=True)
class Destination:
    """Where a block leads."""

    page: str | None  # name of another page in an address; None for a part of this one
    fields: dict[str, object] = field(default_factory=dict)  # what is looked at there, by the names of fields


def destination(place: str) -> Destination:
    """Where a block leads, by its place, such as `encoder.0.self_attn`."""
    stack = next(stack.name for stack in EVERY_PART.stacks if place.startswith(f"{stack.name}."))
    side: dict[str, object] = {"side": SIDE_OF[stack]}
    match place.split(".")[1:]:
        case [layer, *rest] if layer.isdigit():
            return _in_layer(stack, int(layer), rest, side)
        case ["mask"]:
            wanted = {"encoder": "source", "decoder": "decoder"}[stack]
            return Destination("masks", {"mask": wanted, "masks_panel": "masks"})
        case ["embedding"]:
            return Destination("positions", side | {"positions_panel": "sentence"})
        case ["positions"]:
            return Destination("positions", side | {"positions_panel": "table"})
        case ["ids"]:
            return Destination(None, side | {"inside_panel": "pieces"})
        case ["final_norm" | "memory" | "mlm_head"]:
            return Destination(None, side | {"inside_panel": "stream"})
    return Destination(None, {"inside_panel": "lens"})


def _in_layer(stack: StackName, layer: int, rest: list[str], side: dict[str, object]) -> Destination:
    found = [one for one in EVERY_PART.attentions if one.place(layer) == f"{stack}.{layer}.{rest[0]}"]
    where: dict[str, object] = {"kind": found[0].kind if found else stack, "layer": layer}
    if len(rest) > 1:
        return Destination(None, side | where | {"inside_panel": "stream"})
    if not found:
        return Destination(None, side | where | {"inside_panel": "ffn"})
    return Destination("attention", where | {"head": None, "panel": "overview"})
