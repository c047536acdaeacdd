"""The blocks of the loaded model: what its diagram draws, what is said of each, and which view a block leads to.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from charts.diagram_blocks import Block, Layer, Stack, Sublayer
from transformer.analysis.costs import Part, multiply_adds
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from ui.runs.sides import SIDE_OF, StackName

Grouping = Callable[[int], list[tuple[int, int]]]
"""From a number of layers to the first and last of each group, from 0."""

MOST_DRAWN = 6  # more layers than that are folded
PAGES = {"attention": "pages/explore/attention.py", "positions": "pages/explore/positions.py",
         "masks": "pages/explore/masks.py"}  # fmt: skip
ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU"}
_NAMES = {"self_attn": "self-attention", "cross_attn": "cross-attention", "ffn": "feed-forward"}
_PARTS: dict[str, tuple[Part, ...]] = {
    "encoder.self_attn": ("encoder_projections", "encoder_maps"),
    "encoder.ffn": ("encoder_ffn",),
    "decoder.self_attn": ("decoder_projections", "decoder_maps"),
    "decoder.cross_attn": ("cross_projections", "cross_maps"),
    "decoder.ffn": ("decoder_ffn",),
}


@dataclass(frozen=True)
class Destination:
    """Where a block leads.

    Attributes:
        page: Script of another page; None for a part of this one.
        fields: What is looked at there, by the names of `View`.
    """

    page: str | None
    fields: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Sized:
    """A model and the lengths of a sentence.

    Attributes:
        config: The features of the model.
        parameters: Learned values by the full name of the tensor.
        n_source, n_target: Tokens on each side.
    """

    config: ModelConfig
    parameters: dict[str, int]
    n_source: int
    n_target: int

    def held(self, *beginnings: str) -> int:
        """Learned values of all tensors whose names begin so."""
        return sum(count for name, count in self.parameters.items() if name.startswith(beginnings))

    def length(self, stack: str) -> int:
        """Tokens of the side that a stack reads."""
        return self.n_source if stack == "encoder" else self.n_target

    def stream(self, stack: str) -> str:
        """Shape of a stack's residual stream."""
        return f"[{self.length(stack)}, {self.config.d_model}]"


def sized(model: Transformer, *, n_source: int, n_target: int) -> Sized:
    """What the blocks are made from; lengths count tokens."""
    counts = {name: tensor.numel() for name, tensor in model.named_parameters()}
    return Sized(model.config, counts, n_source, n_target)


def stacks(one: Sized, *, grouping: Grouping) -> tuple[Stack, Stack]:
    """Encoder and decoder as the diagram draws them.

    Args:
        one: The model and the lengths.
        grouping: Which layers are drawn as one: `each_layer`, `few_layers` or `one_layer`.
    """
    config = one.config
    final = [(stack, _final_norm(one, stack)) for stack in SIDE_OF if config.final_norm]
    end = {"encoder": [_memory(one)], "decoder": [_output(one), _logits(one)]}
    for stack, block in final:
        end[stack].insert(0, block)
    made = [
        Stack(
            side,
            config.norm == "pre",
            *_inputs(one, stack),
            tuple(_layer(one, stack, *group) for group in grouping(_n_layers(config, stack))),
            tuple(end[stack]),
        )
        for stack, side in SIDE_OF.items()
    ]
    return made[0], made[1]


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


def blocks_of(stack: Stack) -> Iterator[Block]:
    """Every block of a stack, from the bottom up."""
    yield from (stack.ids, stack.mask, stack.embedding, stack.positions)
    for layer in stack.layers:
        for sublayer in layer.sublayers:
            yield from (sublayer.norm, sublayer.block, sublayer.plus)
    yield from stack.end


def destination(place: str) -> Destination:
    """Where a block leads.

    Args:
        place: A block's place, such as `encoder.0.self_attn`.
    """
    stack, *rest = place.split(".")
    side: dict[str, object] = {"side": "source" if stack == "encoder" else "target"}
    if len(rest) >= 2 and rest[0].isdigit():
        return _in_layer(stack, int(rest[0]), rest[1:], side)
    match rest:
        case ["mask"]:
            wanted = "source" if stack == "encoder" else "decoder"
            return Destination(PAGES["masks"], {"mask": wanted, "masks_panel": "masks"})
        case ["embedding"]:
            return Destination(PAGES["positions"], side | {"positions_panel": "sentence"})
        case ["positions"]:
            return Destination(PAGES["positions"], side | {"positions_panel": "table"})
        case ["ids"]:
            return Destination(None, side | {"inside_panel": "pieces"})
        case ["final_norm" | "memory"]:
            return Destination(None, side | {"inside_panel": "stream"})
    return Destination(None, {"inside_panel": "lens"})


