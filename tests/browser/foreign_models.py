"""Tiny random models as other programs save them: a tutorial's file, and a folder of Hugging Face's.

The folder is written by hand, with names and keys as its files have them: the library that saves such folders
takes seconds to import. Those that it does save are opened in `tests/extensions/huggingface`.
"""

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from tests.extensions.tokenizers import foreign

REVERSE = Path(__file__).parents[2] / "checkpoints" / "reverse"
WIDTH, INNER, LENGTH, LAYERS, HEADS = 16, 24, 64, 2, 2

NAMES = {
    "self_attn_residual.norm": "norm1", "cross_attn_residual.norm": "norm2", "up_proj": "linear1",
    "down_proj": "linear2", "embedding.positions.table": "pos_embedding.weight", "src_table": "embedding.weight",
}  # fmt: skip


def tutorial(folder):
    """The model that reverses letters, as a reader of a tutorial would have saved it, and its tokenizer beside it."""
    state = {}
    for name, value in load_file(REVERSE / "model.safetensors").items():
        for ours, theirs in NAMES.items():
            name = name.replace(ours, theirs)
        last = "norm2" if name.startswith("encoder") else "norm3"
        state[name.replace("ffn_residual.norm", last)] = value.float()
    torch.save(state | {"fc_out.weight": state["embedding.weight"]}, folder / "lesson.pt")
    shutil.copy(REVERSE / "pieces.model", folder / "letters.model")


def linear(name, inputs=WIDTH, outputs=WIDTH):
    return {f"{name}.weight": torch.randn(outputs, inputs) * inputs**-0.5, f"{name}.bias": 0.3 * torch.randn(outputs)}


def norm(name):
    return {f"{name}.weight": 1 + 0.3 * torch.randn(WIDTH), f"{name}.bias": 0.3 * torch.randn(WIDTH)}


def table(name, rows):
    return {f"{name}.weight": 0.3 * torch.randn(rows, WIDTH)}


def marian(folder):
    torch.manual_seed(0)
    files = foreign.marian()
    pieces = json.loads(files["vocab.json"])
    size, pad = len(pieces), pieces["<pad>"]
    state = table("model.shared", size) | {"final_logits_bias": 0.3 * torch.randn(1, size)}
    for stack, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "encoder_attn"])):
        for name in (f"model.{stack}.layers.{i}" for i in range(LAYERS)):
            for attention in attentions:
                for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    state |= linear(f"{name}.{attention}.{part}")
                state |= norm(f"{name}.{attention}_layer_norm")
            state |= linear(f"{name}.fc1", outputs=INNER) | linear(f"{name}.fc2", inputs=INNER)
            state |= norm(f"{name}.final_layer_norm")
    sizes = {"layers": LAYERS, "attention_heads": HEADS, "ffn_dim": INNER}
    stacks = {f"{stack}_{key}": value for stack in ("encoder", "decoder") for key, value in sizes.items()}
    ids = {"pad_token_id": pad, "eos_token_id": 0, "decoder_start_token_id": pad}
    config = {"model_type": "marian", "vocab_size": size, "d_model": WIDTH, "max_position_embeddings": LENGTH,
              "activation_function": "gelu", "is_encoder_decoder": True}  # fmt: skip
    _write(folder, files, state, config | stacks | ids, ids)


def _write(folder, files, state, config, generation):
    save_file(state, folder / "model.safetensors")
    for name, record in (("config.json", config), ("generation_config.json", generation)):
        (folder / name).write_text(json.dumps(record))
    for name, content in files.items():
        (folder / name).write_bytes(content)
