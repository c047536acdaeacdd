"""Folders as the hub has them, with configs and names of their time, 16 bits and shards, compute the same.

Keys and values are those that such files are known to have, in the spelling of their time; numbers of layers, widths
and pieces are made small, and ids moved into the small vocabulary.
"""

import json

import pytest
import torch
from transformers import AutoConfig

from tests.extensions.huggingface.parity import change, compare, compare_greedy, opened, tiny
from tests.extensions.huggingface.tiny_families import FAMILIES
from transformer.model.positions import halves_table

V = 61
_PAIR = {"vocab_size": V, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "num_hidden_layers": 2,
         "max_position_embeddings": 48, "dropout": 0.1, "attention_dropout": 0.0, "activation_dropout": 0.0,
         "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "init_std": 0.02, "is_encoder_decoder": True,
         "use_cache": True, "classifier_dropout": 0.0}  # fmt: skip
_LABELS = {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "num_labels": 2}
_FAIRSEQ = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
_ROTARY = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "intermediate_size": 40, "vocab_size": V, "max_position_embeddings": 64, "hidden_act": "silu",
           "initializer_range": 0.02, "rms_norm_eps": 1e-05, "use_cache": True, "attention_dropout": 0.0,
           "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
_BERT = {"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 24,
         "initializer_range": 0.02, "intermediate_size": 40, "layer_norm_eps": 1e-12, "max_position_embeddings": 32,
         "num_attention_heads": 4, "num_hidden_layers": 2, "pad_token_id": 0, "type_vocab_size": 2,
         "vocab_size": V}  # fmt: skip
_T5 = {"d_ff": 40, "d_kv": 5, "d_model": 24, "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1,
       "initializer_factor": 1.0, "is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "num_heads": 4,
       "num_layers": 2, "pad_token_id": 0, "relative_attention_num_buckets": 8, "vocab_size": V}  # fmt: skip
_GPT2 = {"activation_function": "gelu_new", "attn_pdrop": 0.1, "bos_token_id": 3, "embd_pdrop": 0.1,
         "eos_token_id": 3, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "n_ctx": 48, "n_embd": 24,
         "n_head": 4, "n_layer": 2, "n_positions": 48, "resid_pdrop": 0.1, "summary_activation": None,
         "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
         "summary_use_proj": True, "vocab_size": V}  # fmt: skip
_LLAMA_3 = {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 16,
            "rope_type": "llama3"}  # fmt: skip

