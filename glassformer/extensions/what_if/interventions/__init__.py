"""Registry of all kinds of interventions inside the model, in the order of the menu: `KINDS`.

To add one, write its record in a module of this package and name it in `KINDS`.
"""

from typing import Final

from glassformer.extensions.what_if.interventions.compression_changes import (
    HalfPrecision,
    LowRankFeedForward,
    Narrower,
    NeuronOff,
    ProjectedKeys,
)
from glassformer.extensions.what_if.interventions.layer_changes import (
    EmbeddingScale,
    KeepDropout,
    MeanHead,
    NoFeedForward,
    NoNorm,
    NoResidual,
    RoundWeights,
    Skip,
    SwapNorms,
    Temper,
    Uniform,
    ZeroHead,
)
from glassformer.extensions.what_if.interventions.mask_changes import (
    CausalMask,
    DilatedWindow,
    GlobalTokens,
    LocalWindow,
    PaddingMask,
)
from glassformer.extensions.what_if.interventions.miswiring import Miswiring
from glassformer.extensions.what_if.interventions.piece_changes import (
    Blank,
    Drop,
    Insist,
    NoPositions,
    Pads,
    Replace,
    ScalePositions,
    ShiftPositions,
    Shuffle,
    ShufflePositions,
    Swap,
)
from glassformer.extensions.what_if.interventions.row_changes import CopyMap, Force, Mute, Patch, Weigh
from glassformer.extensions.what_if.interventions.score_changes import (
    AddAlibi,
    FillValue,
    HeadsTold,
    KeyBias,
    LowRank,
    NoGuard,
    OtherSimilarity,
    RandomFeatures,
    ScoreScale,
    SoftmaxTwice,
)
from transformer.runs.interventions.base import Intervention

_ALL: tuple[type[Intervention], ...] = (
    ZeroHead, MeanHead, Uniform, Temper, Skip, NeuronOff,
    Mute, Force, Weigh, CopyMap, Patch,
    Replace, Drop, Swap, Shuffle, Pads, Blank, Insist,
    NoPositions, ShiftPositions, ScalePositions, ShufflePositions, AddAlibi,
    CausalMask, PaddingMask, FillValue, NoGuard, HalfPrecision, LocalWindow, DilatedWindow, GlobalTokens,
    ScoreScale, SoftmaxTwice, OtherSimilarity, KeyBias, RandomFeatures, LowRank, ProjectedKeys, HeadsTold,
    NoResidual, NoNorm, SwapNorms, NoFeedForward, LowRankFeedForward, Narrower,
    EmbeddingScale, KeepDropout, RoundWeights, Miswiring,
)  # fmt: skip
KINDS: Final[dict[str, type[Intervention]]] = {kind.word: kind for kind in _ALL}
"""All of them by their word."""
assert len(KINDS) == len(_ALL)  # or two kinds have one word
