import math

import pytest
import torch

from tests.transformer.tiny import random_ids, target_ids, tiny_config, tiny_model
from transformer.errors import QueryError
from transformer.model.positions import FixedPositions, LearnedPositions, fairseq_table, halves_table, sinusoidal_table
from transformer.model.transformer import Transformer


@pytest.mark.parametrize("d_model", [1, 2, 7, 8])
def test_the_table_is_the_formula(d_model):
    table = sinusoidal_table(50, d_model)
    assert table.shape == (50, d_model)
    assert table.dtype == torch.float32
    for p in (0, 1, 17, 49):
        for j in range(d_model):
            angle = p / 10_000 ** ((j - j % 2) / d_model)
            expected = math.cos(angle) if j % 2 else math.sin(angle)
            assert float(table[p, j]) == pytest.approx(expected, abs=1e-7)


def test_a_shift_is_the_same_rotation_everywhere():
    """The paper's reason for sinusoids: PE(p + k) is a linear function of PE(p)."""
    table = sinusoidal_table(40, 8).double()
    solution = torch.linalg.lstsq(table[:30], table[5:35]).solution
    assert torch.allclose(table[:30] @ solution, table[5:35], atol=1e-6)


@pytest.mark.parametrize("d_model", [1, 2, 7, 8])
def test_halves_are_the_same_columns_in_another_order(d_model):
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(halves_table(50, d_model), sinusoidal_table(50, d_model)[:, order])


@pytest.mark.parametrize("d_model", [2, 7, 8])
def test_fairseqs_table_is_its_formula_from_the_row_after_padding(d_model):
    table, half = fairseq_table(50, d_model, first=2), d_model // 2
    for p in (0, 1, 49):
        for i in range(half):
            angle = (p + 2) / 10_000 ** (i / max(1, half - 1))
            assert float(table[p, i]) == pytest.approx(math.sin(angle), abs=1e-7)
            assert float(table[p, half + i]) == pytest.approx(math.cos(angle), abs=1e-7)
    assert table.shape == (50, d_model)
    assert d_model % 2 == 0 or (table[:, -1] == 0).all()


def test_the_layout_is_a_feature_of_the_config():
    tables = {
        layout: FixedPositions(tiny_config(sinusoid_layout=layout, pad_id=1, unk_id=0)).table
        for layout in ("interleaved", "halves", "fairseq")
    }
    assert torch.equal(tables["interleaved"], sinusoidal_table(16, 12))
    assert torch.equal(tables["halves"], halves_table(16, 12))
    assert torch.equal(tables["fairseq"], fairseq_table(16, 12, first=2))


def test_layouts_are_those_of_transformers():
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    marian = MarianSinusoidalPositionalEmbedding(60, 10)
    marian.weight.data = marian.create_weight()
    assert torch.allclose(halves_table(60, 10), marian.weight, rtol=0, atol=1e-5)
    m2m = M2M100SinusoidalPositionalEmbedding(60, 11, 1)
    assert torch.allclose(fairseq_table(60, 11, first=2), m2m.weights[2:62], rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [FixedPositions, LearnedPositions])
def test_an_offset_selects_later_rows(kind):
    positions = kind(tiny_config())
    assert torch.equal(positions(6)[2:], positions(4, offset=2))


def test_sinusoids_are_not_stored_and_learned_positions_are():
    assert not any("positions" in name for name in Transformer(tiny_config()).state_dict())
    learned = Transformer(tiny_config(positions="learned")).state_dict()
    assert learned["encoder.embedding.positions.table"].shape == (16, 12)
    assert learned["decoder.embedding.positions.table"].std() > 0.1  # it has been given values


@pytest.mark.parametrize("d_model", [9, 15])
def test_an_odd_width_works(d_model):
    logits = tiny_model(d_model=d_model)(random_ids(3, 6), target_ids())
    assert logits.shape == (3, 5, 19)
    assert logits.isfinite().all()


def test_more_tokens_than_positions_are_refused():
    model = tiny_model()
    assert model.encode(random_ids(1, 16)).shape == (1, 16, 12)
    with pytest.raises(QueryError, match="17 tokens were given; this model reads at most 16"):
        model.encode(random_ids(1, 17))
    with pytest.raises(QueryError, match="17 tokens"):
        model(random_ids(1, 3), random_ids(1, 17))
