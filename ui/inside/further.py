"""What a model has besides the features of the paper, in sentences, and what its diagram leaves out.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from transformer.model.config import ModelConfig
from words import say, say_n


def further(config: ModelConfig) -> list[str]:
    """A sentence for each feature that the model of the paper does not have."""
    c, said = config, list[str]()
    if c.norm_kind == "rms":
        said.append(say("The norms are RMS norms: they divide by the root mean square, and take no mean off."))
    if c.norm_kind == "deviation":
        said.append(say("The norms divide by the unbiased standard deviation plus ε."))
    if c.norm_kind == "biased_deviation":
        said.append(say("The norms divide by the standard deviation plus ε."))
    if not c.residual:
        said.append(say("There is no residual connection: what a sub-layer computes takes the place of the stream."))
    if c.gated:
        said.append(say("The feed-forward network has a gate: the function's result is multiplied by a second map."))
    if c.parallel_residual:
        said.append(say("Attention and feed-forward network of a layer read the same stream (parallel residual)."))
    if c.embedding_norm:
        said.append(say("A norm follows the embedding's sum."))
    if c.n_token_types:
        said.append(say_n("A table of {n} token type is added to the embedding; here its first row.",
                          "A table of {n} token types is added to the embedding; here its first row.",
                          c.n_token_types))  # fmt: skip
    return said + _output(config) + _rules(config)


def _output(config: ModelConfig) -> list[str]:
    said = list[str]()
    if config.mlm_head:
        said.append(
            say("A head gives each token the logits of the piece that fits there (masked language modelling).")
        )
    if config.output_scale != 1.0:
        said.append(say("The last vectors are multiplied by {scale:.4g} before they become logits.",
                        scale=config.output_scale))  # fmt: skip
    if config.logit_cap:
        said.append(say("A soft cap keeps the logits between −{cap:g} and {cap:g}.", cap=config.logit_cap))
    return said


def _rules(config: ModelConfig) -> list[str]:
    """What outputs may hold: it changes which piece is chosen, and no probability."""
    c, said = config, list[str]()
    if c.repetition_penalty != 1.0:
        said.append(say("Logits of pieces that stand in the text are divided by {c:g} above 0 and multiplied by it "
                        "below (repetition penalty).", c=c.repetition_penalty))  # fmt: skip
    if c.no_repeat_ngram:
        said.append(say("An output repeats no run of pieces as long as {n}.", n=c.no_repeat_ngram))
    if c.banned_sequences or c.first_banned_ids:
        said.append(say("Some pieces are closed at the beginning of an output, or after others."))
    if c.min_length or c.min_new:
        said.append(say("An output does not end before it has {written:,} pieces, or its text {all:,} tokens.",
                        written=c.min_new, all=c.min_length))  # fmt: skip
    if c.max_new is not None:
        said.append(say_n("An output has at most {n:,} piece.", "An output has at most {n:,} pieces.", c.max_new))
    if c.max_length is not None:
        said.append(say_n("A text and its output have at most {n:,} token together.",
                          "A text and its output have at most {n:,} tokens together.", c.max_length))  # fmt: skip
    if c.forced_end_id is not None:
        said.append(say("An output that grows too long ends with a forced piece."))
    return said


def not_drawn(config: ModelConfig) -> list[str]:
    """A sentence for each thing that the diagram of the model leaves out or draws in a simpler way."""
    said = list[str]()
    if config.norm == "both":
        said.append(say("The diagram leaves out the norm on each sub-layer's output, before the sum."))
    if config.parallel_residual:
        said.append(say("The diagram draws the feed-forward network after attention; in this model it reads what "
                        "attention reads."))  # fmt: skip
    if config.norm_kind == "none":
        said.append(say("The diagram draws norms; in this model they change nothing."))
    if not config.residual:
        said.append(say("The diagram draws residual sums; in this model a sub-layer's output is the stream."))
    if config.embedding_norm:
        said.append(say("The diagram leaves out the norm after the embedding's sum."))
    if config.n_token_types:
        said.append(say("The diagram leaves out the token types."))
    return said
