"""LLaMA, Mistral, Qwen, SmolLM3, Gemma and GPT-NeoX folders: the numbers and the outputs of transformers."""

import pytest
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GemmaConfig,
    GemmaForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
)

from tests.transformer.importers.huggingface.parity import (
    change_config,
    compare,
    compare_greedy,
    opened,
    saved,
    tiny,
)
from transformer.errors import CheckpointError
from transformer.importers.huggingface.folder import import_folder

SIZES = {
    "vocab_size": 61,
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
IDS = {"bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": None}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32, "rope_theta": 500.0}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 100.0}
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]
NEOX = {name: value for name, value in SIZES.items() if name != "num_key_value_heads"} | {"hidden_size": 32}
CASES = {
    "llama": (LlamaForCausalLM, LlamaConfig, {}),
    "llama 3": (LlamaForCausalLM, LlamaConfig, {"rope_parameters": LLAMA3, "head_dim": 8, "attention_bias": True}),
    "llama, yarn": (LlamaForCausalLM, LlamaConfig, {"rope_parameters": YARN, "mlp_bias": True}),
    "llama, tied": (LlamaForCausalLM, LlamaConfig, {"tie_word_embeddings": True, "rms_norm_eps": 1e-5}),
    "mistral": (MistralForCausalLM, MistralConfig, {"sliding_window": 7, "head_dim": 8}),
    "mistral, whole": (MistralForCausalLM, MistralConfig, {"sliding_window": None, "head_dim": 6}),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, {"use_sliding_window": True, "sliding_window": 6,
                                              "max_window_layers": 1}),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, {"head_dim": 10, "tie_word_embeddings": True}),
    "smollm3": (SmolLM3ForCausalLM, SmolLM3Config, {"no_rope_layers": [1, 0, 1]}),
    "gemma": (GemmaForCausalLM, GemmaConfig, {"head_dim": 8}),
    "gemma 2": (Gemma2ForCausalLM, Gemma2Config, {"head_dim": 8, "query_pre_attn_scalar": 11, "sliding_window": 6,
                                                 "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    "gemma 3": (Gemma3ForCausalLM, Gemma3TextConfig, {"head_dim": 8, "query_pre_attn_scalar": 11, "sliding_window": 6,
                                                     "layer_types": LAYERS}),
}  # fmt: skip


def made(name, **changes):
    kind, config, own = CASES[name]
    return tiny(kind, config(**(SIZES | IDS | own | changes)))


@pytest.mark.parametrize("name", CASES)
def test_as_it_is_saved_now(tmp_path, name):
    model = made(name)
    ours = opened(saved(model, tmp_path / "m", **IDS))
    assert ours.config.end_ids == (2, 3)
    compare(model, ours, pad=None)
    compare_greedy(model, ours, pad_token_id=0, eos_token_id=[2, 3])


def test_gemma_3_in_the_old_spelling(tmp_path):
    """Two bases beside each other, and a pattern in the place of the kinds of layers."""
    model = made("gemma 3", rope_parameters={
        "sliding_attention": {"rope_type": "default", "rope_theta": 70.0},
        "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 900.0}})  # fmt: skip
    folder = saved(model, tmp_path / "m", **IDS)
    ours = opened(folder)
    compare(model, ours, pad=None)
    old = {"rope_theta": 900.0, "rope_local_base_freq": 70.0, "rope_scaling": {"rope_type": "linear", "factor": 3.0}}
    change_config(folder, **old, sliding_window_pattern=2, drop=("rope_parameters", "layer_types", "dtype"))
    again = import_folder(folder).parts.config
    assert (again.rotary, again.windows) == (ours.config.rotary, ours.config.windows)


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("spelling", ["new", "old"])
def test_neox(tmp_path, parallel, spelling):
    """Heads that turn in part, and rows of queries, keys and values that take turns by heads."""
    rope = {"rope_theta": 300.0, "partial_rotary_factor": 0.5, "rope_type": "default"}
    config = GPTNeoXConfig(
        **NEOX, bos_token_id=1, eos_token_id=2, rope_parameters=rope, use_parallel_residual=parallel
    )
    model = tiny(GPTNeoXForCausalLM, config)
    folder = saved(model, tmp_path / "m", eos_token_id=2)
    if spelling == "old":
        change_config(folder, rotary_pct=0.5, rotary_emb_base=300, drop=("rope_parameters", "dtype"))
    ours = opened(folder)
    assert (ours.config.parallel_residual, ours.config.rotary.share) == (parallel, 0.5)
    compare(model, ours, pad=None)
    compare_greedy(model, ours, pad_token_id=0)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("llama", "rope_scaling", {"rope_type": "longrope", "factor": 2.0}),
        ("llama", "rope_scaling", {"rope_type": "linear", "factor": 2.0, "odd": 1}),
        ("llama", "rope_scaling", {"rope_type": ["linear"]}),
        ("llama", "rope_scaling", [3]),
        ("llama", "num_local_experts", 8),
        ("mistral", "num_hidden_layers", 2_000_000_000),
        ("gemma 2", "query_pre_attn_scalar", 0),
        ("llama", "hidden_act", "relu2"),
        ("qwen2", "layer_types", ["chunked_attention"] * 3),
        ("gemma", "use_bidirectional_attention", True),
        ("llama", "model_type", "phi3"),
    ],
)
def test_what_would_compute_something_else_is_refused(tmp_path, name, key, value):
    folder = saved(made(name), tmp_path / "m", **IDS)
    change_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=key):
        import_folder(folder)


def test_an_end_that_nothing_says_is_asked(tmp_path):
    folder = saved(made("qwen2", bos_token_id=None, eos_token_id=None), tmp_path / "m")
    assert [one.name for one in import_folder(folder).report.asked] == ["eos_id"]
    assert opened(folder, eos_id=9).config.eos_id == 9
