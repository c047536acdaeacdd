"""A loaded model lies in memory for speed, and its values, names and products are the same."""

import copy

import pytest
import torch

from tests.transformer.tiny import DECODER, ENCODER, laid_out, tiny_model
from transformer.checkpoint.parameter_layout import ALIGNMENT


def both(**changes):
    """A model as it is made, and as it lies in memory once it is loaded."""
    before = tiny_model(**changes).float()
    return before, laid_out(before)


def test_values_shapes_and_names_stay():
    before, after = both(positions="learned", shared_vocab=True, tgt_vocab_size=17)
    expected, found = before.state_dict(), after.state_dict()
    assert list(expected) == list(found)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert after.target_table is after.output_weight is after.src_table


def test_tall_matrices_lie_by_columns_and_the_others_by_rows():
    _, after = both()
    up, down = after.encoder.layers[0].ffn.up_proj.weight, after.encoder.layers[0].ffn.down_proj.weight
    assert up.size(0) > up.size(1)
    assert up.stride() == (1, up.size(0))
    assert down.is_contiguous()


def test_all_lie_in_one_block_without_overlap():
    _, after = both()
    parameters = list(after.parameters())
    assert len({p.untyped_storage().data_ptr() for p in parameters}) == 1
    for number, parameter in enumerate(parameters):  # each writes its number wherever it lies
        parameter.fill_(number)
    assert all((parameter == number).all() for number, parameter in enumerate(parameters))
    joined = [p for name, p in after.named_parameters() if ".self_attn.k_proj" in name or ".self_attn.v_proj" in name]
    aside = {id(p) for p in joined}
    assert all(p.storage_offset() % ALIGNMENT == 0 for p in parameters if id(p) not in aside)


@pytest.mark.parametrize("changes", [{}, {"bias": False}, {"n_kv_heads": 1, "d_head": 5}, DECODER, ENCODER])
def test_self_attention_makes_three_products_at_once_and_they_are_the_same(changes):
    model = both(**changes)[1]
    torch.manual_seed(0)
    x = torch.randn(2, 5, 12)
    for kind in model.anatomy.kinds:
        for attention in model.attentions(kind):
            assert (attention.q_proj.joined is None) == (kind == "cross")
            at_once = attention._project(x, x)
            apart = attention._project(x, x.clone())  # another tensor: nothing is joined
            assert all(torch.allclose(a, b, rtol=0, atol=1e-5) for a, b in zip(at_once, apart, strict=True))


def test_what_was_joined_follows_its_parameters():
    _, model = both()
    attention = model.encoder.layers[0].self_attn
    attention.k_proj.weight.fill_(7.0)
    weight, _ = attention.q_proj.joined
    assert (weight[12:24] == 7.0).all()
    x = torch.randn(2, 5, 12)
    for other in (copy.deepcopy(attention), copy.deepcopy(attention).double()):
        other.k_proj.weight.fill_(0.0)
        other.k_proj.bias.fill_(3.0)
        values = x.to(other.k_proj.weight.dtype)
        assert (other._project(values, values)[1] == 3.0).all()
        assert (attention.k_proj.weight == 7.0).all()
