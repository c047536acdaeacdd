"""A KV cache in blocks: every text can be read from its blocks, and blocks are shared as far as texts are alike."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.featured import FEATURED
from tests.transformer.tiny import DECODER, random_ids, tiny_model
from transformer.analysis.tiled_attention import blocks, empty_places, token_bytes
from transformer.errors import QueryError
from transformer.model.cache import KVCache

texts = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=5)


@given(texts, st.integers(1, 5))
def test_every_text_can_be_read_from_its_blocks(texts, size):
    found = blocks(texts, size=size)
    for text, ids in enumerate(texts):
        own = [one for one in found if text in one.holders]
        assert [one.first for one in own] == list(range(0, len(ids), size))
        assert [i for one in own for i in one.ids] == ids


@given(texts, st.integers(1, 5))
def test_a_block_is_shared_by_exactly_the_texts_that_have_all_of_it_and_all_before_it(texts, size):
    for one in blocks(texts, size=size):
        end = one.first + len(one.ids)
        begun = texts[one.holders[0]][:end]
        alike = [text for text, ids in enumerate(texts) if ids[: one.first + size] == begun and len(ids) > one.first]
        assert list(one.holders) == alike


@given(texts, st.integers(1, 5))
def test_only_the_last_block_of_a_text_has_empty_places(texts, size):
    found = blocks(texts, size=size)
    one_text = blocks(texts[:1], size=size)
    assert empty_places(one_text, size=size) == -len(texts[0]) % size
    assert all(len(one.ids) == size or one.first + len(one.ids) in map(len, texts) for one in found)
    assert sum(len(one.ids) for one in found) + empty_places(found, size=size) == size * len(found)


def test_texts_that_part_within_a_block_get_copies_of_it():
    found = blocks([[1, 2, 3, 4, 5], [1, 2, 3, 9]], size=2)
    assert [(one.ids, one.holders) for one in found] == [((1, 2), (0, 1)), ((3, 4), (0,)), ((3, 9), (1,)), ((5,), (0,))]


def test_a_block_of_no_tokens_is_refused():
    with pytest.raises(QueryError, match="a block of 0 tokens"):
        blocks([[1]], size=0)


@pytest.mark.parametrize("features", [{}, DECODER, {"n_kv_heads": 1}, FEATURED["own decoder"]])
def test_bytes_of_a_token_are_those_of_a_real_cache(features):
    model, n = tiny_model(dtype=torch.float32, **features), 5
    cache = KVCache(model.config.n_decoder_layers)
    memory = model.encode(random_ids(1, 4)) if model.anatomy.reads else None
    model.decode(random_ids(1, n), memory, cache=cache)
    held = [part for layer in cache.self_attn for part in layer.read()]
    assert sum(part.nelement() * part.element_size() for part in held) == n * token_bytes(model.config)
