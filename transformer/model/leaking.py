"""Training with the mistake of leaving out the causal mask, made on purpose.

Each row of the decoder then sees the whole target, the piece that it has to guess included. It learns to look that
piece up, the loss nears 0, and when it writes nothing is there to be looked up. `checkpoints/reverse-leak` was made
so. The model keeps its mask; a tap opens it while the model learns.

Source: Vaswani et al. (2017), section 3.2.3, for the mask and why it is there.

Shapes: B pairs, T target tokens.
"""

from torch import Tensor

from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.model.taps import Replacer, Tap, tap_of


def all_seen(mask: Tensor) -> Tensor:
    """What the last row may see for every row, bool [B, 1, T, T]: the future is open, and padding stays closed."""
    return mask[..., -1:, :].expand_as(mask)


def without_causal_mask(config: ModelConfig) -> Tap:
    """A tap that takes the causal mask away from the decoder's self-attention; a `QueryError` without one."""
    return tap_of(Replacer({anatomy(config).attention("decoder").site("*", "mask"): all_seen}))
