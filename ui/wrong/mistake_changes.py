"""Which interventions make each mistake: the library carries them out, here they are only named."""

from __future__ import annotations

import math
from typing import Final

from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention
from transformer.runs.interventions.around import EmbeddingScale, NoResidual, SwapNorms
from transformer.runs.interventions.mask_changes import CausalMask, PaddingMask
from transformer.runs.interventions.piece_changes import Pads
from transformer.runs.interventions.position_changes import NoPositions, ShiftPositions
from transformer.runs.interventions.score_changes import HeadsTold, NoGuard, ScoreScale, SoftmaxTwice

Changes = tuple[Intervention, ...]
PADS: Final = 4
MOST_SCALE: Final = 1000.0  # that an intervention takes


def future_open(config: ModelConfig) -> Changes:
    """No causal mask."""
    return (CausalMask("off"),)


def inverted(config: ModelConfig) -> Changes:
    """Only what comes after is seen."""
    return (CausalMask("inverted"),)


def rows_of_padding(config: ModelConfig) -> Changes:
    """The padding mask closes rows of padding, not columns."""
    return (PaddingMask("encoder", "rows"),)


def unscaled(config: ModelConfig) -> Changes:
    """q . k is not divided."""
    return (ScoreScale("all", "off"),)


def softmax_twice(config: ModelConfig) -> Changes:
    """The weights go through the softmax again."""
    return (SoftmaxTwice("all"),)


def closed_rows(config: ModelConfig) -> Changes:
    """The diagonal is closed too, so that the first row sees nothing, and nothing guards minus infinity."""
    return (CausalMask("hidden"), NoGuard("decoder"))


def pads(config: ModelConfig) -> Changes:
    """Padding behind the source, which alone changes nothing."""
    return (Pads(PADS),)


def unplaced(config: ModelConfig) -> Changes:
    """No positions in either stack."""
    return (NoPositions("all"),)


def shifted(config: ModelConfig) -> Changes:
    """The decoder counts its places from 1."""
    return (ShiftPositions("decoder", 1),)


def other_heads(config: ModelConfig) -> Changes:
    """Twice as many heads, where the width can be cut so; else fewer."""
    own, width = config.n_heads, config.n_heads * config.d_head
    found = next((n for n in (2 * own, own // 2, 1, width) if n >= 1 and n != own and width % n == 0), own)
    return (HeadsTold(found),)


def swapped(config: ModelConfig) -> Changes:
    """Pre-norm for post-norm, or post-norm for pre-norm."""
    return (SwapNorms("all"),)


def no_residual(config: ModelConfig) -> Changes:
    """No sub-layer's output is added to the stream."""
    return (NoResidual("all", None, "all"),)


def drowned(config: ModelConfig) -> Changes:
    """Embeddings are sqrt(d_model) times as large as the model was trained with."""
    root = math.sqrt(config.d_model)
    return (EmbeddingScale("all", min(root * (root if config.scale_embedding else 1.0), MOST_SCALE)),)
