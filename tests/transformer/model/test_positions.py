"""Tables of positions are the formulas of the papers and of other libraries, as long as the model reads."""

import math

import pytest
import torch
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from tests.transformer.tiny import random_ids, tiny_config, tiny_model
from transformer.errors import QueryError
from transformer.model.positions import FixedPositions, fairseq_table, halves_table, sinusoidal_table
from transformer.model.transformer import Transformer


@pytest.mark.parametrize("d_model", [1, 7, 8])
def test_the_table_is_the_formula_and_halves_are_its_columns_in_another_order(d_model):
    table = sinusoidal_table(50, d_model)
    assert (table.shape, table.dtype) == ((50, d_model), torch.float32)
    for p in (0, 1, 17, 49):
        for j in range(d_model):
            angle = p / 10_000 ** ((j - j % 2) / d_model)
            assert float(table[p, j]) == pytest.approx(math.cos(angle) if j % 2 else math.sin(angle), abs=1e-7)
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(halves_table(50, d_model), table[:, order])


def test_layouts_are_those_of_transformers_and_a_feature_of_the_config():
    marian = MarianSinusoidalPositionalEmbedding(60, 10)
    marian.weight.data = marian.create_weight()
    assert torch.allclose(halves_table(60, 10), marian.weight, rtol=0, atol=1e-5)
    m2m = M2M100SinusoidalPositionalEmbedding(60, 11, 1)
    assert torch.allclose(fairseq_table(60, 11, first=2), m2m.weights[2:62], rtol=0, atol=1e-5)
    expected = {"interleaved": sinusoidal_table(16, 12), "halves": halves_table(16, 12)}
    for layout, table in {**expected, "fairseq": fairseq_table(16, 12, first=2)}.items():
        assert torch.equal(FixedPositions(tiny_config(sinusoid_layout=layout, pad_id=1, unk_id=0)).table, table)


def test_sinusoids_are_not_stored_and_learned_positions_are():
    assert not any("positions" in name for name in Transformer(tiny_config()).state_dict())
    learned = Transformer(tiny_config(positions="learned")).state_dict()
    assert learned["encoder.embedding.positions.table"].shape == (16, 12)
    assert learned["decoder.embedding.positions.table"].std() > 0.1  # it has been given values


def test_more_tokens_than_positions_are_refused():
    model = tiny_model()
    assert model.encode(random_ids(1, 16)).shape == (1, 16, 12)
    with pytest.raises(QueryError, match="17 tokens were given; this model reads at most 16"):
        model.encode(random_ids(1, 17))
    with pytest.raises(QueryError, match="17 tokens"):
        model(random_ids(1, 3), random_ids(1, 17))
