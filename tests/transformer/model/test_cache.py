"""With a cache, tokens are computed once and the logits are the same."""

import pytest
import torch

from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.errors import QueryError
from transformer.model.cache import AttentionCache, KVCache
from transformer.model.taps import Recorder, tap_of


def test_cross_attention_computes_its_keys_once():
    model, src, tgt = tiny_model(), padded_source(), target_ids(3)
    recorder = Recorder(("*.keys",))
    cache, memory, mask = KVCache(3), model.encode(src), model.source_mask(src)
    model.decode(tgt[:, :1], memory, mask, cache=cache)
    model.decode(tgt[:, 1:2], memory, mask, cache=cache, tap=tap_of(recorder))
    assert [site for site in recorder.values if "cross" in site] == []
    assert recorder.values["decoder.0.self_attn.keys"].shape == (3, 3, 1, 4)


def test_selected_rows_go_on_as_they_would_alone():
    model, src, tgt = tiny_model(), padded_source(), target_ids(6)
    rows = torch.tensor([2, 0, 0])
    cache, memory, mask = KVCache(3), model.encode(src), model.source_mask(src)
    model.decode(tgt[:, :4], memory, mask, cache=cache)
    cache.select(rows)
    after = model.decode(tgt[rows, 4:], memory[rows], mask[rows], cache=cache)
    whole = model.decode(tgt[rows], memory[rows], mask[rows])
    assert torch.allclose(after, whole[:, 4:], atol=1e-10)


def test_the_limit_of_length_counts_what_the_cache_holds():
    model, src = tiny_model(), padded_source()
    cache, memory, mask = KVCache(3), model.encode(src), model.source_mask(src)
    model.decode(target_ids(16), memory, mask, cache=cache)
    with pytest.raises(QueryError, match="17 tokens"):
        model.decode(target_ids(1), memory, mask, cache=cache)


def test_an_empty_cache_cannot_be_read():
    with pytest.raises(RuntimeError, match="before anything was written"):
        AttentionCache(fixed=True).read()
    cache = KVCache(2)
    cache.select(torch.tensor([0]))  # nothing to select from yet
    assert cache.length == 0
