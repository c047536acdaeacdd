"""Table of tensor shapes from ids to logits, as recorded in one forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from glassformer.inside import token_selection
from glassformer.inside.features import ACTIVATIONS, heads
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.map_axes import STACK_NAMES, STACKS
from glassformer.runs.open_run import OpenRun
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st, table
from glassformer.state.view import Side
from transformer.analysis.costs import TABLE as UNITS
from transformer.analysis.costs import Pass, Shape, said, shapes_of, stand_ins
from transformer.i18n import joined, say
from transformer.model.anatomy import StackName, Sublayer, anatomy
from transformer.model.attention_scores import plain_scores
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

TABLE = "shapes"
_KEPT: Final = 32  # passes whose tables are kept: a step shows the same one
_COLUMNS: Final = {say("Component"): 112, say("Step", about="a computation"): 180, say("Shape"): 96,
                  say("Remark"): 240, say("Name in the code"): None}  # fmt: skip
_STACKS: Final[dict[Side, str]] = {"source": say("Encoder"), "target": say("Decoder")}
_NAMES: Final[dict[Sublayer, str]] = {
    "self_attn": say("Self-attention"),
    "cross_attn": say("Cross-attention"),
    "ffn": say("Feed-forward"),
}


@dataclass(frozen=True)
class ShapeStep:
    """One line of the table."""

    where: str  # the component
    what: str  # what was computed
    site: str  # its name in `transformer.model.sites.SITES`; empty for a re-arrangement, which the model does not name
    shape: Shape  # as recorded, without the batch axis
    remark: str = ""  # why it is so


def draw(run: OpenRun) -> None:
    """Draw the table of the encoder or of the decoder: side by side they have no room for the remarks."""
    trace, read = run.trace, run.trace.read_ids[: run.visible.n_rows]
    seen = attempt(lambda: recorded(run.checkpoint, trace.src_ids, read))
    if seen is None:
        return
    parts = anatomy(run.checkpoint.config)
    tokens = [token_selection.in_words(seen.src_ids[1], "source")] * parts.reads
    tokens += [token_selection.in_words(seen.tgt_ids[1], "target")] * parts.writes
    said = [say("These shapes were recorded in one pass over this sentence: {tokens}.", tokens=joined(", ", tokens))]
    if run.view.guess:
        said += [say("Everything after the current step is left out.")]
    said += [say("The batch axis (size {size}) is left out.", size=seen.src_ids[0])]
    st.caption(drawing.plain(joined(" ", said)))
    sides = token_selection.sides_of(run.checkpoint.config)
    kept, options = controls.field(run.slot, "side"), {side: _STACKS[side] for side in sides}
    _table(run, seen, STACKS[controls.choose(kept, say("Stack"), options, bare=True)])


def _table(run: OpenRun, seen: Pass, stack: StackName) -> None:
    config = run.checkpoint.config
    n_layers = anatomy(config).stack(stack).n_layers
    if len(equal_layers(seen, stack, n_layers)) == 1 < n_layers:
        st.caption(say("All {n} layers have these shapes.", n=n_layers))
    st.container(key=run.key(f"{TABLE}_{stack}")).dataframe(
        table(_cells(seen, config, stack, stand_ins(run.checkpoint.model))),
        hide_index=True,
        height="content",
        row_height=29,
        column_config={name: st.column_config.TextColumn(width=width) for name, width in _COLUMNS.items()},
        alt=say("Shapes in the {stack}, step by step.", stack=STACK_NAMES[stack]),
    )


def recorded(checkpoint: Checkpoint, src_ids: tuple[int, ...], tgt_ids: tuple[int, ...]) -> Pass:
    """Shapes of one pass, run in the queue."""
    return loading.runner().compute(
        ("shapes", checkpoint.content_hash, src_ids, tgt_ids),
        lambda: shapes_of(checkpoint.model, src_ids, tgt_ids),
        nbytes=lambda seen: 200 * len(seen.sites),
    )


def steps_of(seen: Pass, config: ModelConfig, stack: StackName) -> list[ShapeStep]:
    """The lines of one stack; layers whose shapes are equal are written once."""
    parts = anatomy(config)
    writes = parts.writes and stack == parts.stacks[-1].name
    ids = seen.tgt_ids if writes else seen.src_ids
    rows = config.tgt_vocab_size if writes and not config.shared_vocab else config.src_vocab_size
    start, table = say("Start"), f"{stack}.embedding"
    steps = [
        ShapeStep(start, say("Ids"), "", ids[1:]),
        ShapeStep(start, say("Rows of the table"), f"{table}.tokens", (), say("a table of {n:,} rows", n=rows)),
        ShapeStep(start, say("Position vectors"), f"{table}.positions", (), say("the same for every sentence")),
    ]
    if f"{table}.types" in seen.sites:
        steps.append(
            ShapeStep(start, say("Vectors of the token types"), f"{table}.types", (), say("all of the first type"))
        )
    if config.embedding_norm:
        steps += [ShapeStep(start, say("Their sum"), f"{table}.sum", ()),
                  ShapeStep(start, say("After a norm: the stream"), f"{table}.output", ())]  # fmt: skip
    else:
        placed = f"{table}.positions" in seen.sites
        stream = say("Their sum: the stream") if placed else say("The stream")
        steps.append(ShapeStep(start, stream, f"{table}.output", ()))
    for layers in equal_layers(seen, stack, parts.stack(stack).n_layers):
        steps += _layer(seen, config, stack, layers)
    last = say("Final norm") if config.final_norm else say("Last layer's output")
    is_memory = parts.writes and not writes
    steps.append(
        ShapeStep(say("End"), say("{last}: the memory", last=last) if is_memory else last, f"{stack}.output", ())
    )
    if parts.fills:
        steps += _mlm_head(config)
    if writes or parts.fills:
        each = say("one score for each of {n:,} tokens", n=config.tgt_vocab_size)
        steps.append(ShapeStep(say("End"), say("Logits"), "logits", (), each))
    return [_with_shape(step, seen) for step in steps if not step.site or step.site in seen.sites]


@lru_cache(maxsize=_KEPT)
def equal_layers(seen: Pass, stack: str, n_layers: int) -> list[range]:
    """Neighbouring layers in which every site had the same shape."""
    tables = []
    for layer in range(n_layers):
        start = f"{stack}.{layer}."
        tables.append({site[len(start) :]: shape for site, shape in seen.sites.items() if site.startswith(start)})
    starts = [layer for layer in range(n_layers) if layer == 0 or tables[layer] != tables[layer - 1]]
    return [range(first, last) for first, last in zip(starts, [*starts[1:], n_layers], strict=True)]


def _layer(seen: Pass, config: ModelConfig, stack: StackName, layers: range) -> list[ShapeStep]:
    start, parts = f"{stack}.{layers[0]}", anatomy(config).stack(stack)
    which = None if len(layers) == parts.n_layers else layers  # what stands above the table says that all are alike
    steps = []
    for sub in parts.sublayers:
        where, place = _of_layers(_NAMES[sub], which), f"{start}.{sub}"
        inner = _feed_forward(where, place, config) if sub == "ffn" else _attention(seen, where, place, config)
        norm = ShapeStep(where, say("Norm"), f"{place}.norm", ())
        if config.norm == "both":
            inner.append(ShapeStep(where, say("Norm of the output"), f"{place}.output_norm", ()))
        inner.append(ShapeStep(where, say("Stream + output"), f"{place}.residual", ()))
        steps += [*inner, norm] if config.norm == "post" else [norm, *inner]
    where = _of_layers(say("Layer"), which)
    return [*steps, ShapeStep(where, say("Stream after it"), f"{start}.output", ())]


def _of_layers(name: str, layers: range | None) -> str:
    """A component, and of which layers it is unless it is of all."""
    if layers is None:
        return name
    if len(layers) == 1:
        return say("{component} {layer}", component=name, layer=layers[0] + 1)
    return say("{component} {first} to {last}", component=name, first=layers[0] + 1, last=layers[-1] + 1)


def _attention(seen: Pass, where: str, place: str, config: ModelConfig) -> list[ShapeStep]:
    """What an attention computes; two re-arrangements have no name in the model."""
    config = config.of("encoder" if place.startswith("encoder") else "decoder")
    _, n_heads, length, d_head = seen.sites[f"{place}.queries"]
    cut, row = (length, n_heads, d_head), (length, n_heads * d_head)  # before the heads' axis moves to the front
    return [
        ShapeStep(where, say("Queries, cut into heads"), "", cut, say("a view: nothing is copied")),
        ShapeStep(where, say("Queries before norm and rotation"), f"{place}.projected_queries", ()),
        ShapeStep(where, say("Queries, heads first"), f"{place}.queries", (), heads(config)),
        ShapeStep(where, say("Keys before norm and rotation"), f"{place}.projected_keys", ()),
        ShapeStep(where, say("Keys, heads first"), f"{place}.keys", ()),
        ShapeStep(where, say("Values, heads first"), f"{place}.values", ()),
        ShapeStep(where, say("Bias of positions"), f"{place}.bias", (), say("added to the scores")),
        ShapeStep(where, say("Scores q·k / √{width}", width=config.d_head) if plain_scores(config) else say("Scores"),
             f"{place}.scores", (), say("every query with every key")),
        ShapeStep(where, say("Mask"), f"{place}.mask", (),
             say("an axis of size 1 is the same for every head or query")),
        ShapeStep(where, say("Weights: softmax"), f"{place}.weights", (), say("over the keys that the mask allows")),
        ShapeStep(where, say("Weighted sums of values"), f"{place}.heads", ()),
        ShapeStep(where, say("Heads side by side"), "", row),
        ShapeStep(where, say("Output projection"), f"{place}.output", (), say("back to d_model")),
    ]  # fmt: skip


def _feed_forward(where: str, place: str, config: ModelConfig) -> list[ShapeStep]:
    config = config.of("encoder" if place.startswith("encoder") else "decoder")
    ratio = say("d_ff / d_model = {ratio:g}", ratio=config.d_ff / config.d_model)
    function = ACTIVATIONS[config.activation]
    if config.gated:
        product = say("{function} of the gate, times the up-projection", function=function)
        return [
            ShapeStep(where, say("Gate"), f"{place}.pre_activation", (), ratio),
            ShapeStep(where, say("Up-projection"), f"{place}.linear", (), ratio),
            ShapeStep(where, product, f"{place}.activation", ()),
            ShapeStep(where, say("Down-projection"), f"{place}.output", (), say("back to d_model")),
        ]
    return [
        ShapeStep(where, say("Up-projection"), f"{place}.pre_activation", (), ratio),
        ShapeStep(where, function, f"{place}.activation", ()),
        ShapeStep(where, say("Down-projection"), f"{place}.output", (), say("back to d_model")),
    ]


def _mlm_head(config: ModelConfig) -> list[ShapeStep]:
    where = say("Head")
    return [
        ShapeStep(where, say("Dense map"), "mlm_head.pre_activation", ()),
        ShapeStep(where, ACTIVATIONS[config.mlm_activation], "mlm_head.activation", ()),
        ShapeStep(where, say("Norm"), "mlm_head.output", ()),
    ]


def _with_shape(step: ShapeStep, seen: Pass) -> ShapeStep:
    if not step.site:
        return step
    shape = seen.sites[step.site]
    alone = shape if step.site.endswith("embedding.positions") else shape[1:]  # the others have a batch axis
    return ShapeStep(step.where, step.what, step.site, alone, step.remark)


@lru_cache(maxsize=_KEPT)
def _cells(seen: Pass, config: ModelConfig, stack: StackName, absent: frozenset[str]) -> dict[str, list[str]]:
    """The columns of the table; `absent` are tensors that replace parts which the model does not have."""
    rows = [
        (step.where, step.what, f"[{', '.join(map(str, step.shape))}]", _remark(step, absent), step.site or "—")
        for step in steps_of(seen, config, stack)
    ]
    return dict(zip(_COLUMNS, map(list, zip(*rows, strict=True)), strict=True))


def _remark(step: ShapeStep, absent: frozenset[str]) -> str:
    """Why a shape is so, or what replaces the part that it comes from."""
    stack, _, rest = step.site.partition(".")
    made = f"{stack}.layers.{rest.removesuffix('output')}" if rest.endswith(("attn.output", "ffn.output")) else ""
    found = said(absent, UNITS) if rest == "embedding.tokens" else said(absent, made) if made else []
    return found[0] if found else step.remark
