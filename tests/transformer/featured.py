"""Tiny checkpoint folders of models with features of positions and attention, saved and opened."""

from pathlib import Path
from typing import Any

from tests.transformer.one_stack import ALONE, written
from transformer.analysis.hidden_pieces import MASK_PIECES
from transformer.checkpoint.load import Checkpoint
from transformer.model.attention_features import Rotary

FEATURED: dict[str, dict[str, Any]] = {
    "halves": {"sinusoid_layout": "halves", "norm": "post", "final_norm": False},
    "fairseq": {"sinusoid_layout": "fairseq"},
    "relative": {"positions": "relative", "relative_buckets": 8, "relative_distance": 12, "score_scale": 1.0,
                 "bias": False, "d_head": 5},
    "own decoder": {"n_decoder_heads": 2, "d_decoder_ff": 28},
    "rotary": {**ALONE["decoder"], "positions": "rotary"},
    "windows": {**ALONE["decoder"], "positions": "rotary", "rotary": Rotary(base=1e6, local_base=1e4),
                "windows": (3, 0, 2), "qk_norm": True, "score_cap": 5.0, "score_scale": 0.3, "unplaced_layers": (1,)},
    "alibi": {**ALONE["decoder"], "positions": "alibi", "mask_fill": -1e9},
    "no positions": {**ALONE["encoder"], "positions": "none"},
}  # fmt: skip


def filling(folder: Path, **changes: Any) -> Checkpoint:
    """Write an encoder alone with an MLM head and a mask piece, and open it."""
    fills = {"n_decoder_layers": 0, "mlm_head": True, "prepend_source_bos": True}
    return written(folder / "filling", "filling", fills | changes, mask=MASK_PIECES[0])


def featured(name: str, folder: Path) -> Checkpoint:
    """Write the model of that name and open it."""
    return written(folder / name, name, FEATURED[name])
