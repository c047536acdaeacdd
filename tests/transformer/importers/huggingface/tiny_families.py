"""The smallest model of each family, for tests that look at folders and not at numbers."""

import transformers as library

_SIDES = {f"{side}_{name}": value for side, n in (("encoder", 1), ("decoder", 2))
          for name, value in (("layers", n), ("attention_heads", 2), ("ffn_dim", 10))}  # fmt: skip
_PAIR = {"vocab_size": 31, "d_model": 8, "max_position_embeddings": 16, **_SIDES}
_ALONE = {"vocab_size": 31, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2,
          "intermediate_size": 10, "max_position_embeddings": 16}  # fmt: skip
_ROTARY = _ALONE | {"num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None}
_T5 = {"vocab_size": 31, "d_model": 8, "d_kv": 3, "d_ff": 10, "num_layers": 1, "num_decoder_layers": 2,
       "num_heads": 2, "relative_attention_num_buckets": 6, "relative_attention_max_distance": 9}  # fmt: skip
_LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8, "rope_theta": 500.0}  # fmt: skip
_GPT2 = {"vocab_size": 31, "n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": 16, "bos_token_id": 3,
         "eos_token_id": 3}  # fmt: skip
_MARIAN = {"decoder_vocab_size": 31, "pad_token_id": 30, "eos_token_id": 0, "decoder_start_token_id": 30}
_DISTIL = {"vocab_size": 31, "dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 10, "max_position_embeddings": 16}

# model_type -> the model's class, its config's class and its sizes
FAMILIES = {
    "marian": (library.MarianMTModel, library.MarianConfig, _PAIR | _MARIAN),
    "bart": (library.BartForConditionalGeneration, library.BartConfig, _PAIR),
    "mbart": (library.MBartForConditionalGeneration, library.MBartConfig, _PAIR),
    "pegasus": (library.PegasusForConditionalGeneration, library.PegasusConfig, _PAIR),
    "m2m_100": (library.M2M100ForConditionalGeneration, library.M2M100Config, _PAIR),
    "t5": (library.T5ForConditionalGeneration, library.T5Config, _T5),
    "mt5": (library.MT5ForConditionalGeneration, library.MT5Config, _T5),
    "gpt2": (library.GPT2LMHeadModel, library.GPT2Config, _GPT2),
    "llama": (library.LlamaForCausalLM, library.LlamaConfig, _ROTARY | {"rope_parameters": _LLAMA_3}),
    "mistral": (library.MistralForCausalLM, library.MistralConfig, _ROTARY | {"sliding_window": 4}),
    "qwen2": (library.Qwen2ForCausalLM, library.Qwen2Config, _ROTARY | {"use_sliding_window": True}),
    "qwen3": (library.Qwen3ForCausalLM, library.Qwen3Config, _ROTARY | {"head_dim": 6}),
    "smollm3": (library.SmolLM3ForCausalLM, library.SmolLM3Config, _ROTARY),
    "gemma": (library.GemmaForCausalLM, library.GemmaConfig, _ROTARY | {"head_dim": 4}),
    "gemma2": (library.Gemma2ForCausalLM, library.Gemma2Config, _ROTARY | {"head_dim": 4, "sliding_window": 4}),
    "gemma3_text": (library.Gemma3ForCausalLM, library.Gemma3TextConfig,
                    _ROTARY | {"head_dim": 4, "sliding_window": 4}),
    "gpt_neox": (library.GPTNeoXForCausalLM, library.GPTNeoXConfig, _ALONE | {"hidden_size": 16}),
    "bert": (library.BertForMaskedLM, library.BertConfig, _ALONE),
    "roberta": (library.RobertaForMaskedLM, library.RobertaConfig, _ALONE),
    "distilbert": (library.DistilBertForMaskedLM, library.DistilBertConfig, _DISTIL),
}  # fmt: skip
