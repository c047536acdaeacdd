"""The types of the library's own names, and where each is; `__init__.py` imports them when they are asked for."""

from typing import Any

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
from transformer.runs.run_file import load_run as load_run
from transformer.runs.running import run as run
from transformer.runs.running import run_batch as run_batch
from transformer.runs.teacher_forcing import Score as Score
from transformer.runs.teacher_forcing import score as score
from transformer.runs.trace import RowLabel as RowLabel
from transformer.runs.trace import Step as Step
from transformer.runs.trace import Trace as Trace

__version__: str

# Names of extensions, whose types are where their records say they are: a stub of the kernel imports none of them.
def __getattr__(name: str) -> Any: ...