def _in_layer(stack: str, layer: int, rest: list[str], side: dict[str, object]) -> Destination:
    kind = "cross" if rest[0] == "cross_attn" else stack
    where: dict[str, object] = {"kind": kind, "layer": layer}
    if len(rest) > 1:
        return Destination(None, side | where | {"inside_panel": "stream"})
    if rest[0] == "ffn":
        return Destination(None, side | where | {"inside_panel": "ffn"})
    return Destination(PAGES["attention"], where | {"head": None, "panel": "overview"})


# ------------------------------------------------------------------------------------------------ blocks


def _n_layers(config: ModelConfig, stack: str) -> int:
    return config.n_encoder_layers if stack == "encoder" else config.n_decoder_layers


def _inputs(one: Sized, stack: StackName) -> tuple[Block, Block, Block, Block]:
    c, side, n = one.config, SIDE_OF[stack], one.length(stack)
    table = "src_table" if stack == "encoder" else "tgt_table"
    rows = c.src_vocab_size if stack == "encoder" else c.tgt_vocab_size
    who = "Source" if stack == "encoder" else "Target"
    scaled = f", times √{c.d_model}" if c.scale_embedding else ", as it is"
    shared = " The same table as the source's; its parameters count there." if c.shared_vocab else ""
    mask = "No token attends to padding" + ("." if stack == "encoder" else ", and none to a token that comes later.")
    formula = "A formula, nothing to learn" if c.positions == "sinusoidal" else "A learned table"
    also = " Cross-attention in the decoder has the source's mask." if stack == "encoder" else ""
    return (
        Block(place=f"{stack}.ids", text=f"Ids [{n}]", name=f"{who} ids", shape=f"[{n}]", kind="edge",
              role="The number of each piece in the vocabulary.", leads_to="the part Embeddings"),
        Block(place=f"{stack}.mask", text="Mask", name=f"Mask of the {stack}", role=mask + also,
              shape=f"[{n}, {n}], the same for all heads and layers", leads_to="the Masks page", kind="edge"),
        Block(place=f"{stack}.embedding", text=f"Embedding {rows:,} × {c.d_model}", name=f"{who} embedding",
              role=f"The row of each token in a table{scaled}.{shared if stack == 'decoder' else ''}",
              shape=f"[{n}] → {one.stream(stack)}", parameters=one.held(table), multiply_adds=0, kind="table",
              leads_to="the Positions page, this sentence"),
        Block(place=f"{stack}.positions",
              text="Positions, sinusoids" if c.positions == "sinusoidal" else "Positions, learned",
              name=f"Positions of the {side}", role=f"{formula}: the vector of each position is added.",
              shape=one.stream(stack), parameters=one.held(f"{stack}.embedding.positions."), kind="table",
              leads_to="the Positions page"),
    )  # fmt: skip


def _layer(one: Sized, stack: str, first: int, last: int) -> Layer:
    count = last - first + 1
    name = f"Layer {first + 1}" if count == 1 else f"Layers {first + 1} to {last + 1}, × {count}"
    called = f"{stack} {name[0].lower()}{name[1:]}"
    names = ("self_attn", "ffn") if stack == "encoder" else ("self_attn", "cross_attn", "ffn")
    each = " each" if count > 1 else ""
    return Layer(name, tuple(_sublayer(one, stack, first, sub, called=called, each=each) for sub in names))


