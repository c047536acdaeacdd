"""A loaded model lies in memory for speed, and its values, names and products are the same."""

import pytest
import torch

from tests.transformer.tiny import DECODER, ENCODER, laid_out, tiny_model
from transformer.checkpoint.parameter_layout import ALIGNMENT


def test_values_shapes_and_names_stay_tall_matrices_lie_by_columns_and_all_in_one_block_without_overlap():
    before = tiny_model(positions="learned", shared_vocab=True, tgt_vocab_size=17).float()
    after = laid_out(before)
    expected, found, ffn = before.state_dict(), after.state_dict(), after.encoder.layers[0].ffn
    assert list(expected) == list(found)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert after.target_table is after.output_weight is after.src_table
    assert ffn.up_proj.weight.stride() == (1, 20)
    assert ffn.down_proj.weight.is_contiguous()
    parameters = dict(after.named_parameters())
    assert len({one.untyped_storage().data_ptr() for one in parameters.values()}) == 1
    for number, parameter in enumerate(parameters.values()):  # each writes its number wherever it lies
        parameter.fill_(number)
    for number, (name, parameter) in enumerate(parameters.items()):
        assert (parameter == number).all()
        joined = ".self_attn.k_proj" in name or ".self_attn.v_proj" in name
        assert joined or parameter.storage_offset() % ALIGNMENT == 0


@pytest.mark.parametrize("changes", [{}, {"bias": False}, {"n_kv_heads": 1, "d_head": 5}, DECODER, ENCODER])
def test_self_attention_makes_three_products_at_once_and_they_are_the_same(changes):
    model, x = laid_out(tiny_model(**changes)), torch.randn(2, 5, 12)
    for kind in model.anatomy.kinds:
        for attention in model.attentions(kind):
            assert (attention.q_proj.joined is None) == (kind == "cross")
            at_once = attention._project(x, x)
            apart = attention._project(x, x.clone())  # another tensor: nothing is joined
            assert all(torch.allclose(a, b, rtol=0, atol=1e-5) for a, b in zip(at_once, apart, strict=True))
