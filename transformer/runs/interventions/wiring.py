"""All changes of the wiring, in the order in which a menu offers them."""

from typing import Final

from transformer.runs.interventions.around import EmbeddingScale as EmbeddingScale
from transformer.runs.interventions.around import NoFeedForward as NoFeedForward
from transformer.runs.interventions.around import NoNorm as NoNorm
from transformer.runs.interventions.around import NoResidual as NoResidual
from transformer.runs.interventions.around import SwapNorms as SwapNorms
from transformer.runs.interventions.base import Intervention
from transformer.runs.interventions.heads_told import HeadsTold as HeadsTold
from transformer.runs.interventions.masking import CausalMask as CausalMask
from transformer.runs.interventions.masking import PaddingMask as PaddingMask
from transformer.runs.interventions.positions import NoPositions as NoPositions
from transformer.runs.interventions.positions import ScalePositions as ScalePositions
from transformer.runs.interventions.positions import ShiftPositions as ShiftPositions
from transformer.runs.interventions.positions import ShufflePositions as ShufflePositions
from transformer.runs.interventions.scoring import FillValue as FillValue
from transformer.runs.interventions.scoring import NoGuard as NoGuard
from transformer.runs.interventions.scoring import ScoreScale as ScoreScale
from transformer.runs.interventions.scoring import SoftmaxTwice as SoftmaxTwice

WIRING: Final[tuple[type[Intervention], ...]] = (
    *(NoPositions, ShiftPositions, ScalePositions, ShufflePositions),
    *(CausalMask, PaddingMask, FillValue, NoGuard),
    *(ScoreScale, SoftmaxTwice, HeadsTold),
    *(NoResidual, NoNorm, SwapNorms, NoFeedForward, EmbeddingScale),
)
