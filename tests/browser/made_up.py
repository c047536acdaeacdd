"""Checkpoints made on the spot that write outputs of any length: one likes markup, one has 6+6 layers of 8 heads."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sentencepiece
import torch

from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer

NAME, LONG_NAME = "made-up", "long"
IMAGE = "<img/src=x/onerror=alert(1)>"
HOSTILE = (
    IMAGE, "<script>alert(2)</script>", "<b>x</b>", "&lt;", "$x^2$", "**b**", "`c`", "[a](http://b.co)", ":red[x]",
    ":streamlit:", "www.example.org", "a@b.co", "%{y}", "<br>", "->", "--", "{{x}}", "שלום",
)  # fmt: skip
MAX_LEN = 640
SHARPNESS = 3.0  # the largest weight of a row is then about 0.55
SYLLABLES = ("ba", "lo", "mi", "ta", "ke", "su", "rin", "dol")


def write_made_up(root: Path) -> Path:
    """Write the checkpoint of pieces that are markup as a folder of `root`; return `root`, for `--checkpoints`."""

    def likes_markup(state: dict[str, torch.Tensor]) -> None:
        state["output_bias"][4 : 4 + len(HOSTILE)] = 3.0

    card: dict[str, object] = {
        "title": f"Made up {IMAGE}",
        "description": f"Writes nonsense: {' '.join(HOSTILE)}",
        "examples": ["ba lo mi ta", IMAGE, " ".join(HOSTILE)],
    }
    sizes: dict[str, Any] = {
        "n_encoder_layers": 1,
        "n_decoder_layers": 2,
        "d_model": 32,
        "n_heads": 2,
        "d_ff": 32,
        "max_len": 64,
    }
    return _write(root, NAME, likes_markup, card, symbols=HOSTILE, **sizes)


def write_long_model(root: Path) -> Path:
    """The same for long inputs, one piece a letter; its heads differ and look at some places more than at others."""

    def looks(state: dict[str, torch.Tensor]) -> None:
        for name, value in state.items():
            if name.endswith(("_attn.q_proj.weight", "_attn.k_proj.weight")):
                value *= SHARPNESS

    card: dict[str, object] = {"title": "Long inputs", "examples": ["balo mita"]}
    sizes: dict[str, Any] = {"n_encoder_layers": 6, "n_decoder_layers": 6, "d_model": 128, "n_heads": 8, "d_ff": 256}
    return _write(root, LONG_NAME, looks, card, tie_output=False, max_len=MAX_LEN, **sizes)


def long_source(n_pieces: int) -> str:
    """A text of made-up words that the encoder reads as `n_pieces` pieces, its end piece included."""
    words = (SYLLABLES[place % 8] + SYLLABLES[place * place % 7] for place in range(n_pieces))
    letters = " ".join(words)[: n_pieces - 2]  # a space mark comes first, the end piece last
    return letters[:-1] + "a"  # a text does not end with a space


def _write(
    root: Path,
    name: str,
    change: Callable[[dict[str, torch.Tensor]], None],
    card: dict[str, object],
    symbols: tuple[str, ...] = (),
    **sizes: Any,
) -> Path:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter([" ".join(SYLLABLES), "abcdefghijklmnopqrstuvwxyz"]), model_writer=model,
        model_type="char", vocab_size=100, hard_vocab_limit=False, user_defined_symbols=list(symbols),
        pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2,
    )  # fmt: skip
    size = Tokenizer(model.getvalue()).size
    config = ModelConfig(src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True, output_bias=True, **sizes)
    torch.manual_seed(1)
    state = Transformer(config).state_dict()
    change(state)
    state["output_bias"][config.eos_id] = -1e4  # it never ends by itself
    save(CheckpointContents(config, state, (model.getvalue(),), card), root / name)
    return root
