"""A config says which stacks, attentions and sub-layers a model has, and what is not there is said."""

import pytest

from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_config, tiny_model
from transformer.errors import QueryError
from transformer.model.anatomy import EVERY_PART, anatomy
from transformer.tap import SITES, sites


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
