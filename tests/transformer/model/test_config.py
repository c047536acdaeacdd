import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.tiny import tiny_config
from transformer.errors import ConfigError
from transformer.model.config import MAX_LAYERS, ModelConfig, unknown_keys
from transformer.model.transformer import Transformer

SPECIAL = st.integers(0, 9)


@st.composite
def configs(draw):
    """Valid configs of every kind."""
    n_heads = draw(st.integers(1, 8))
    shared = draw(st.booleans())
    n_encoder = draw(st.integers(0 if shared else 1, MAX_LAYERS))
    src = draw(st.integers(10, 1000))
    pad, eos = draw(st.tuples(SPECIAL, SPECIAL).filter(lambda ids: ids[0] != ids[1]))
    return ModelConfig(
        n_encoder_layers=n_encoder,
        n_decoder_layers=draw(st.integers(0 if n_encoder and shared else 1, MAX_LAYERS)),
        d_model=n_heads * draw(st.integers(1, 9)),
        n_heads=n_heads,
        d_head=draw(st.integers(0, 9)),
        n_kv_heads=draw(st.sampled_from([0, *(n for n in range(1, n_heads + 1) if n_heads % n == 0)])),
        d_ff=draw(st.integers(1, 99)),
        src_vocab_size=src,
        tgt_vocab_size=src if shared else draw(st.integers(10, 1000)),
        shared_vocab=shared,
        norm=draw(st.sampled_from(["pre", "post"])),
        final_norm=draw(st.booleans()),
        norm_eps=draw(st.floats(1e-12, 0.1)),
        activation=draw(st.sampled_from(["relu", "gelu"])),
        bias=draw(st.booleans()),
        output_bias=draw(st.booleans()),
        positions=draw(st.sampled_from(["sinusoidal", "learned", "relative", "alibi", "none"])),
        scale_embedding=draw(st.booleans()),
        tie_output=draw(st.booleans()),
        max_len=draw(st.integers(1, 5000)),
        dropout=draw(st.floats(0, 0.99)),
        pad_id=pad,
        unk_id=draw(SPECIAL),
        bos_id=draw(SPECIAL),
        eos_id=eos,
        decoder_start_id=draw(SPECIAL),
        prepend_source_bos=draw(st.booleans()),
        append_source_eos=draw(st.booleans()),
        normalisation=tuple(draw(st.lists(st.sampled_from(["nfc", "simplified-chinese"]), max_size=3))),
    )


@given(configs())
def test_json_round_trip(config):
    record = json.loads(config.to_json())
    assert record["format_version"] == 1
    assert ModelConfig.from_mapping(record) == config
    assert unknown_keys(record) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(json.loads(tiny_config().to_json()))), JSON, max_size=4))
def test_any_json_value_is_accepted_or_refused_with_its_field(changes):
    record = json.loads(tiny_config().to_json()) | changes
    try:
        config = ModelConfig.from_mapping(record)
    except ConfigError as error:
        refusal = error  # any value may be valid
    else:
        assert ModelConfig.from_mapping(json.loads(config.to_json())) == config
        return
    assert str(refusal).startswith(f"{refusal.field}: ")
    assert refusal.field in record
    assert len(str(refusal)) < 400


@given(JSON)
def test_any_json_document_is_refused(document):
    with pytest.raises(ConfigError):
        ModelConfig.from_mapping(document)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("d_model", 0),
        ("d_model", -4),
        ("d_model", None),
        ("d_model", "12"),
        ("d_model", 12.0),
        ("d_model", True),
        ("d_model", 10**9),
        pytest.param("d_model", 10**5000, id="d_model-5,001 digits"),
        ("n_encoder_layers", 10**6),
        ("n_decoder_layers", -1),
        ("d_head", -1),
        ("d_head", None),
        ("d_head", 10**6),
        ("n_kv_heads", 2),
        ("n_kv_heads", 10**6),
        ("prepend_source_bos", 1),
        ("n_heads", 5),
        ("d_ff", 0),
        ("src_vocab_size", 10**7),
        ("max_len", 10**6),
        ("shared_vocab", 1),
        ("shared_vocab", True),
        ("norm", "sandwich"),
        ("norm", ["pre"]),
        ("activation", None),
        ("positions", "rope"),
        ("dropout", 1.0),
        ("dropout", -0.1),
        ("dropout", math.nan),
        ("dropout", 10**400),
        ("norm_eps", 0.0),
        ("norm_eps", math.inf),
        ("pad_id", -1),
        ("bos_id", 17),
        ("unk_id", 10**40),
        ("eos_id", 0),
        ("decoder_start_id", -1),
        ("normalisation", "nfc"),
        ("normalisation", ("nfc", "upper")),
        ("normalisation", ("nfc", 3)),
        ("normalisation", {}),
    ],
)
def test_a_wrong_value_is_refused_by_field(field, value):
    with pytest.raises(ConfigError, match=f"^{field}: ") as caught:
        tiny_config(**{field: value})
    assert caught.value.field == field


