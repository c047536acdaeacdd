"""The features of a model in sentences, as its config says them.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from ui.runs.sides import has_one_stack
from words import joined, say, say_n

ACTIVATIONS = {"relu": "ReLU", "gelu": "GELU"}
FORMULAS = {"sinusoidal": say("sinusoids")}  # tables of positions that nothing has to learn


def in_words(config: ModelConfig) -> str:
    """The features of a model, in sentences."""
    return joined(" ", [_layers(config), _widths(config), _norms(config), _positions(config), _tables(config),
                        _biases(config), _most(config)])  # fmt: skip


def _layers(config: ModelConfig) -> str:
    counts = {stack.name: stack.n_layers for stack in anatomy(config).stacks}
    if len(counts) == 2:
        return say("{n_encoder} encoder and {n_decoder} decoder layers.", n_encoder=counts["encoder"],
                   n_decoder=counts["decoder"])  # fmt: skip
    if "encoder" in counts:
        return say_n("{n} encoder layer, and no decoder.", "{n} encoder layers, and no decoder.", counts["encoder"])
    return say_n("{n} decoder layer, and no encoder.", "{n} decoder layers, and no encoder.", counts["decoder"])


def heads(config: ModelConfig) -> str:
    """The heads of an attention."""
    return say_n("{n} head of width {width}", "{n} heads of width {width}", config.n_heads, width=config.d_head)


def _widths(config: ModelConfig) -> str:
    c = config
    return say(
        "The stream is d_model = {d_model:,} wide; each attention has {heads}; the feed-forward layer widens it to "
        "d_ff = {d_ff:,}, {ratio:.3g} times as wide, with {function} between.",
        d_model=c.d_model, heads=heads(c), d_ff=c.d_ff, ratio=c.d_ff / c.d_model, function=ACTIVATIONS[c.activation],
    )  # fmt: skip


def _norms(config: ModelConfig) -> str:
    if config.norm == "pre" and config.final_norm:
        return say("Norms stand before each sub-layer (pre-norm), one more after the last layer of each stack.")
    if config.norm == "pre":
        return say("Norms stand before each sub-layer (pre-norm), none after the last layer.")
    if config.final_norm:
        return say("Norms stand after each residual sum (post-norm), one more after the last layer of each stack.")
    return say("Norms stand after each residual sum (post-norm), none after the last layer.")


def _positions(config: ModelConfig) -> str:
    if config.positions in FORMULAS:
        return say("Positions: {formula}, a formula.", formula=FORMULAS[config.positions])
    if has_one_stack(config):
        return say("Positions: a learned table.")
    return say("Positions: a learned table on each side.")


def _tables(config: ModelConfig) -> str:
    parts, tied = anatomy(config), config.tie_output
    if not parts.writes:
        return say("There is one embedding table.")
    if not parts.reads:
        if tied:
            return say("There is one embedding table, and the output layer uses it.")
        return say("There is one embedding table, and the output layer has a table of its own.")
    if config.shared_vocab and tied:
        return say(
            "There is one embedding table for source and target, and the output layer uses the target's table."
        )
    if config.shared_vocab:
        return say("There is one embedding table for source and target, and the output layer has a table of its own.")
    if tied:
        return say("There is an embedding table on each side, and the output layer uses the target's table.")
    return say("There is an embedding table on each side, and the output layer has a table of its own.")


def _biases(config: ModelConfig) -> str:
    if not anatomy(config).writes:
        if config.bias:
            return say("Biases in all linear layers and norms.")
        return say("No biases in linear layers and norms.")
    if config.bias and config.output_bias:
        return say("Biases in all linear layers and norms, one on the logits.")
    if config.bias:
        return say("Biases in all linear layers and norms, none on the logits.")
    if config.output_bias:
        return say("No biases in linear layers and norms, one on the logits.")
    return say("No biases in linear layers and norms, none on the logits.")


def _most(config: ModelConfig) -> str:
    if has_one_stack(config):
        return say("At most {n:,} tokens.", n=config.max_len)
    return say("At most {n:,} tokens on a side.", n=config.max_len)
