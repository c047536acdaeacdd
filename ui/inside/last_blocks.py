"""The blocks that a stack of the model's diagram ends with: its output, and what becomes logits.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from charts.diagram_blocks import Block
from transformer.model.anatomy import StackName, anatomy
from ui.inside.features import ACTIVATIONS
from ui.inside.sized import STREAM, Sized
from ui.runs.sides import has_one_stack
from words import say

_LENS = say("the part Logit lens")


def end_of(one: Sized, stack: StackName) -> list[Block]:
    """What follows the layers of a stack and its final norm."""
    if stack == "decoder":
        return [_output(one, stack), _logits(one, stack)]
    if anatomy(one.config).fills:
        return [_mlm_head(one), _output(one, stack), _logits(one, stack)]
    return [_memory(one)]


def _memory(one: Sized) -> Block:
    shape = one.stream("encoder")
    text, name = say("Memory {shape}", shape=shape), say("Memory: the encoder's output")
    role = say("One vector a source token; every cross-attention makes its keys and values from it.")
    if has_one_stack(one.config):
        text, name = say("Output {shape}", shape=shape), say("The encoder's output")
        role = say("One vector a source token; this model writes nothing, so this is where it ends.")
    return Block(place="encoder.memory", text=text, name=name, role=role, shape=shape, leads_to=STREAM, kind="edge")


def _mlm_head(one: Sized) -> Block:
    c, shape = one.config, one.stream("encoder")
    return Block(
        place="encoder.mlm_head", text=say("Head, {function} and norm", function=ACTIVATIONS[c.mlm_activation]),
        name=say("The head for masked pieces"), kind="linear", shape=f"{shape} → {shape}",
        role=say("A dense map, a non-linearity and a norm, each token by itself."), leads_to=STREAM,
        parameters=one.held("mlm_head."), multiply_adds=one.n_source * c.d_model**2,
    )  # fmt: skip


def _output(one: Sized, stack: StackName) -> Block:
    c, n = one.config, one.length(stack)
    return Block(
        place=f"{stack}.output", name=say("Output layer"), role=_output_role(one), kind="table",
        text=say("Output {width} → {n:,}", width=c.d_model, n=c.tgt_vocab_size),
        shape=f"{one.stream(stack)} → [{n}, {c.tgt_vocab_size}]",
        parameters=one.held("output_"), multiply_adds=n * c.d_model * c.tgt_vocab_size, leads_to=_LENS,
    )  # fmt: skip


def _output_role(one: Sized) -> str:
    c = one.config
    if not c.tie_output:
        if c.output_bias:
            return say("Compares each vector with every row of a table of its own, with a bias.")
        return say("Compares each vector with every row of a table of its own.")
    if c.output_bias:
        return say(
            "Compares each vector with every row of the target embedding's table, so no parameters of its own, "
            "with a bias."
        )
    return say("Compares each vector with every row of the target embedding's table, so no parameters of its own.")


def _logits(one: Sized, stack: StackName) -> Block:
    shape = f"[{one.length(stack)}, {one.config.tgt_vocab_size:,}]"
    role = say("A score of every piece of the target vocabulary after each token; softmax makes them probabilities.")
    if anatomy(one.config).fills:
        role = say("A score of every piece of the vocabulary at each token; softmax makes them probabilities.")
    return Block(
        place=f"{stack}.logits", text=say("Logits {shape}", shape=shape), name=say("Logits"), shape=shape,
        kind="edge", role=role, leads_to=_LENS,
    )  # fmt: skip