def test_heads_that_do_not_divide_name_those_that_do():
    with pytest.raises(ConfigError, match=r"d_model = 12 .* into 5 .* 1, 2, 3, 4, 6, 12, or set d_head\."):
        tiny_config(n_heads=5)


def test_sizes_that_are_fine_one_by_one_but_not_together():
    with pytest.raises(ConfigError, match="parameters; the limit is"):
        tiny_config(d_model=16_384, n_heads=16, max_len=8, n_encoder_layers=64)
    with pytest.raises(ConfigError, match="max_len: found 32768 with d_model = 2048"):
        tiny_config(d_model=2048, n_heads=16, max_len=32_768)


@pytest.mark.parametrize("version", [None, 0, 2, "1", True, 1.0, [1]])
def test_another_format_version_is_refused(version):
    record = json.loads(tiny_config().to_json()) | {"format_version": version}
    with pytest.raises(ConfigError, match=r"^format_version: "):
        ModelConfig.from_mapping(record)


def test_a_missing_field_is_named_and_an_optional_one_has_its_default():
    record = json.loads(tiny_config().to_json())
    del record["dropout"]
    assert ModelConfig.from_mapping(record).dropout == 0.1
    del record["d_ff"]
    with pytest.raises(ConfigError, match=r"^d_ff: is missing\."):
        ModelConfig.from_mapping(record)


def test_unknown_keys_are_reported_and_ignored():
    record = json.loads(tiny_config().to_json()) | {"trust_remote_code": True, "auto_map": {"x": "y.py"}}
    assert ModelConfig.from_mapping(record) == tiny_config()
    assert unknown_keys(record) == ["auto_map", "trust_remote_code"]


GRID = {
    "bias": [True, False],
    "output_bias": [True, False],
    "tie_output": [True, False],
    "positions": ["sinusoidal", "learned", "relative"],
    "final_norm": [True, False],
    "shared_vocab": [True, False],
}


def test_the_arithmetic_of_parameters_is_that_of_the_model():
    for values in itertools.product(*GRID.values()):
        changes = dict(zip(GRID, values, strict=True))
        config = tiny_config(**changes, tgt_vocab_size=17 if changes["shared_vocab"] else 19)
        real = sum(parameter.numel() for parameter in Transformer(config).parameters())
        assert config.count_parameters() == real, changes


def test_the_decoder_may_have_heads_and_a_width_of_its_own():
    config = tiny_config(n_decoder_heads=2, d_decoder_ff=28)
    own = config.of("decoder")
    assert (own.n_heads, own.n_kv_heads, own.d_head, own.d_ff) == (2, 2, 6, 28)
    assert config.of("encoder") is config
    assert ModelConfig.from_mapping(json.loads(config.to_json())) == config
    assert config.count_parameters() == sum(one.numel() for one in Transformer(config).parameters())
    assert tiny_config(n_decoder_heads=3, d_decoder_ff=20) == tiny_config()
    for changes, said in (
        ({"n_decoder_heads": 5}, "n_decoder_heads: found 5, expected a divisor of 12"),
        ({"n_decoder_heads": 2, "n_kv_heads": 1}, "expected a divisor of 12; n_kv_heads must also be equal to n_heads"),
        (
            {"d_decoder_ff": 28, "n_decoder_layers": 0, "tgt_vocab_size": 17, "shared_vocab": True},
            "d_decoder_ff: found 28, but this model has only an encoder or only a decoder",
        ),
    ):
        with pytest.raises(ConfigError, match=said):
            tiny_config(**changes)
