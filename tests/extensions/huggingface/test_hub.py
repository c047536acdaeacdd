"""Folders as the hub has them, with configs and names of their time, 16 bits and shards, compute the same."""

import json

import pytest
import torch
from transformers import AutoConfig

from tests.extensions.huggingface.hub_configs import HUB
from tests.extensions.huggingface.parity import change, compare, compare_greedy, opened, tiny
from tests.extensions.huggingface.tiny_families import FAMILIES
from transformer.model.positions import halves_table


def old_names(kind, name):
    """What first versions called it."""
    if kind == "bert" and "LayerNorm" in name:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    return name.removeprefix("transformer.") if kind == "gpt2" else name


def old_tensors(config, state):
    """Copies, masks and numbers of positions that old files hold."""
    kind = config["model_type"]
    if kind in ("marian", "bart"):
        table = state["model.shared.weight"]
        copies = {f"model.{one}.embed_tokens.weight": table for one in ("encoder", "decoder")}
        sines = {f"model.{one}.embed_positions.weight": halves_table(48, 24) for one in ("encoder", "decoder")}
        # Rounded, so that they are the file's and no formula's.
        rounded = {name: sine.half() for name, sine in sines.items()} if kind == "marian" else {}
        return {**copies, "lm_head.weight": table, **rounded}
    if kind == "t5":
        return {f"{one}.embed_tokens.weight": state["shared.weight"] for one in ("encoder", "decoder")} | {
            "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.ones(8, 4)}  # fmt: skip
    if kind in ("gpt2", "gpt_neox"):
        name = "h.{}.attn" if kind == "gpt2" else "gpt_neox.layers.{}.attention"
        masks = {f"{name.format(i)}.bias": torch.ones(1, 1, 64, 64, dtype=torch.uint8).tril() for i in range(2)}
        masks |= {f"{name.format(i)}.masked_bias": torch.tensor(-1e9) for i in range(2)}
        turns = {"gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(1)} if kind == "gpt_neox" else {}
        return masks | turns
    if kind == "llama":
        return {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)}
    if kind == "bert":
        tasks = {"cls.seq_relationship.weight": torch.ones(2, 24), "cls.seq_relationship.bias": torch.ones(2)}
        pooler = {"bert.pooler.dense.weight": torch.ones(24, 24), "bert.pooler.dense.bias": torch.ones(24)}
        return {"bert.embeddings.position_ids": torch.arange(32)[None], **pooler, **tasks}
    if kind == "roberta":
        copies = {"lm_head.decoder.weight": state["roberta.embeddings.word_embeddings.weight"],
                  "lm_head.decoder.bias": state["lm_head.bias"]}  # fmt: skip
        return {"roberta.embeddings.position_ids": torch.arange(32)[None], **copies}
    return {}


@pytest.mark.parametrize("name", HUB)
def test_a_folder_of_the_hub(tmp_path, name):
    config, generation = HUB[name]
    kind, folder = config["model_type"], tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    model = tiny(FAMILIES[kind].model, AutoConfig.from_pretrained(folder), seed=len(name))
    model.save_pretrained(folder)
    for one in folder.glob("generation_config.json"):
        one.unlink()
    (folder / "config.json").write_text(json.dumps(config))
    half = torch.bfloat16 if config.get("torch_dtype") == "bfloat16" else torch.float16
    change(
        folder, rename=lambda own: old_names(kind, own), dtype=half, shards=2, extra=lambda s: old_tensors(config, s)
    )
    if generation is not None:
        (folder / "generation_config.json").write_text(json.dumps(generation))
    theirs = FAMILIES[kind].model.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    ours = opened(folder)
    assert ours.config.positions != "sinusoidal" or kind != "marian"
    compare(theirs, ours, pad=ours.config.pad_id)
    if ours.config.n_decoder_layers:
        compare_greedy(theirs, ours, new=12, n=2)  # more of them in the tests of each family
