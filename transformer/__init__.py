"""An encoder-decoder Transformer that can be seen through.

    import transformer

    checkpoint = transformer.load("checkpoints/zh-en")
    trace = checkpoint.run("我喜欢喝咖啡。")
    trace.output_text, trace.cross.shape, trace.step(2).candidates

To understand the model, read config, masks, positions, attention, layers, model in that order.
"""

from transformer.checkpoint import Checkpoint, load
from transformer.config import ModelConfig
from transformer.curve import Curve, load_curve
from transformer.errors import GlassformerError
from transformer.model import Transformer
from transformer.query import Beam, Greedy, Query, Sampling
from transformer.running import run, run_batch
from transformer.trace import RowLabel, Step, Trace

__all__ = [
    "Beam",
    "Checkpoint",
    "Curve",
    "GlassformerError",
    "Greedy",
    "ModelConfig",
    "Query",
    "RowLabel",
    "Sampling",
    "Step",
    "Trace",
    "Transformer",
    "load",
    "load_curve",
    "run",
    "run_batch",
]
