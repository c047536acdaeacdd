"""A model's features in words, from its config: sentences, activation names, what the diagram leaves out."""

from collections.abc import Iterator

from glassformer.runs.map_axes import has_one_stack
from glassformer.shared.model_notes import about_scores
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

ACTIVATIONS = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": say("GELU (tanh)"),
    "silu": "SiLU",
    "quick_gelu": say("quick GELU"),
    "none": say("no function", about="between two linear maps"),
}
FORMULAS = {  # tables of positions that nothing has to learn, by their layout
    "interleaved": say("sinusoids"),
    "halves": say("sinusoids, all sines before all cosines"),
    "fairseq": say("sinusoids as in fairseq, all sines before all cosines"),
    "tensor2tensor": say("sinusoids as in tensor2tensor, all sines before all cosines"),
}


def in_words(config: ModelConfig) -> str:
    """The features of a model, in sentences."""
    return joined(" ", [_layers(config), _widths(config), _norms(config), _positions(config), *about_scores(config),
                        _tables(config), _biases(config), *further(config), _most(config)])  # fmt: skip


def _layers(config: ModelConfig) -> str:
    counts = {stack.name: stack.n_layers for stack in anatomy(config).stacks}
    if len(counts) == 2:
        return say("{n_encoder} encoder and {n_decoder} decoder layers.", n_encoder=counts["encoder"],
                   n_decoder=counts["decoder"])  # fmt: skip
    if "encoder" in counts:
        return say_n("{n} encoder layer and no decoder.", "{n} encoder layers and no decoder.", counts["encoder"])
    return say_n("{n} decoder layer and no encoder.", "{n} decoder layers and no encoder.", counts["decoder"])


def heads(config: ModelConfig) -> str:
    """The heads of an attention, and the key-value heads that they share."""
    if config.n_kv_heads < config.n_heads:
        return say_n("{n_heads} heads of width {width} that share {n} key-value head",
                     "{n_heads} heads of width {width} that share {n} key-value heads", config.n_kv_heads,
                     n_heads=config.n_heads, width=config.d_head)  # fmt: skip
    return say_n("{n} head of width {width}", "{n} heads of width {width}", config.n_heads, width=config.d_head)


def _widths(config: ModelConfig) -> str:
    c = config
    if config.of("decoder") != config:
        other = config.of("decoder")
        return say(
            "The stream has width d_model = {d_model:,}. In the encoder, each attention sub-layer has {heads}, and "
            "the feed-forward network widens the stream to d_ff = {d_ff:,}. In the decoder, each attention "
            "sub-layer has {other_heads}, and d_ff is {other_d_ff:,}. The feed-forward networks apply {function}.",
            d_model=c.d_model, heads=heads(c), d_ff=c.d_ff, other_heads=heads(other), other_d_ff=other.d_ff,
            function=ACTIVATIONS[c.activation],
        )  # fmt: skip
    return say(
        "The stream has width d_model = {d_model:,}. Each attention sub-layer has {heads}. The feed-forward "
        "network widens the stream to d_ff = {d_ff:,}, which is {ratio:.3g} times d_model, and applies {function}.",
        d_model=c.d_model, heads=heads(c), d_ff=c.d_ff, ratio=c.d_ff / c.d_model, function=ACTIVATIONS[c.activation],
    )  # fmt: skip


def _norms(config: ModelConfig) -> str:
    if config.norm_kind == "none":
        return say("This model has no norms.")
    said = say("A norm follows each residual sum (post-norm).")
    if config.norm == "pre":
        said = say("Each sub-layer has a norm before it (pre-norm).")
    elif config.norm == "both":
        said = say("Each sub-layer has a norm on its input and one on its output.")
    if config.final_norm:
        return joined(" ", [said, say("Each stack has one more after its last layer.")])
    return joined(" ", [said, say("No other norm follows the last layer.")])


def _positions(config: ModelConfig) -> str:
    if config.placing.in_attention:
        return config.placing.in_attention
    if config.placing.adds == "nothing":
        return say("No positional encoding.")
    if config.positions == "sinusoidal":
        return say("Positions: {formula}, computed from a formula.", formula=FORMULAS[config.sinusoid_layout])
    if has_one_stack(config):
        return say("Positions: a learned table.")
    return say("Positions: a learned table on each side.")


def _tables(config: ModelConfig) -> str:
    parts = anatomy(config)
    if not (parts.reads and parts.writes):
        said = say("There is one embedding table.")
    elif config.shared_vocab:
        said = say("Source and target share one embedding table.")
    else:
        said = say("Source and target have separate embedding tables.")
    if not parts.writes:
        return said
    if not config.tie_output:
        return joined(" ", [said, say("The output layer has a table of its own.")])
    return joined(" ", [said, say("The output layer uses the target's embedding table.")])


