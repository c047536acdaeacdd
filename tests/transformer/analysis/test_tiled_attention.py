"""Attention in tiles ends as a softmax over the row does, and a cache in blocks holds every text."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.transformer.featured import FEATURED
from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_model
from transformer.analysis import tiled_attention as tiled
from transformer.errors import QueryError
from transformer.model.cache import KVCache
from transformer.tap import Recorder, tap_of

NUMBERS = st.floats(-60, 60, width=32)


@given(st.data(), st.integers(1, 24), st.integers(1, 30))
def test_each_tile_has_what_a_softmax_over_the_keys_until_then_has_rescaled_where_the_peak_rises(data, n, size):
    scores, values = (data.draw(arrays(np.float64, shape, elements=NUMBERS)) for shape in (n, (n, 3)))
    scores[data.draw(arrays(np.bool_, n))] = -np.inf
    found = tiled.tiles(scores, values, size=size)
    assert [(one.first, one.end) for one in found] == [(i, min(i + size, n)) for i in range(0, n, size)]
    old = -np.inf
    for one in found:
        so_far = scores[: one.end]
        assert one.peak == so_far.max()
        if np.isfinite(one.peak):
            assert np.allclose(one.total, np.exp(so_far - one.peak).sum(), rtol=1e-12)
        weights = torch.from_numpy(so_far).softmax(dim=0).nan_to_num().numpy()  # all closed: 0 ÷ 0
        np.testing.assert_allclose(one.output, weights @ values[: one.end], rtol=1e-11, atol=1e-11)
        assert one.n_open == np.isfinite(scores[one.first : one.end]).sum()
        assert (one.factor < 1) == (one.peak > old and np.exp(old - one.peak) < 1)
        assert one.n_open or (one.factor == 1 and one.peak == old)  # a closed tile is skipped
        old = one.peak


TEXTS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=5)


@given(TEXTS, st.integers(1, 5))
def test_every_text_can_be_read_from_blocks_that_are_shared_as_far_as_texts_are_alike(texts, size):
    found = tiled.blocks(texts, size=size)
    for text, ids in enumerate(texts):
        own = [one for one in found if text in one.holders]
        assert [one.first for one in own] == list(range(0, len(ids), size))
        assert [i for one in own for i in one.ids] == ids
    for one in found:
        begun = texts[one.holders[0]][: one.first + len(one.ids)]
        alike = [text for text, ids in enumerate(texts) if ids[: one.first + size] == begun and len(ids) > one.first]
        assert list(one.holders) == alike
    assert sum(len(one.ids) for one in found) + tiled.empty_places(found, size=size) == size * len(found)


def test_tiles_and_blocks_of_nothing_are_refused():
    with pytest.raises(QueryError, match="a tile of 0 keys"):
        tiled.tiles(np.zeros(3), np.zeros((3, 1)), size=0)
    with pytest.raises(QueryError, match="a block of 0 tokens"):
        tiled.blocks([[1]], size=0)


@pytest.mark.parametrize("features", [{}, DECODER, ENCODER, {"n_kv_heads": 1}, FEATURED["own decoder"]])
def test_bytes_are_those_of_a_pass_that_writes_its_scores_and_of_a_real_cache(features):
    model, n, recorder = tiny_model(dtype=torch.float32, **features), 7, Recorder(("*.scores",))
    model(random_ids(1, n), random_ids(1, n), tap=tap_of(recorder))
    scores = recorder.values.values()
    assert tiled.score_bytes(model.config, n) == sum(one.nbytes for one in scores)
    assert tiled.kept_bytes(model.config, n) == 2 * sum(one.nelement() // n for one in scores) * tiled.SCORE_BYTES
    if model.anatomy.writes:
        cache = KVCache(model.config.n_decoder_layers)
        model.decode(random_ids(1, n), model.encode(random_ids(1, 4)) if model.anatomy.reads else None, cache=cache)
        held = [part for layer in cache.self_attn for part in layer.read()]
        assert sum(part.nbytes for part in held) == n * tiled.token_bytes(model.config)
