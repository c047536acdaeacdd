"""Keys of a config.json that change no number when a model is run in float32: for training, labels and file formats.

Source: transformers 5.23 and its models' code; the dead switches of older versions are read by no version that runs.
"""

# About the file, the program that wrote it, and how it is run.
BOOKKEEPING = frozenset({
    "architectures", "attn_implementation", "chunk_size_feed_forward", "dtype", "gradient_checkpointing",
    "is_encoder_decoder", "model_type", "output_attentions", "output_hidden_states", "output_past", "return_dict",
    "tokenizer_class", "torch_dtype", "torchscript", "transformers.js_config", "transformers_version", "use_bfloat16",
    "use_cache", "prefix", "cross_attention_hidden_size", "tie_encoder_decoder", "is_llama_config", "save_step",
    "cls_token_id", "mask_token_id", "unk_token_id", "max_sequence_length",
})  # fmt: skip

# Training, and its first values.
TRAINING = frozenset({
    "activation_dropout", "activation_dropout_prob", "attention_dropout", "attention_probs_dropout_prob",
    "attn_pdrop", "classif_dropout", "classifier_dropout", "decoder_layerdrop", "dropout", "dropout_rate",
    "embd_pdrop",
    "encoder_layerdrop", "hidden_dropout", "hidden_dropout_prob", "init_std", "initializer_factor",
    "initializer_range", "layerdrop", "pretraining_tp", "qa_dropout", "replacing_rate", "resid_pdrop",
    "seq_classif_dropout", "student_decoder_layers", "student_encoder_layers",
})  # fmt: skip

# Heads for other tasks.
TASKS = frozenset({
    "directionality", "finetuning_task", "id2label", "label2id", "num_labels", "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "problem_type",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params",
})  # fmt: skip

# Switches that no code reads any more.
DEAD = frozenset({
    "add_bias_logits", "add_final_layer_norm", "extra_pos_embeddings", "n_ctx", "normalize_before",
    "normalize_embedding", "reorder_and_upcast_attn", "static_position_embeddings",
})  # fmt: skip

# Ask for code out of the folder to be run. transformers runs none unless it is told to, and this program never does.
ASKS_FOR_CODE = frozenset({"auto_map", "custom_pipelines", "trust_remote_code"})

WITHOUT_EFFECT = ASKS_FOR_CODE | BOOKKEEPING | TRAINING | TASKS | DEAD
