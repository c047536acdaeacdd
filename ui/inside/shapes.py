"""The shape of every value on the way from the ids to the logits, as recorded for the sentence at hand."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from transformer.analysis.shapes import Pass, Shape, shapes_of
from transformer.checkpoint.load import Checkpoint
from ui.inside.blocks import ACTIVATIONS
from ui.inside.costs import tokens
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import SIDE_OF, STACKS, StackName
from ui.shared import choices, drawing
from ui.state.view import Side

TABLE = "shapes"
_WIDTHS = {"Component": 112, "Step": 180, "Shape": 96, "Remark": 240}
_STACKS: dict[Side, str] = {side: stack.capitalize() for side, stack in STACKS.items()}
_ATTENTION = {
    "queries": ("Queries, heads first", "{h} heads of width {dh}"),
    "keys": ("Keys, heads first", "as many as tokens that may be read"),
    "values": ("Values, heads first", ""),
    "scores": ("Scores q·k / √{dh}", "every query with every key"),
    "mask": ("Mask", "1 stands for every head or query"),
    "weights": ("Weights: softmax", "over the keys that the mask allows"),
    "heads": ("Weighted sums of values", "each head its own"),
    "output": ("Output projection", "back in d_model"),
}
_FEED_FORWARD = {
    "pre_activation": ("Up-projection", "d_ff / d_model = {ratio}"),
    "activation": ("{activation}", "each value for itself"),
    "output": ("Down-projection", "back in d_model"),
}
_NAMES = {"self_attn": "Self-attention", "cross_attn": "Cross-attention", "ffn": "Feed-forward"}


@dataclass(frozen=True)
class Step:
    """One line of the table.

    Attributes:
        where: The component.
        what: What was computed.
        site: Its name in `transformer.model.tap.SITES`; empty for a re-arrangement, which the model does not name.
        shape: As recorded, without the batch axis.
        remark: Why it is so.
    """

    where: str
    what: str
    site: str
    shape: Shape
    remark: str = ""


def draw(run: OpenRun) -> None:
    """Draw the table of the encoder or of the decoder: side by side they have no room for the remarks."""
    st.subheader("Shapes on the way through")
    trace, n_target = run.trace, run.looking.n_rows if run.view.guess else run.trace.n_steps
    seen = attempt(lambda: recorded(run.checkpoint, trace.src_ids, trace.read_ids[:n_target]))
    if seen is None:
        return
    hidden = " What comes after the current step is left out." if run.view.guess else ""
    st.caption(
        drawing.plain(
            f"Recorded in one pass over this sentence: {tokens(seen.src_ids[1], 'source')}, and "
            f"{tokens(seen.tgt_ids[1], 'target')} that the decoder reads.{hidden} "
            f"The batch axis, {seen.src_ids[0]} here, is left out."
        )
    )
    side = choices.choose(choices.field(run.slot, "side"), "Stack", _STACKS, bare=True)
    _table(run, seen, STACKS[side])


def _table(run: OpenRun, seen: Pass, stack: StackName) -> None:
    checkpoint = run.checkpoint
    steps = steps_of(seen, checkpoint, stack)
    alike = equal_layers(seen, stack, _n_layers(checkpoint, stack))
    same = f" All {len(alike[0])} layers have these shapes." if len(alike) == 1 < len(alike[0]) else ""
    st.caption(f"{stack.capitalize()}, {SIDE_OF[stack]} side.{same}")
    st.container(key=run.key(f"{TABLE}_{stack}")).dataframe(
        _frame(steps),
        hide_index=True,
        height="content",
        row_height=29,
        column_config={name: st.column_config.TextColumn(width=width) for name, width in _WIDTHS.items()},
        alt=f"Shapes in the {stack}, step by step.",
    )


def recorded(checkpoint: Checkpoint, src_ids: tuple[int, ...], tgt_ids: tuple[int, ...]) -> Pass:
    """Shapes of one pass, run in the queue.

    Raises:
        QueryError: More tokens than the model reads.
        BusyError: The model has too much to do.
    """
    return loading.runner().compute(
        ("shapes", checkpoint.content_hash, src_ids, tgt_ids),
        lambda: shapes_of(checkpoint.model, src_ids, tgt_ids),
        nbytes=lambda seen: 200 * len(seen.sites),
    )


def steps_of(seen: Pass, checkpoint: Checkpoint, stack: str) -> list[Step]:
    """The lines of one stack; layers whose shapes are equal are written once.

    Args:
        seen: What was recorded.
        checkpoint: Its features explain the shapes.
        stack: "encoder" or "decoder".
    """
    config, ids = checkpoint.config, seen.src_ids if stack == "encoder" else seen.tgt_ids
    shared = config.shared_vocab or stack == "encoder"
    steps = [Step("Start", "Ids", "", ids[1:], "one number a token")]
    steps += [
        Step("Start", "Rows of the table", f"{stack}.embedding.tokens", (),
             f"a table of {(config.src_vocab_size if shared else config.tgt_vocab_size):,} rows"),
        Step("Start", "Position vectors", f"{stack}.embedding.positions", (), "the same for every sentence"),
        Step("Start", "Their sum: the stream", f"{stack}.embedding.output", ()),
    ]  # fmt: skip
    for layers in equal_layers(seen, stack, _n_layers(checkpoint, stack)):
        steps += _layer(seen, checkpoint, stack, layers)
    last = "Final norm" if config.final_norm else "Last layer's output"
    steps.append(Step("End", f"{last}: the memory" if stack == "encoder" else last, f"{stack}.output", ()))
    if stack == "decoder":
        steps.append(Step("End", "Logits", "logits", (), f"a score of each of {config.tgt_vocab_size:,} pieces"))
    return [_with_shape(step, seen) for step in steps]


def equal_layers(seen: Pass, stack: str, n_layers: int) -> list[range]:
    """Neighbouring layers in which every site had the same shape."""
    tables = []
    for layer in range(n_layers):
        start = f"{stack}.{layer}."
        tables.append({site[len(start) :]: shape for site, shape in seen.sites.items() if site.startswith(start)})
    starts = [layer for layer in range(n_layers) if layer == 0 or tables[layer] != tables[layer - 1]]
    return [range(first, last) for first, last in zip(starts, [*starts[1:], n_layers], strict=True)]


def _n_layers(checkpoint: Checkpoint, stack: str) -> int:
    config = checkpoint.config
    return config.n_encoder_layers if stack == "encoder" else config.n_decoder_layers


def _layer(seen: Pass, checkpoint: Checkpoint, stack: str, layers: range) -> list[Step]:
    config, start = checkpoint.config, f"{stack}.{layers[0]}"
    alone = len(layers) == _n_layers(checkpoint, stack)  # what stands above the table says that they are alike
    which = "" if alone else f" {layers[0] + 1}" + (f" to {layers[-1] + 1}" if len(layers) > 1 else "")
    words = {"h": config.n_heads, "dh": config.d_head, "activation": ACTIVATIONS[config.activation],
             "ratio": f"{config.d_ff / config.d_model:g}"}  # fmt: skip
    steps = []
    for sub in ("self_attn", "ffn") if stack == "encoder" else ("self_attn", "cross_attn", "ffn"):
        where = _NAMES[sub] + which
        norm, residual = f"{start}.{sub}.norm", f"{start}.{sub}.residual"
        table = _FEED_FORWARD if sub == "ffn" else _ATTENTION
        inner = []
        for name, (what, remark) in table.items():
            if name == "queries":
                inner.append(_before_split(seen, where, f"{start}.{sub}.queries"))
            if name == "output" and sub != "ffn":
                inner.append(_joined(seen, where, f"{start}.{sub}.heads"))
            inner.append(Step(where, what.format(**words), f"{start}.{sub}.{name}", (), remark.format(**words)))
        pair = [Step(where, "Norm", norm, ()), *inner, Step(where, "Stream + output", residual, ())]
        steps += pair if config.norm == "pre" else [*pair[1:], pair[0]]
    return [*steps, Step(f"Layer{which}", "Stream after it", f"{start}.output", ())]


def _before_split(seen: Pass, where: str, site: str) -> Step:
    """The queries before the heads' axis moves to the front: the projection, seen as heads in a row."""
    _, n_heads, length, d_head = seen.sites[site]
    return Step(where, "Queries, cut into heads", "", (length, n_heads, d_head), "a view: nothing is copied")


def _joined(seen: Pass, where: str, site: str) -> Step:
    """The heads' sums, moved back and put side by side."""
    _, n_heads, length, d_head = seen.sites[site]
    return Step(where, "Heads side by side", "", (length, n_heads * d_head), "head 1, head 2, … in one row")


def _with_shape(step: Step, seen: Pass) -> Step:
    if not step.site:
        return step
    shape = seen.sites[step.site]
    alone = shape if step.site.endswith("embedding.positions") else shape[1:]  # the others have a batch axis
    return Step(step.where, step.what, step.site, alone, step.remark)


def _frame(steps: list[Step]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Component": [step.where for step in steps],
            "Step": [step.what for step in steps],
            "Shape": [f"[{', '.join(map(str, step.shape))}]" for step in steps],
            "Remark": [step.remark for step in steps],
            "Name in the code": [step.site or "—" for step in steps],
        }
    )
