"""The part of a config that says how a layer is built: norms, feed-forward, residual connection, biases.

The defaults are those of a plain pre-norm Transformer; `transformer.model.norms` and
`transformer.model.feed_forward` name the sources of others. It knows nothing of torch, nor of the rest of a config.
"""

from dataclasses import dataclass
from typing import Literal

from transformer.errors import ConfigError, shown

NormPlace = Literal["pre", "post", "both"]
NormKind = Literal["layer", "rms", "deviation", "biased_deviation", "none"]
Activation = Literal["relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "none"]


@dataclass(frozen=True)
class Biases:
    """Where biases are, each field for itself."""

    attention: bool  # on queries, keys and values
    attention_output: bool  # on the output projection of attention
    ffn: bool  # in the feed-forward layers, and in an MLM head's dense map
    norms: bool  # in the norms

    @property
    def everywhere(self) -> bool:
        """Whether all of these have biases."""
        return self.attention and self.attention_output and self.ffn and self.norms

    @property
    def nowhere(self) -> bool:
        """Whether none of these has a bias."""
        return not (self.attention or self.attention_output or self.ffn or self.norms)


@dataclass(frozen=True, kw_only=True)
class Layers:
    """How a layer is built."""

    # "pre" normalises the input of each sub-layer, "post" its sum with the residual; "both" normalises the input, and
    # with another norm the output before it is added.
    norm: NormPlace = "pre"
    # "layer" (mean 0, variance 1), "rms" (divided by the root mean square; no mean taken off, no bias), "deviation" (a
    # layer norm that divides by the unbiased deviation plus epsilon), "biased_deviation" (by the biased one), "none".
    norm_kind: NormKind = "layer"
    final_norm: bool = True  # one more norm after the last encoder layer and after the last decoder layer
    norm_eps: float = 1e-5  # the epsilon of every norm
    # Non-linearity of the feed-forward layer; "gelu" is exact, "gelu_tanh" its approximation; "none": the two linear
    # maps act as one.
    activation: Activation = "relu"
    # The feed-forward layer multiplies the output of the non-linearity by a second linear map.
    gated: bool = False
    # Attention and feed-forward of a layer read the same stream, and both are added to it.
    parallel_residual: bool = False
    residual: bool = True  # a sub-layer's output is added to the stream; if not, it replaces the stream
    bias: bool = True  # biases in the attention projections, the feed-forward layers and the norms
    # The same for one of them: queries, keys and values; the output projection; the feed-forward layers; the norms.
    # None: as in `bias`.
    attention_bias: bool | None = None
    attention_output_bias: bool | None = None
    ffn_bias: bool | None = None
    norm_bias: bool | None = None

    @property
    def biases(self) -> Biases:
        """Where biases are."""

        def said(value: bool | None) -> bool:
            return self.bias if value is None else value

        return Biases(
            attention=said(self.attention_bias),
            attention_output=said(self.attention_output_bias),
            ffn=said(self.ffn_bias),
            norms=said(self.norm_bias) and self.norm_kind not in ("rms", "none"),
        )

    def check_layers(self, *, d_model: int, n_stacks: int) -> None:
        """Check what depends on more than one field; a ConfigError names the field."""
        if not 0.0 < self.norm_eps <= 0.1:
            raise ConfigError(
                "norm_eps", "found {found}, expected a number above 0 and at most 0.1.", found=shown(self.norm_eps)
            )
        if self.norm_kind == "rms" and self.norm_bias:
            raise ConfigError("norm_bias", "found true, but an RMS norm has no bias; set it to false.")
        if self.norm_kind == "none" and self.norm_bias:
            raise ConfigError("norm_bias", "found true, but this model has no norms; set it to false.")
        if self.parallel_residual and not self.residual:
            raise ConfigError(
                "parallel_residual",
                "found true, but parallel sub-layers need residual connections, and this model has none; set it to "
                "false.",
            )
        if self.norm_kind == "deviation" and d_model == 1:
            raise ConfigError(
                "norm_kind",
                "with d_model = 1 there is no unbiased standard deviation; set norm_kind to layer, or choose a "
                "larger d_model.",
            )
        if self.parallel_residual and self.norm != "pre":
            raise ConfigError(
                "parallel_residual",
                "found true, but norm = {norm}; parallel sub-layers need norm = pre.",
                norm=self.norm,
            )
        if self.parallel_residual and n_stacks > 1:
            raise ConfigError(
                "parallel_residual",
                "found true, but this model has cross-attention; parallel sub-layers are defined only for "
                "encoder-only and decoder-only models.",
            )