def _sublayer(one: Sized, stack: str, layer: int, sub: str, *, called: str, each: str) -> Sublayer:
    place, beginning = f"{stack}.{layer}.{sub}", f"{stack}.layers.{layer}.{sub}"
    c, name = one.config, f"{called[:1].upper()}{called[1:]}: {_NAMES[sub]}"
    text, role, shape = _feed_forward(one, stack) if sub == "ffn" else _attention(one, stack, sub)
    done = multiply_adds(c, n_source=one.n_source, n_target=one.n_target)
    count = sum(done[part] for part in _PARTS[f"{stack}.{sub}"]) // _n_layers(c, stack)
    block = Block(
        place=place, text=text, name=name + each, role=role, shape=shape, parameters=one.held(f"{beginning}."),
        multiply_adds=count, kind="linear" if sub == "ffn" else "cross" if sub == "cross_attn" else "attention",
        leads_to="the part Feed-forward" if sub == "ffn" else "the Attention page",
    )  # fmt: skip
    where = "what the sub-layer reads" if c.norm == "pre" else "the sum of stream and output"
    norm = Block(
        place=f"{place}.norm", text="norm", name=f"{name}, norm{each}", shape=one.stream(stack), kind="norm",
        role=f"Layer norm of {where} ({c.norm}-norm): mean 0 and variance 1, then scaled"
        f"{' and shifted' if c.bias else ''}.",
        parameters=one.held(f"{beginning}_residual.norm."), leads_to="the part Residual stream",
    )  # fmt: skip
    plus = Block(
        place=f"{place}.plus", text="+", name=f"{name}, residual sum", shape=one.stream(stack), kind="edge",
        role="Adds what the sub-layer made to the stream.", leads_to="the part Residual stream",
    )  # fmt: skip
    return Sublayer(block, norm, plus)


def _attention(one: Sized, stack: str, sub: str) -> tuple[str, str, str]:
    c, queries = one.config, one.length(stack)
    n_keys = one.n_source if sub == "cross_attn" else queries
    who = {
        "encoder.self_attn": "Every source token reads from all source tokens",
        "decoder.self_attn": "Every target token reads from itself and those before it",
        "decoder.cross_attn": "Every target token reads from the encoder's output",
    }[f"{stack}.{sub}"]
    name = "Self-attention" if sub == "self_attn" else "Cross-attention"
    heads = f"{c.n_heads} head{'s' * (c.n_heads > 1)} of width {c.d_head}"
    shape = f"{one.stream(stack)} → maps [{c.n_heads}, {queries}, {n_keys}] → {one.stream(stack)}"
    return f"{name} {c.n_heads} × {c.d_head}", f"{who}, with {heads}.", shape


def _feed_forward(one: Sized, stack: str) -> tuple[str, str, str]:
    c, n = one.config, one.length(stack)
    role = f"Each token by itself: up to d_ff = {c.d_ff:,} values, {ACTIVATIONS[c.activation]}, and down again."
    shape = f"{one.stream(stack)} → [{n}, {c.d_ff}] → {one.stream(stack)}"
    return f"Feed-forward {c.d_ff:,}", role, shape


def _final_norm(one: Sized, stack: str) -> Block:
    return Block(
        place=f"{stack}.final_norm", text="final norm", name=f"Final norm of the {stack}", kind="norm",
        role="One more layer norm after the last layer.", shape=one.stream(stack),
        parameters=one.held(f"{stack}.final_norm."), leads_to="the part Residual stream",
    )  # fmt: skip


def _memory(one: Sized) -> Block:
    return Block(
        place="encoder.memory", text=f"Memory {one.stream('encoder')}", name="Memory: the encoder's output",
        role="One vector a source token; every cross-attention makes its keys and values from it.",
        shape=one.stream("encoder"), leads_to="the part Residual stream", kind="edge",
    )  # fmt: skip


def _output(one: Sized) -> Block:
    c = one.config
    done = multiply_adds(c, n_source=one.n_source, n_target=one.n_target)
    tied = "the target embedding's table, so no parameters of its own" if c.tie_output else "a table of its own"
    bias = ", with a bias" if c.output_bias else ""
    return Block(
        place="decoder.output", text=f"Output {c.d_model} → {c.tgt_vocab_size:,}", name="Output layer",
        role=f"Compares each vector with every row of {tied}{bias}.",
        shape=f"{one.stream('decoder')} → [{one.n_target}, {c.tgt_vocab_size}]", kind="table",
        parameters=one.held("output_"), multiply_adds=done["output"], leads_to="the part Logit lens",
    )  # fmt: skip


def _logits(one: Sized) -> Block:
    shape = f"[{one.n_target}, {one.config.tgt_vocab_size:,}]"
    return Block(
        place="decoder.logits", text=f"Logits {shape}", name="Logits", shape=shape, kind="edge",
        role="A score of every piece of the target vocabulary after each token; softmax makes them probabilities.",
        leads_to="the part Logit lens",
    )  # fmt: skip
