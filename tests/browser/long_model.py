"""A checkpoint made on the spot for long inputs: 6+6 layers of 8 heads, one piece a letter, any number of them.

Its parameters are random, with queries and keys so large that heads differ and look at some places more than at
others, as trained heads do.
"""

from __future__ import annotations

import io
from pathlib import Path

import sentencepiece
import torch

from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer

NAME = "long"
N_LAYERS, N_HEADS = 6, 8
MAX_LEN = 640
SHARPNESS = 3.0  # the largest weight of a row is then about 0.55
_SYLLABLES = ("ba", "lo", "mi", "ta", "ke", "su", "rin", "dol")


def long_source(n_pieces: int) -> str:
    """A text of made-up words that the encoder reads as `n_pieces` pieces, its end piece included."""
    words = (_SYLLABLES[place % 8] + _SYLLABLES[place * place % 7] for place in range(n_pieces))
    letters = " ".join(words)[: n_pieces - 2]  # a space mark comes first, the end piece last
    return letters[:-1] + "a"  # a text does not end with a space


def write_long_model(root: Path) -> Path:
    """Write the checkpoint as a folder of `root` and return `root`, for `--checkpoints`."""
    pieces = _vocabulary()
    size = Tokenizer(pieces).size
    config = ModelConfig(
        n_encoder_layers=N_LAYERS,
        n_decoder_layers=N_LAYERS,
        d_model=128,
        n_heads=N_HEADS,
        d_ff=256,
        src_vocab_size=size,
        tgt_vocab_size=size,
        shared_vocab=True,
        output_bias=True,
        tie_output=False,
        max_len=MAX_LEN,
    )
    torch.manual_seed(1)
    state = Transformer(config).state_dict()
    for name, value in state.items():
        if name.endswith(("_attn.q_proj.weight", "_attn.k_proj.weight")):
            value *= SHARPNESS
    state["output_bias"][config.eos_id] = -1e4  # it never ends by itself
    card: dict[str, object] = {"title": "Long inputs", "examples": ["balo mita"]}
    save(CheckpointContents(config, state, (pieces,), card), root / NAME)
    return root


def _vocabulary() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["ba lo mi ta ke su rin dol", "abcdefghijklmnopqrstuvwxyz"]),
        model_writer=model,
        model_type="char",
        vocab_size=100,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return model.getvalue()
