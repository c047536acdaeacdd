"""Tiny checkpoint folders of a decoder alone and of an encoder alone, written with `save` and opened with `load`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conftest import SOURCES, TARGETS
from tests.transformer.learned_pieces import learn_pieces
from tests.transformer.tiny import tiny_model
from transformer.checkpoint.load import Checkpoint, load
from transformer.checkpoint.save import CheckpointContents, save
from transformer.text.tokenizer import Tokenizer

ALONE: dict[str, dict[str, Any]] = {
    "decoder": {"n_encoder_layers": 0, "append_source_eos": False, "prepend_source_bos": True, "n_kv_heads": 1},
    "encoder": {"n_decoder_layers": 0, "d_head": 5},
}


def written(folder: Path, title: str, changes: Mapping[str, Any], *, mask: str = "") -> Checkpoint:
    """Write a model with one small vocabulary and open it."""
    pieces = learn_pieces(SOURCES + TARGETS, size=48, user_defined_symbols=[mask] if mask else [])
    size = Tokenizer(pieces).size
    sizes = {"src_vocab_size": size, "tgt_vocab_size": size, "shared_vocab": True, "max_len": 24}
    model = tiny_model(**(sizes | changes))
    save(CheckpointContents(model.config, model.state_dict(), (pieces,), {"title": title}), folder)
    return load(folder)


def alone(stack: str, folder: Path, **changes: Any) -> Checkpoint:
    """Write a model of one stack and open it."""
    return written(folder / f"{stack} alone", stack, ALONE[stack] | changes)
