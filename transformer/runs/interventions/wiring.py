"""All changes of the wiring, in the order in which a menu offers them."""

from typing import Final

from transformer.runs.interventions.around import EmbeddingScale as EmbeddingScale
from transformer.runs.interventions.around import NoFeedForward as NoFeedForward
from transformer.runs.interventions.around import NoNorm as NoNorm
from transformer.runs.interventions.around import NoResidual as NoResidual
from transformer.runs.interventions.around import SwapNorms as SwapNorms
from transformer.runs.interventions.base import Intervention
from transformer.runs.interventions.heads_told import HeadsTold as HeadsTold
from transformer.runs.interventions.low_rank import LowRank as LowRank
from transformer.runs.interventions.masking import CausalMask as CausalMask
from transformer.runs.interventions.masking import PaddingMask as PaddingMask
from transformer.runs.interventions.positions import NoPositions as NoPositions
from transformer.runs.interventions.positions import ScalePositions as ScalePositions
from transformer.runs.interventions.positions import ShiftPositions as ShiftPositions
from transformer.runs.interventions.positions import ShufflePositions as ShufflePositions
from transformer.runs.interventions.rounding import KeepDropout as KeepDropout
from transformer.runs.interventions.rounding import RoundWeights as RoundWeights
from transformer.runs.interventions.scoring import FillValue as FillValue
from transformer.runs.interventions.scoring import NoGuard as NoGuard
from transformer.runs.interventions.scoring import ScoreScale as ScoreScale
from transformer.runs.interventions.scoring import SoftmaxTwice as SoftmaxTwice
from transformer.runs.interventions.similarity import AddAlibi as AddAlibi
from transformer.runs.interventions.similarity import KeyBias as KeyBias
from transformer.runs.interventions.similarity import OtherSimilarity as OtherSimilarity
from transformer.runs.interventions.similarity import RandomFeatures as RandomFeatures
from transformer.runs.interventions.sparse import DilatedWindow as DilatedWindow
from transformer.runs.interventions.sparse import GlobalTokens as GlobalTokens
from transformer.runs.interventions.sparse import LocalWindow as LocalWindow

WIRING: Final[tuple[type[Intervention], ...]] = (
    *(NoPositions, ShiftPositions, ScalePositions, ShufflePositions, AddAlibi),
    *(CausalMask, PaddingMask, FillValue, NoGuard, LocalWindow, DilatedWindow, GlobalTokens),
    *(ScoreScale, SoftmaxTwice, OtherSimilarity, KeyBias, RandomFeatures, LowRank, HeadsTold),
    *(NoResidual, NoNorm, SwapNorms, NoFeedForward, EmbeddingScale, KeepDropout, RoundWeights),
)
