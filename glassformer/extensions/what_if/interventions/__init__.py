"""The kinds of change inside the model, in the order in which a menu offers them.

To add one, write its record in a module of this package and name it in `KINDS`.
"""

from typing import Final

from transformer.runs.interventions.around import EmbeddingScale, NoFeedForward, NoNorm, NoResidual, Skip, SwapNorms
from transformer.runs.interventions.base import Intervention
from transformer.runs.interventions.copying import CopyMap, Patch
from transformer.runs.interventions.head_changes import MeanHead, Temper, Uniform, ZeroHead
from transformer.runs.interventions.mask_changes import (
    CausalMask,
    DilatedWindow,
    GlobalTokens,
    LocalWindow,
    PaddingMask,
)
from transformer.runs.interventions.piece_changes import Blank, Drop, Insist, Pads, Replace, Shuffle, Swap
from transformer.runs.interventions.position_changes import (
    NoPositions,
    ScalePositions,
    ShiftPositions,
    ShufflePositions,
)
from transformer.runs.interventions.rounding import KeepDropout, RoundWeights
from transformer.runs.interventions.row_changes import Force, Mute, Weigh
from transformer.runs.interventions.score_changes import (
    FillValue,
    HeadsTold,
    LowRank,
    NoGuard,
    ScoreScale,
    SoftmaxTwice,
)
from transformer.runs.interventions.similarity import AddAlibi, KeyBias, OtherSimilarity, RandomFeatures

WIRING: Final[tuple[type[Intervention], ...]] = (
    *(NoPositions, ShiftPositions, ScalePositions, ShufflePositions, AddAlibi),
    *(CausalMask, PaddingMask, FillValue, NoGuard, LocalWindow, DilatedWindow, GlobalTokens),
    *(ScoreScale, SoftmaxTwice, OtherSimilarity, KeyBias, RandomFeatures, LowRank, HeadsTold),
    *(NoResidual, NoNorm, SwapNorms, NoFeedForward, EmbeddingScale, KeepDropout, RoundWeights),
)
_ALL: tuple[type[Intervention], ...] = (
    ZeroHead, MeanHead, Uniform, Temper, Skip,
    Mute, Force, Weigh, CopyMap, Patch,
    Replace, Drop, Swap, Shuffle, Pads, Blank, Insist,
    *WIRING,
)  # fmt: skip
KINDS: Final[dict[str, type[Intervention]]] = {kind.word: kind for kind in _ALL}
"""All of them by their word."""
assert len(KINDS) == len(_ALL)  # or two kinds have one word