# name -> (config.json, generation_config.json)
HUB = {
    "opus-mt": (
        _PAIR | _LABELS | {
            "model_type": "marian", "_name_or_path": "/tmp/Helsinki-NLP/opus-mt-en-de", "_num_labels": 3,
            "activation_function": "swish", "add_bias_logits": False, "add_final_layer_norm": False,
            "architectures": ["MarianMTModel"], "bad_words_ids": [[60]], "bos_token_id": 0, "eos_token_id": 0,
            "pad_token_id": 60, "decoder_start_token_id": 60, "decoder_vocab_size": V, "extra_pos_embeddings": 60,
            "forced_eos_token_id": 0, "max_length": 30, "normalize_before": False, "normalize_embedding": False,
            "num_beams": 6, "scale_embedding": True, "share_encoder_decoder_embeddings": True,
            "static_position_embeddings": True, "torch_dtype": "float16"},
        {"bad_words_ids": [[60]], "bos_token_id": 0, "decoder_start_token_id": 60, "eos_token_id": 0,
         "forced_eos_token_id": 0, "max_length": 12, "num_beams": 6, "pad_token_id": 60, "renormalize_logits": True},
    ),
    "bart-large-cnn": (
        _PAIR | _LABELS | _FAIRSEQ | {
            "model_type": "bart", "_num_labels": 3, "activation_function": "gelu", "add_final_layer_norm": False,
            "architectures": ["BartForConditionalGeneration"], "early_stopping": True,
            "force_bos_token_to_be_generated": True,
            "forced_bos_token_id": 0, "forced_eos_token_id": 2, "gradient_checkpointing": False,
            "length_penalty": 2.0, "max_length": 14, "min_length": 6, "no_repeat_ngram_size": 3, "num_beams": 4,
            "normalize_before": False, "output_past": True, "prefix": " ", "scale_embedding": False,
            "task_specific_params": {"summarization": {"length_penalty": 2.0}}},
        None,
    ),
    "t5-small": (
        _T5 | {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "n_positions": 512,
               "output_past": True,
               "task_specific_params": {"summarization": {"early_stopping": True, "max_length": 200}}},
        {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "_from_model_config": True},
    ),
    "gpt2": (
        _GPT2 | {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
                 "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}}},
        {"bos_token_id": 3, "eos_token_id": 3, "_from_model_config": True},
    ),
    "Llama-3.2": (
        _ROTARY | {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "attention_bias": False,
                   "head_dim": 8, "mlp_bias": False, "pretraining_tp": 1, "rope_scaling": _LLAMA_3,
                   "rope_theta": 500000.0, "tie_word_embeddings": True, "torch_dtype": "bfloat16"},
        {"bos_token_id": 1, "do_sample": True, "eos_token_id": [2, 4, 5], "temperature": 0.6, "top_p": 0.9},
    ),
    "pythia": (
        {name: value for name, value in _ROTARY.items()
         if name not in ("num_key_value_heads", "rms_norm_eps", "attention_dropout")} | {
            "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"], "hidden_size": 32, "bos_token_id": 0,
            "eos_token_id": 0, "hidden_act": "gelu", "layer_norm_eps": 1e-05, "rotary_emb_base": 10000,
            "rotary_pct": 0.25, "tie_word_embeddings": False, "torch_dtype": "float16",
            "use_parallel_residual": True},
        None,
    ),
    "bert": (
        _BERT | {"model_type": "bert", "architectures": ["BertForMaskedLM"], "gradient_checkpointing": False,
                 "position_embedding_type": "absolute", "use_cache": True},
        None,
    ),
    "roberta": (
        _BERT | {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "bos_token_id": 0,
                 "eos_token_id": 2, "layer_norm_eps": 1e-05, "pad_token_id": 1, "type_vocab_size": 1},
        None,
    ),
}  # fmt: skip


def old_names(kind, name):
    """What first versions called it."""
    if kind == "bert" and "LayerNorm" in name:
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
    return name.removeprefix("transformer.") if kind == "gpt2" else name


def old_tensors(config, state):
    """Copies, masks and numbers of positions that old files hold."""
    kind, both = config["model_type"], ("encoder", "decoder")
    if kind in ("marian", "bart"):
        made = {f"model.{one}.embed_tokens.weight": state["model.shared.weight"] for one in both}
        made["lm_head.weight"] = state["model.shared.weight"]
        if kind == "marian":  # rounded, so that they are the file's and no formula's
            made |= {f"model.{one}.embed_positions.weight": halves_table(48, 24).half() for one in both}
        return made
    if kind in ("gpt2", "gpt_neox"):
        name = "h.{}.attn" if kind == "gpt2" else "gpt_neox.layers.{}.attention"
        made = {f"{name.format(i)}.bias": torch.ones(1, 1, 64, 64, dtype=torch.uint8).tril() for i in range(2)}
        made |= {f"{name.format(i)}.masked_bias": torch.tensor(-1e9) for i in range(2)}
        return made | ({"gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(1)} if kind == "gpt_neox" else {})
    if kind == "t5":
        made = {f"{one}.embed_tokens.weight": state["shared.weight"] for one in both}
        return made | {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.ones(8, 4)}
    places = {f"{kind}.embeddings.position_ids": torch.arange(32)[None]}
    return {
        "llama": {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(3)},
        "bert": places | {f"{one}.{part}": torch.ones((n, 24) if part == "weight" else n)
                          for one, n in (("cls.seq_relationship", 2), ("bert.pooler.dense", 24))
                          for part in ("weight", "bias")},
        "roberta": places | {f"lm_head.decoder.{part}": state[own] for part, own in (
            ("weight", "roberta.embeddings.word_embeddings.weight"), ("bias", "lm_head.bias")) if own in state},
    }[kind]  # fmt: skip


@pytest.mark.parametrize("name", HUB)
def test_a_folder_of_the_hub(tmp_path, name):
    config, generation = HUB[name]
    kind, folder = config["model_type"], tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    model = tiny(FAMILIES[kind].model, AutoConfig.from_pretrained(folder), seed=len(name))
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
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
