"""A Transformer that shows its insides: an encoder-decoder, encoder-only or decoder-only model.

    import transformer

    checkpoint = transformer.load("checkpoints/zh-en")
    trace = checkpoint.run("我喜欢喝咖啡。")
    trace.output_text, trace.cross.shape, trace.step(2).candidates

To understand the model, read config, anatomy, masks, positions, attention, layers, transformer in
`transformer/model/`, in that order.
"""

from transformer.checkpoint.curve import Curve, load_curve
from transformer.checkpoint.load import Checkpoint
from transformer.doctor.examination import examine
from transformer.errors import GlassformerError
from transformer.importers.handed_pieces import Given
from transformer.importers.opening import QuestionsError, load, preview
from transformer.maps.arrays import given_maps
from transformer.maps.npzfile import load_maps, save_maps
from transformer.maps.own_maps import GivenAttention, GivenMaps
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.interventions import ZeroHead
from transformer.runs.query import Beam, Greedy, Query, Sampling
from transformer.runs.running import run, run_batch
from transformer.runs.showing import compare
from transformer.runs.step import RowLabel, Step
from transformer.runs.teacher_forcing import Score, score
from transformer.runs.trace import Trace

__all__ = [
    "Beam",
    "Checkpoint",
    "Curve",
    "Given",
    "GivenAttention",
    "GivenMaps",
    "GlassformerError",
    "Greedy",
    "ModelConfig",
    "Query",
    "QuestionsError",
    "RowLabel",
    "Sampling",
    "Score",
    "Step",
    "Trace",
    "Transformer",
    "ZeroHead",
    "compare",
    "examine",
    "given_maps",
    "load",
    "load_curve",
    "load_maps",
    "preview",
    "run",
    "run_batch",
    "save_maps",
    "score",
]
