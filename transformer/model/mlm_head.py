"""What lies between the last vectors and the logits, in models where it is more than one table.

    scale      the vectors times a number; T5 uses 1 / sqrt(D), because its table is also the embedding
    MLM head   of an encoder-only model: a dense map, a non-linearity and a norm; then the table
    cap        c tanh(z / c): logits lie between -c and c, in the same order

Source: Raffel et al., "Exploring the Limits of Transfer Learning" (2020), for the scale; Devlin et al., "BERT"
(2019), section 3.1, for the task of the head; Gemma Team, "Gemma 2" (2024), section 2, for the cap.

Shapes: D d_model.
"""

from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.feed_forward import ACTIVATIONS
from transformer.model.linear import Linear
from transformer.model.module import Module
from transformer.model.norms import make_norm
from transformer.model.taps import NO_TAP, Tap


class MLMHead(Module):
    """Turns an encoder's vectors into those that are compared with the table."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.proj = Linear(config.d_model, config.d_model, bias=config.biases.ffn)
        self.activation = ACTIVATIONS[config.mlm_activation]
        self.norm = make_norm(config)

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """[..., D] -> [..., D]."""
        hidden = self.activation(tap("pre_activation", self.proj(x, tap=tap.child("proj"))))
        return tap("output", self.norm(tap("activation", hidden)))
