"""A config is JSON of known fields or refused by the wrong one, and says what a model has and what is missing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_config, tiny_model
from transformer.errors import ConfigError, QueryError
from transformer.model.anatomy import EVERY_PART, anatomy
from transformer.model.attention_features import Rotary
from transformer.model.config import ModelConfig, unknown_keys
from transformer.tap import SITES, sites

RECORD = json.loads(tiny_config().to_json())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(RECORD)), JSON, max_size=4), JSON)
def test_any_json_value_is_accepted_or_refused_with_its_field(changes, document):
    with pytest.raises(ConfigError):
        ModelConfig.from_mapping(document)
    try:
        config = ModelConfig.from_mapping(RECORD | changes)
    except ConfigError as error:
        refusal = error  # any value may be valid
    else:
        assert ModelConfig.from_mapping(json.loads(config.to_json())) == config
        return
    assert str(refusal).startswith(f"{refusal.field}: ")
    assert refusal.field in RECORD
    assert len(str(refusal)) < 400


ROTARY, LARGE = {"positions": "rotary"}, {"d_model": 4096, "n_heads": 8, "d_ff": 8, "max_len": 32_768}
TOGETHER_TOO_LARGE = {"d_model": 16_384, "n_heads": 16, "max_len": 8, "n_encoder_layers": 64}
WRONG = {
    "d_model": [*({"d_model": wrong} for wrong in (0, True, 10**9, 10**5000)), TOGETHER_TOO_LARGE],
    "n_decoder_layers": [{"n_encoder_layers": 0, "n_decoder_layers": 0}],
    "n_kv_heads": [{"n_kv_heads": 2}],
    "n_decoder_heads": [{"n_decoder_heads": 5}, {"n_decoder_heads": 2, "n_kv_heads": 1}],
    "d_decoder_ff": [{**ENCODER, "d_decoder_ff": 28}],
    "max_len": [{"max_len": 10**6}, LARGE],  # the table is too large
    "shared_vocab": [{"shared_vocab": 1}, {"n_encoder_layers": 0}],
    "norm": [{"norm": ["pre"]}],
    "activation": [{"activation": "swish"}],
    "dropout": [{"dropout": 1.0}],
    "norm_eps": [{"norm_eps": 0.0}],
    "pad_id": [{"pad_id": -1}],
    "eos_id": [{"eos_id": 0}, {"eos_id": None}],
    "bos_id": [{"bos_id": None, "prepend_source_bos": True}],
    "normalisation": [{"normalisation": ("nfc", "upper")}],
    "source_prefix": [{"source_prefix": (17,)}, {"source_prefix": (5,) * 16}],
    "forced_ids": [{"forced_ids": (0,)}, {"forced_ids": (5,), "banned_ids": (5,)}],
    "banned_ids": [{"banned_ids": (3,)}],
    "further_eos_ids": [{"further_eos_ids": (0,)}],
    "norm_bias": [{"norm_kind": "rms", "norm_bias": True}],
    "norm_kind": [{"norm_kind": "deviation", "d_model": 1, "n_heads": 1}],
    "parallel_residual": [
        {"parallel_residual": True},
        {**DECODER, "parallel_residual": True, "residual": False},
        {**DECODER, "parallel_residual": True, "norm": "post"},
    ],
    "mlm_head": [{"mlm_head": True}],
    "n_token_types": [{**DECODER, "n_token_types": 2}],
    "output_scale": [{"output_scale": 0.0}],
    "logit_cap": [{"logit_cap": -1.0}],
    "rotary": [{**ROTARY, "rotary": {"theta": 500.0}}],
    "rotary.base": [{**ROTARY, "rotary": {"base": wrong}} for wrong in (1.0, 10**4999)],
    "rotary.share": [{**ROTARY, "rotary": {"share": 0.3}}, {**ROTARY, "d_head": 5}],  # 0.3 of 4: 1 dimension
    "rotary.scaling": [{**ROTARY, "rotary": {"scaling": "longrope"}}],
    "rotary.fast": [{**ROTARY, "rotary": {"slow": 4.0, "fast": 4.0}}],
    "relative_buckets": [{"relative_buckets": 3}],
    "relative_distance": [{"relative_distance": 16}],
    "unplaced_layers": [{"unplaced_layers": (0,)}, {**ROTARY, "unplaced_layers": (3,)}],
    "score_scale": [{"score_scale": 0.0}],
    "windows": [{"windows": (4, 4)}, {**ENCODER, "windows": (4, 4)}],
    "mask_fill": [{"mask_fill": -10.0}],
}


@pytest.mark.parametrize("field", WRONG)
def test_a_wrong_value_is_refused_by_field(field):
    for changes in WRONG[field]:
        with pytest.raises(ConfigError, match=rf"^{field}: ") as caught:
            tiny_config(**changes)
        assert caught.value.field == field


def test_a_refusal_names_what_would_do():
    for changes, said in (
        ({"n_heads": 5}, r"d_model = 12 .* into 5 .* 1, 2, 3, 4, 6, 12, or set d_head\."),
        ({"n_heads": 6, "n_kv_heads": 4}, r"n_kv_heads: 6 heads cannot evenly share 4 .* 1, 2, 3, 6\."),
    ):
        with pytest.raises(ConfigError, match=said):
            tiny_config(**changes)
    for version in (None, 2, True):
        with pytest.raises(ConfigError, match=r"^format_version: "):
            ModelConfig.from_mapping(RECORD | {"format_version": version})


def test_a_missing_field_is_named_an_optional_one_has_its_default_and_an_unknown_one_is_reported():
    record = RECORD | {"trust_remote_code": True}
    assert ModelConfig.from_mapping(record) == tiny_config()
    assert unknown_keys(record) == ["trust_remote_code"]
    del record["dropout"]
    assert ModelConfig.from_mapping(record).dropout == 0.1
    del record["d_ff"]
    with pytest.raises(ConfigError, match=r"^d_ff: is missing\."):
        ModelConfig.from_mapping(record)
    # A config before there were several biases sets all at once.
    old = {name: value for name, value in RECORD.items() if not name.endswith("_bias")}
    assert ModelConfig.from_mapping(old | {"bias": False}).biases.nowhere
    assert ModelConfig.from_mapping(old | {"bias": True}).biases.everywhere


def test_what_json_has_is_read_and_what_is_not_said_has_its_usual_value():
    more = {"normalisation": ["nfc"], "unk_id": None, "n_kv_heads": 1, "norm_eps": 1e-12}
    config = tiny_config(**ROTARY, rotary={"base": 500}, windows=[2, 0, 3], unplaced_layers=[1], **more)
    assert (config.rotary, config.windows, config.unplaced_layers) == (Rotary(base=500), (2, 0, 3), (1,))
    record = json.loads(config.to_json())
    assert list(record)[:3] == ["format_version", "n_encoder_layers", "n_decoder_layers"]
    assert hash(config) == hash(again := ModelConfig.from_mapping(record))
    assert (again, unknown_keys(record)) == (config, [])
    assert (tiny_config(**ROTARY).rotary, tiny_config().rotary) == (Rotary(), None)
    assert (tiny_config().d_head, tiny_config().n_kv_heads, tiny_config(n_heads=5, d_head=7).d_head) == (4, 3, 7)
    assert tiny_config(**ROTARY, **LARGE).max_len == 32_768  # no table


def test_the_decoder_may_have_heads_and_a_width_of_its_own():
    config = tiny_config(n_decoder_heads=2, d_decoder_ff=28)
    own = config.of("decoder")
    assert (own.n_heads, own.n_kv_heads, own.d_head, own.d_ff) == (2, 2, 6, 28)
    assert config.of("encoder") is config
    assert tiny_config(n_decoder_heads=3, d_decoder_ff=20) == tiny_config()


def test_the_three_kinds_of_models():
    both, decoder, encoder = (anatomy(tiny_config(**changes)) for changes in ({}, DECODER, ENCODER))
    assert (both.reads, both.writes, both.kinds) == (True, True, ("encoder", "decoder", "cross"))
    assert (decoder.reads, decoder.writes, decoder.kinds) == (False, True, ("decoder",))
    assert (encoder.reads, encoder.writes, encoder.kinds) == (True, False, ("encoder",))
    assert [(one.kind, one.stack, one.keys_from, one.causal, one.n_layers) for one in both.attentions] == [
        ("encoder", "encoder", "encoder", False, 2),
        ("decoder", "decoder", "decoder", True, 3),
        ("cross", "decoder", "encoder", False, 3),
    ]
    assert both.stack("decoder").sublayers == ("self_attn", "cross_attn", "ffn")
    assert decoder.stack("decoder").sublayers == encoder.stack("encoder").sublayers == ("self_attn", "ffn")
    assert EVERY_PART.attention("cross").site(2, "weights") == "decoder.2.cross_attn.weights"
    for changes in ({}, DECODER, {**ENCODER, "norm": "post"}):  # every site of one is in the table of all
        for site, text in sites(tiny_config(**changes)).items():
            stack, _, rest = site.partition(".")
            layer, _, name = rest.partition(".")
            assert SITES[f"{stack}.{{layer}}.{name}" if layer.isdigit() else site] == text


def test_what_a_model_does_not_have_is_said_in_one_sentence():
    decoder, encoder = tiny_model(**DECODER), tiny_model(**ENCODER)
    for asked, said in (
        (lambda: decoder.attentions("encoder"), "This model has no encoder: it is decoder-only"),
        (lambda: decoder.stack("encoder"), "This model has no encoder: it is decoder-only"),
        (lambda: decoder.encode(random_ids(1, 3)), "no encoder"),
        (lambda: encoder.attentions("cross"), "This model has no cross-attention"),
        (lambda: encoder.stack("decoder"), "This model has no decoder: it is encoder-only"),
        (lambda: encoder.decode(random_ids(1, 3)), "no decoder"),
    ):
        with pytest.raises(QueryError, match=said):
            asked()
