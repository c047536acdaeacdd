"""What a config implies, and that the model is so: stacks, attentions, sub-layers, sites."""

import pytest

from tests.transformer.tiny import DECODER, ENCODER, padded_source, target_ids, tiny_config, tiny_model
from transformer.errors import QueryError
from transformer.model.anatomy import EVERY_PART, anatomy
from transformer.tap import SITES, Recorder, sites, tap_of

MODELS = [{}, DECODER, ENCODER, {**DECODER, "norm": "post", "n_kv_heads": 1, "d_head": 5}]


def test_the_three_kinds_of_models():
    both, decoder, encoder = (anatomy(tiny_config(**changes)) for changes in ({}, DECODER, ENCODER))
    assert (both.reads, both.writes, both.kinds) == (True, True, ("encoder", "decoder", "cross"))
    assert (decoder.reads, decoder.writes, decoder.kinds) == (False, True, ("decoder",))
    assert (encoder.reads, encoder.writes, encoder.kinds) == (True, False, ("encoder",))
    assert [stack.n_layers for stack in both.stacks] == [2, 3]
    assert both.stack("decoder").sublayers == ("self_attn", "cross_attn", "ffn")
    assert decoder.stack("decoder").sublayers == encoder.stack("encoder").sublayers == ("self_attn", "ffn")


def test_an_attention_says_whence_and_whether_it_is_causal():
    found = {
        one.kind: (one.stack, one.keys_from, one.causal, one.n_layers) for one in anatomy(tiny_config()).attentions
    }
    assert found == {
        "encoder": ("encoder", "encoder", False, 2),
        "decoder": ("decoder", "decoder", True, 3),
        "cross": ("decoder", "encoder", False, 3),
    }
    assert EVERY_PART.attention("cross").site(2, "weights") == "decoder.2.cross_attn.weights"


@pytest.mark.parametrize(
    ("changes", "kind", "said"),
    [
        (DECODER, "encoder", "no encoder: it is decoder-only"),
        (DECODER, "cross", "no cross-attention"),
        (ENCODER, "cross", "no cross-attention"),
        (ENCODER, "decoder", "no decoder: it is encoder-only"),
    ],
)
def test_what_a_model_does_not_have_is_said_in_one_sentence(changes, kind, said):
    model = tiny_model(**changes)
    with pytest.raises(QueryError, match=f"This model has {said}"):
        model.attentions(kind)
    if kind != "cross":
        with pytest.raises(QueryError, match=f"This model has {said}"):
            model.stack(kind)


@pytest.mark.parametrize("changes", MODELS)
def test_the_sites_of_a_model_are_those_that_fire(changes):
    model, recorder = tiny_model(**changes), Recorder(("*",))
    model(padded_source(), target_ids(), tap=tap_of(recorder))
    assert recorder.values.keys() == sites(model.config).keys()


@pytest.mark.parametrize("changes", MODELS)
def test_the_attentions_of_a_model_are_modules_with_maps(changes):
    model, recorder = tiny_model(**changes), Recorder()
    model(padded_source(), target_ids(), tap=tap_of(recorder))
    expected = {one.site(layer, name) for one in model.anatomy.attentions for layer in range(one.n_layers)
                for name in ("weights", "mask")}  # fmt: skip
    assert recorder.values.keys() == expected
    lengths = {"encoder": 6, "decoder": 5}
    for one in model.anatomy.attentions:
        assert len(model.attentions(one.kind)) == one.n_layers
        weights = recorder.values[one.site(0, "weights")]
        assert weights.shape == (3, 3, lengths[one.stack], lengths[one.keys_from])
        future = weights.triu(diagonal=1) if one.stack == one.keys_from else weights
        assert bool((future == 0).all()) == one.causal


def test_every_site_of_one_stack_is_in_the_table_of_all():
    for changes in MODELS:
        for site, text in sites(tiny_config(**changes)).items():
            stack, _, rest = site.partition(".")
            layer, _, name = rest.partition(".")
            assert SITES[f"{stack}.{{layer}}.{name}" if layer.isdigit() else site] == text