def _biases(config: ModelConfig) -> str:
    bias = config.biases
    where = {
        say("queries, keys and values"): bias.attention,
        say("the output projection of attention"): bias.attention_output,
        say("the feed-forward network"): bias.ffn,
        say("the norms"): bias.norms,
        say("the logits"): config.output_bias and anatomy(config).gives_logits,
    }
    there = joined(", ", [name for name, has in where.items() if has])
    return say("These parts have biases: {where}.", where=there) if there else say("No layer has a bias.")


def _most(config: ModelConfig) -> str:
    if has_one_stack(config):
        return say("The model reads at most {n:,} tokens.", n=config.max_len)
    return say("The model reads at most {n:,} tokens on each side.", n=config.max_len)


# ------------------------------------------------------------------------------------------------ beyond the paper


def further(config: ModelConfig) -> Iterator[str]:
    """A sentence for each feature that the model of the paper does not have."""
    c = config
    if c.norm_kind == "rms":
        yield say("The norms are RMS norms: they divide by the root mean square without subtracting the mean.")
    if c.norm_kind == "deviation":
        yield say("The norms divide by the unbiased standard deviation plus ε.")
    if c.norm_kind == "biased_deviation":
        yield say("The norms divide by the standard deviation plus ε.")
    if not c.residual:
        yield say("There is no residual connection: each sub-layer's output replaces the stream.")
    if c.gated:
        yield say(
            "The feed-forward network has a gate: the activation function's result is multiplied by the output "
            "of a second linear map."
        )
    if c.parallel_residual:
        yield say("In each layer, attention and the feed-forward network read the same stream (parallel residual).")
    if c.embedding_norm:
        yield say("A norm follows the embedding.")
    if c.n_token_types:
        yield say_n(
            "A token-type vector is added to the embedding. This app always uses the first type ({n} in all).",
            "A token-type vector is added to the embedding. This app always uses the first of the {n} types.",
            c.n_token_types,
        )
    yield from _end(config)
    yield from _rules(config)


def _end(config: ModelConfig) -> Iterator[str]:
    if config.mlm_head:
        yield say(
            "At each token, the MLM head gives every token a logit for how well it fits there (masked language "
            "modelling)."
        )
    if (scale := config.output_scale) != 1.0:
        yield say("The final vectors are multiplied by {scale:.4g} before they become logits.", scale=scale)
    if config.logit_cap:
        yield say("A soft cap keeps the logits between −{cap:g} and {cap:g}.", cap=config.logit_cap)


def _rules(config: ModelConfig) -> Iterator[str]:
    """What outputs may hold: it changes which piece is chosen, and no probability."""
    c = config
    if c.repetition_penalty != 1.0:
        yield say(
            "For tokens already in the text, logits above 0 are divided by {c:g} and logits below 0 are "
            "multiplied by the same number (repetition penalty).",
            c=c.repetition_penalty,
        )
    if c.no_repeat_ngram:
        yield say("No sequence of {n} tokens occurs twice in an output.", n=c.no_repeat_ngram)
    if c.banned_sequences or c.first_banned_ids:
        yield say("Some tokens are not allowed at the beginning of an output, or after certain other tokens.")
    if c.min_length or c.min_new:
        yield say(
            "An output cannot end before it has {written:,} tokens and the whole text has {all:,} tokens.",
            written=c.min_new,
            all=c.min_length,
        )
    if c.max_new is not None:
        yield say_n("An output has at most {n:,} token.", "An output has at most {n:,} tokens.", c.max_new)
    if c.max_length is not None:
        yield say_n(
            "A text and its output together have at most {n:,} token.",
            "A text and its output together have at most {n:,} tokens.",
            c.max_length,
        )
    if c.forced_end_id is not None:
        yield say("When an output reaches the maximum length, the config forces its last token.")


def not_drawn(config: ModelConfig) -> Iterator[str]:
    """A sentence for each thing that the diagram of the model leaves out or draws in a simpler way."""
    if config.norm == "both":
        yield say("The diagram leaves out the norm that is applied to each sub-layer's output before the residual sum.")
    if config.parallel_residual:
        yield say(
            "The diagram puts the feed-forward network after attention, but in this model both read the same input."
        )
    if config.norm_kind == "none":
        yield say("The diagram shows norms, but this model has none.")
    if not config.residual:
        yield say("The diagram shows residual sums, but in this model each sub-layer's output replaces the stream.")
    if config.embedding_norm:
        yield say("The diagram leaves out the norm after the embedding.")
    if config.n_token_types:
        yield say("The diagram leaves out the token types.")
