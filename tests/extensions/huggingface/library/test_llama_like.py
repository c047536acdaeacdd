"""What LLaMA, Mistral, Qwen, SmolLM3, Gemma and GPT-NeoX folders say in other spellings, and what is refused."""

import pytest

from glassformer.extensions.huggingface.library.folder import import_folder
from tests.extensions.huggingface.library.parity import change_config, compare, compare_greedy, opened, saved
from tests.extensions.huggingface.library.tiny_families import model_of
from transformer.errors import CheckpointError

IDS = {"bos_token_id": 1, "eos_token_id": [2, 3], "pad_token_id": None}


def test_each_end_of_a_list_ends_an_output(tmp_path):
    assert opened(saved(model_of("llama", "plain"), tmp_path / "m", **IDS)).config.end_ids == (2, 3)


def test_gemma_3_in_the_old_spelling(tmp_path):
    """Two bases beside each other, and a pattern in the place of the kinds of layers."""
    model = model_of("gemma3_text", "kinds", rope_parameters={
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
    model = model_of("gpt_neox", "large", eos_token_id=2, rope_parameters=rope, use_parallel_residual=parallel)
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
        ("gemma2", "query_pre_attn_scalar", 0),
        ("llama", "hidden_act", "relu2"),
        ("qwen2", "layer_types", ["chunked_attention"] * 3),
        ("gemma", "use_bidirectional_attention", True),
        ("llama", "model_type", "phi3"),
    ],
)
def test_what_would_compute_something_else_is_refused(tmp_path, name, key, value):
    folder = saved(model_of(name), tmp_path / "m", **IDS)
    change_config(folder, **{key: value})
    with pytest.raises(CheckpointError, match=key):
        import_folder(folder)


def test_an_end_that_nothing_says_is_asked(tmp_path):
    folder = saved(model_of("qwen2", bos_token_id=None, eos_token_id=None), tmp_path / "m")
    assert [one.name for one in import_folder(folder).report.asked] == ["eos_id"]
    assert opened(folder, eos_id=9).config.eos_id == 9
