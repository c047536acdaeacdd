import json

import pytest

from tests.transformer.tiny import DECODER, ENCODER, tiny_config
from transformer.errors import ConfigError
from transformer.model.attention_features import Rotary
from transformer.model.config import ModelConfig, unknown_keys

ROTARY = {"positions": "rotary"}


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("positions", {"positions": "rope"}),
        ("sinusoid_layout", {"sinusoid_layout": "cosine"}),
        ("sinusoid_layout", {"sinusoid_layout": ["halves"]}),
        ("rotary", {"rotary": {}}),
        ("rotary", {**ROTARY, "rotary": 3}),
        ("rotary", {**ROTARY, "rotary": {"theta": 500.0}}),
        ("rotary.base", {**ROTARY, "rotary": {"base": 1.0}}),
        ("rotary.base", {**ROTARY, "rotary": {"base": "10000"}}),
        ("rotary.base", {**ROTARY, "rotary": {"base": float("nan")}}),
        ("rotary.base", {**ROTARY, "rotary": {"base": 10**4999}}),
        ("rotary.base", {**ROTARY, "rotary": {"base": None}}),
        ("rotary.share", {**ROTARY, "rotary": {"share": 1.5}}),
        ("rotary.share", {**ROTARY, "rotary": {"share": 0.3}}),  # of 4: 1 dimension
        ("rotary.share", {**ROTARY, "d_head": 5}),
        ("rotary.scaling", {**ROTARY, "rotary": {"scaling": "longrope"}}),
        ("rotary.fast", {**ROTARY, "rotary": {"slow": 4.0, "fast": 4.0}}),
        ("rotary.rounded", {**ROTARY, "rotary": {"rounded": 1}}),
        ("rotary.original_len", {**ROTARY, "rotary": {"original_len": -1}}),
        ("rotary.original_len", {**ROTARY, "rotary": {"original_len": True}}),
        ("relative_buckets", {"relative_buckets": 3}),
        ("relative_buckets", {"relative_buckets": 32.0}),
        ("relative_distance", {"relative_distance": 16}),
        ("unplaced_layers", {"unplaced_layers": (0,)}),
        ("unplaced_layers", {**ROTARY, "unplaced_layers": (3,)}),
        ("unplaced_layers", {**ROTARY, "unplaced_layers": 1}),
        ("score_scale", {"score_scale": 0.0}),
        ("score_scale", {"score_scale": True}),
        ("score_cap", {"score_cap": -1.0}),
        ("qk_norm", {"qk_norm": 1}),
        ("windows", {"windows": (4, 4)}),
        ("windows", {"windows": (4, 4, -1)}),
        ("windows", {"windows": [4, "4", 4]}),
        ("windows", {**ENCODER, "windows": (4, 4)}),
        ("mask_fill", {"mask_fill": -10.0}),
        ("mask_fill", {"mask_fill": float("-inf")}),
    ],
)
def test_a_wrong_value_is_refused_by_field(field, changes):
    with pytest.raises(ConfigError, match=rf"^{field}: "):
        tiny_config(**changes)


def test_what_json_has_is_read():
    config = tiny_config(**ROTARY, rotary={"base": 500}, windows=[2, 0, 3], unplaced_layers=[1])
    assert config.rotary == Rotary(base=500)
    assert config.windows == (2, 0, 3)
    assert config.unplaced_layers == (1,)
    assert hash(config) == hash(ModelConfig.from_mapping(json.loads(config.to_json())))
    assert not unknown_keys(json.loads(config.to_json()))


def test_rotary_positions_have_their_usual_numbers_if_none_are_given():
    assert tiny_config(**ROTARY).rotary == Rotary()
    assert tiny_config().rotary is None


def test_a_config_of_the_paper_reads_first_what_it_read_before():
    names = list(json.loads(tiny_config().to_json()))
    assert names[:3] == ["format_version", "n_encoder_layers", "n_decoder_layers"]
    assert names.index("sinusoid_layout") > names.index("normalisation")


def test_a_window_is_asked_for_by_layer():
    config = tiny_config(**DECODER, windows=(4, 0, 2))
    assert [config.window(layer) for layer in range(3)] == [4, 0, 2]
    assert [tiny_config().window(layer) for layer in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("positions", ["rotary", "relative", "alibi", "none"])
def test_without_a_table_of_positions_a_model_may_be_longer(positions):
    sizes = {"d_model": 4096, "n_heads": 8, "d_ff": 8, "max_len": 32_768}
    assert tiny_config(positions=positions, **sizes).max_len == 32_768
    with pytest.raises(ConfigError, match="max_len"):
        tiny_config(**sizes)
