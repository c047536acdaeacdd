"""Configs as well-known folders of the hub have them, in the spelling of their time, with small sizes.

Keys and values are those that such files are known to have; numbers of layers, widths and pieces are made small, and
ids moved into the small vocabulary.
"""

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
