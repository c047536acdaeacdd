"""A checkpoint made on the spot: outputs of exactly as many pieces as asked for, and pieces that are markup."""

from __future__ import annotations

import io
from pathlib import Path

import sentencepiece
import torch

from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer

NAME = "made-up"
IMAGE = "<img/src=x/onerror=alert(1)>"
HOSTILE = (
    IMAGE, "<script>alert(2)</script>", "<b>x</b>", "&lt;", "$x^2$", "**b**", "`c`", "[a](http://b.co)", ":red[x]",
    ":streamlit:", "www.example.org", "a@b.co", "%{y}", "<br>", "->", "--", "{{x}}", "שלום",
)  # fmt: skip


def write_made_up(root: Path) -> Path:
    """Write the checkpoint as a folder of `root` and return `root`, for `--checkpoints`."""
    pieces = _vocabulary()
    size = Tokenizer(pieces).size
    config = ModelConfig(
        n_encoder_layers=1,
        n_decoder_layers=2,
        d_model=32,
        n_heads=2,
        d_ff=32,
        src_vocab_size=size,
        tgt_vocab_size=size,
        shared_vocab=True,
        output_bias=True,
        max_len=64,
    )
    torch.manual_seed(1)
    state = Transformer(config).state_dict()
    state["output_bias"][config.eos_id] = -1e4  # it never ends by itself
    state["output_bias"][4 : 4 + len(HOSTILE)] = 3.0  # and it likes markup
    card: dict[str, object] = {
        "title": f"Made up {IMAGE}",
        "description": f"Writes nonsense: {' '.join(HOSTILE)}",
        "examples": ["ba lo mi ta", IMAGE, " ".join(HOSTILE)],
    }
    save(CheckpointContents(config, state, (pieces,), card), root / NAME)
    return root


def _vocabulary() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["ba lo mi ta ke su", "abcdefghijklmnopqrstuvwxyz"]),
        model_writer=model,
        model_type="char",
        vocab_size=100,
        hard_vocab_limit=False,
        user_defined_symbols=list(HOSTILE),
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    return model.getvalue()
