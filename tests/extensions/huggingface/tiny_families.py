"""Tiny models of each family. A row is all that the tests of this folder need of a new family.

`test_family_folders` compares the numbers and the outputs of each row and of its variants with transformers,
`test_config_spellings` those of other spellings of its config, and `test_hostile` damages its folder.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import transformers as library

from tests.extensions.huggingface.parity import tiny

_SIDES = {f"{side}_{name}": value for side, n in (("encoder", 1), ("decoder", 2))
          for name, value in (("layers", n), ("attention_heads", 2), ("ffn_dim", 10))}  # fmt: skip
_PAIR = {"vocab_size": 31, "d_model": 8, "max_position_embeddings": 16, **_SIDES}
_ALONE = {"vocab_size": 31, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
          "intermediate_size": 10, "max_position_embeddings": 16}  # fmt: skip
_ROTARY = _ALONE | {"num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
_T5 = {"vocab_size": 31, "d_model": 8, "d_kv": 3, "d_ff": 10, "num_layers": 2, "num_decoder_layers": 2,
       "num_heads": 2, "relative_attention_num_buckets": 6, "relative_attention_max_distance": 9,
       "decoder_start_token_id": 0}  # fmt: skip
_LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8, "rope_theta": 500.0}  # fmt: skip
_GPT2 = {"vocab_size": 31, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16, "bos_token_id": 3,
         "eos_token_id": 3}  # fmt: skip
_MARIAN = {"decoder_vocab_size": 31, "pad_token_id": 30, "eos_token_id": 0, "decoder_start_token_id": 30}
_DISTIL = {"vocab_size": 31, "dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 10, "max_position_embeddings": 16}

# Larger ones, for variants.
_LARGE_PAIR = {"vocab_size": 61, "d_model": 24, "max_position_embeddings": 48,
               **{f"{side}_{name}": value for side, n in (("encoder", 2), ("decoder", 3))
                  for name, value in (("layers", n), ("attention_heads", 4), ("ffn_dim", 40))}}  # fmt: skip
_OWN_DECODER = _LARGE_PAIR | {"decoder_attention_heads": 2, "decoder_ffn_dim": 28}
_LARGE = {"vocab_size": 61, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
          "intermediate_size": 40, "max_position_embeddings": 64}  # fmt: skip
_LARGE_ROTARY = _LARGE | {"num_key_value_heads": 2, "bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": None}
_LARGE_MARIAN = {**_LARGE_PAIR, "decoder_vocab_size": 61, "pad_token_id": 60, "decoder_start_token_id": 60,
                 "scale_embedding": True, "activation_function": "swish"}  # fmt: skip
_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 100.0}
_LARGE_DISTIL = {"vocab_size": 61, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40,
                 "max_position_embeddings": 32}  # fmt: skip
_LARGE_T5 = _T5 | {"vocab_size": 61, "d_model": 24, "d_kv": 5, "d_ff": 40, "num_layers": 3, "num_heads": 4}


class Row(NamedTuple):
    """A family."""

    model: Any  # its class in transformers
    config: Any
    sizes: dict[str, Any]  # of the smallest model
    variants: Mapping[str, dict[str, Any]] = MappingProxyType({})  # what else its config may say


def _written(start: int = 2, *names: str) -> dict[str, dict[str, Any]]:
    """Variants of a family with an encoder and a decoder, all or these: functions, scales, widths, a forced piece."""
    said = _LARGE_PAIR | {"forced_bos_token_id": 5, "decoder_start_token_id": start}
    made = {
        "relu, scaled": said | {"activation_function": "relu", "scale_embedding": True},
        "gelu": said | {"activation_function": "gelu", "scale_embedding": False},
        "own decoder": _OWN_DECODER | {"decoder_start_token_id": start},
    }
    return {name: made[name] for name in names or made}


# By the model_type.
FAMILIES = {
    "marian": Row(library.MarianMTModel, library.MarianConfig, _PAIR | _MARIAN, {
        "swish, scaled": _LARGE_MARIAN, "own decoder": _LARGE_MARIAN | _OWN_DECODER,
        "own tables": _LARGE_MARIAN | {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 53,
                                       "pad_token_id": 52, "decoder_start_token_id": 52}}),
    "bart": Row(library.BartForConditionalGeneration, library.BartConfig, _PAIR, _written()),
    "mbart": Row(library.MBartForConditionalGeneration, library.MBartConfig,
                 _PAIR | {"decoder_start_token_id": 2}, _written(2, "relu, scaled")),
    "pegasus": Row(library.PegasusForConditionalGeneration, library.PegasusConfig, _PAIR, _written(0, "gelu")),
    "m2m_100": Row(library.M2M100ForConditionalGeneration, library.M2M100Config, _PAIR, _written(2, "own decoder")),
    "t5": Row(library.T5ForConditionalGeneration, library.T5Config, _T5, {"large": _LARGE_T5}),
    "mt5": Row(library.MT5ForConditionalGeneration, library.MT5Config, _T5, {"large": _LARGE_T5}),
    "gpt2": Row(library.GPT2LMHeadModel, library.GPT2Config, _GPT2, {
        "unscaled": {"n_inner": 40, "scale_attn_weights": False, "layer_norm_epsilon": 1e-3},
        "own output": {"tie_word_embeddings": False}}),
    "llama": Row(library.LlamaForCausalLM, library.LlamaConfig, _ROTARY | {"rope_parameters": _LLAMA_3}, {
        "plain": _LARGE_ROTARY,
        "biases": _LARGE_ROTARY | {"rope_parameters": _LLAMA_3, "head_dim": 8, "attention_bias": True},
        "yarn": _LARGE_ROTARY | {"rope_parameters": _YARN, "mlp_bias": True},
        "tied": _LARGE_ROTARY | {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}}),
    "mistral": Row(library.MistralForCausalLM, library.MistralConfig, _ROTARY | {"sliding_window": 4}, {
        "windows": _LARGE_ROTARY | {"sliding_window": 7, "head_dim": 8},
        "whole": _LARGE_ROTARY | {"sliding_window": None, "head_dim": 6}}),
    "qwen2": Row(library.Qwen2ForCausalLM, library.Qwen2Config, _ROTARY | {
        "use_sliding_window": True, "max_window_layers": 1, "sliding_window": 4}, {
        "windows": _LARGE_ROTARY | {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}}),
    "qwen3": Row(library.Qwen3ForCausalLM, library.Qwen3Config, _ROTARY | {"head_dim": 6}, {
        "tied": _LARGE_ROTARY | {"head_dim": 10, "tie_word_embeddings": True}}),
    "smollm3": Row(library.SmolLM3ForCausalLM, library.SmolLM3Config, _ROTARY | {
        "use_sliding_window": True, "sliding_window": 4}, {
        "placed": _LARGE_ROTARY | {"no_rope_layers": [1, 0, 1]}}),
    "gemma": Row(library.GemmaForCausalLM, library.GemmaConfig, _ROTARY | {"head_dim": 4}, {
        "large": _LARGE_ROTARY | {"head_dim": 8}}),
    "gemma2": Row(library.Gemma2ForCausalLM, library.Gemma2Config, _ROTARY | {"head_dim": 4, "sliding_window": 4}, {
        "caps": _LARGE_ROTARY | {"head_dim": 8, "query_pre_attn_scalar": 11, "sliding_window": 6,
                                 "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}}),
    "gemma3_text": Row(library.Gemma3ForCausalLM, library.Gemma3TextConfig,
                       _ROTARY | {"head_dim": 4, "sliding_window": 4}, {
        "kinds": _LARGE_ROTARY | {"head_dim": 8, "query_pre_attn_scalar": 11, "sliding_window": 6,
                                  "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}}),
    "gpt_neox": Row(library.GPTNeoXForCausalLM, library.GPTNeoXConfig, _ALONE | {"hidden_size": 16}, {
        "large": _LARGE | {"hidden_size": 32, "bos_token_id": 1, "eos_token_id": 2}}),
    "bert": Row(library.BertForMaskedLM, library.BertConfig, _ALONE, {
        "tanh": _LARGE | {"hidden_act": "gelu_new"},
        "own table": _LARGE | {"tie_word_embeddings": False, "type_vocab_size": 3}}),
    "roberta": Row(library.RobertaForMaskedLM, library.RobertaConfig, _ALONE, {
        "relu": _LARGE | {"type_vocab_size": 1, "hidden_act": "relu", "layer_norm_eps": 1e-5},
        "other padding": _LARGE | {"pad_token_id": 3, "hidden_act": "silu"}}),
    "distilbert": Row(library.DistilBertForMaskedLM, library.DistilBertConfig, _DISTIL, {
        "large": _LARGE_DISTIL,
        "sinusoids": _LARGE_DISTIL | {"n_layers": 2, "activation": "relu", "sinusoidal_pos_embds": True}}),
}  # fmt: skip


def model_of(family, variant="", **changes):
    """A model of a family with random values."""
    kind, config, sizes, variants = FAMILIES[family]
    return tiny(kind, config(**(sizes | variants.get(variant, {}) | changes)))
