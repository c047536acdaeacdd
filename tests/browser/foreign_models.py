"""Tiny random models as other programs save them: a tutorial's file, and folders of Hugging Face's.

The folders are written by hand, with names and keys as their files have them: the library that saves such folders
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


def columns(made):
    """As GPT-2 stores its matrices: [in, out]."""
    return {name: value.t().contiguous() if value.dim() == 2 else value for name, value in made.items()}


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


def gpt2(folder):
    torch.manual_seed(0)
    files = foreign.byte_pairs()
    size = len(json.loads(files["vocab.json"]))
    state = table("transformer.wte", size) | table("transformer.wpe", LENGTH) | norm("transformer.ln_f")
    for name in (f"transformer.h.{i}" for i in range(LAYERS)):
        state |= norm(f"{name}.ln_1") | norm(f"{name}.ln_2")
        state |= columns(linear(f"{name}.attn.c_attn", outputs=3 * WIDTH) | linear(f"{name}.attn.c_proj"))
        state |= columns(linear(f"{name}.mlp.c_fc", outputs=4 * WIDTH) | linear(f"{name}.mlp.c_proj", 4 * WIDTH))
    ids = {"bos_token_id": 0, "eos_token_id": 0}
    config = {"model_type": "gpt2", "vocab_size": size, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS,
              "n_positions": LENGTH}  # fmt: skip
    _write(folder, files, state, config | ids, ids)


def bert(folder):
    torch.manual_seed(0)
    files = foreign.word_pieces()
    size = files["vocab.txt"].count(b"\n")
    rows = {"word": size, "position": LENGTH, "token_type": 2}
    state = norm("bert.embeddings.LayerNorm") | {"cls.predictions.bias": 0.3 * torch.randn(size)}
    for kind, n in rows.items():
        state |= table(f"bert.embeddings.{kind}_embeddings", n)
    for name in (f"bert.encoder.layer.{i}" for i in range(LAYERS)):
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            state |= linear(f"{name}.attention.{part}")
        state |= linear(f"{name}.intermediate.dense", outputs=INNER) | linear(f"{name}.output.dense", inputs=INNER)
        state |= norm(f"{name}.attention.output.LayerNorm") | norm(f"{name}.output.LayerNorm")
    head = "cls.predictions.transform"
    state |= linear(f"{head}.dense") | norm(f"{head}.LayerNorm")
    config = {"model_type": "bert", "vocab_size": size, "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
              "num_attention_heads": HEADS, "intermediate_size": INNER, "max_position_embeddings": LENGTH,
              "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0}  # fmt: skip
    _write(folder, files, state, config, {})


def _write(folder, files, state, config, generation):
    save_file(state, folder / "model.safetensors")
    for name, record in (("config.json", config), ("generation_config.json", generation)):
        (folder / name).write_text(json.dumps(record))
    for name, content in files.items():
        (folder / name).write_bytes(content)
