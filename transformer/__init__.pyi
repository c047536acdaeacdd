"""The names of the library, and where each is; `__init__.py` imports them when they are asked for."""

from glassformer.extensions.doctor.library.examination import examine as examine
from glassformer.extensions.importers.library.handed_pieces import Given as Given
from glassformer.extensions.importers.library.opening import QuestionsError as QuestionsError
from glassformer.extensions.importers.library.opening import preview as preview
from glassformer.extensions.maps.library.arrays import given_maps as given_maps
from glassformer.extensions.maps.library.npzfile import load_maps as load_maps
from glassformer.extensions.maps.library.npzfile import save_maps as save_maps
from glassformer.extensions.maps.library.own_maps import GivenAttention as GivenAttention
from glassformer.extensions.maps.library.own_maps import GivenMaps as GivenMaps
from glassformer.extensions.saving.showing import compare as compare
from glassformer.extensions.what_if.interventions import ZeroHead as ZeroHead
from transformer.checkpoint.curve import Curve as Curve
from transformer.checkpoint.curve import load_curve as load_curve
from transformer.checkpoint.load import Checkpoint as Checkpoint
from transformer.checkpoint.opening import load as load
from transformer.errors import GlassformerError as GlassformerError
from transformer.model.config import ModelConfig as ModelConfig
from transformer.model.transformer import Transformer as Transformer
from transformer.runs.query import Beam as Beam
from transformer.runs.query import Greedy as Greedy
from transformer.runs.query import Query as Query
from transformer.runs.query import Sampling as Sampling
from transformer.runs.running import run as run
from transformer.runs.running import run_batch as run_batch
from transformer.runs.step import RowLabel as RowLabel
from transformer.runs.step import Step as Step
from transformer.runs.teacher_forcing import Score as Score
from transformer.runs.teacher_forcing import score as score
from transformer.runs.trace import Trace as Trace

__version__: str
