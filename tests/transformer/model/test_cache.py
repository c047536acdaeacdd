"""With a cache, tokens are computed once and the logits are the same."""

import pytest
import torch

from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.errors import QueryError
from transformer.model.cache import AttentionCache, KVCache
from transformer.model.taps import Recorder, tap_of


def test_cross_attention_computes_its_keys_once_and_selected_rows_go_on_as_they_would_alone():
    model, src, tgt, recorder = tiny_model(), padded_source(), target_ids(6), Recorder(("*.keys",))
    rows, cache, memory, mask = torch.tensor([2, 0, 0]), KVCache(3), model.encode(src), model.source_mask(src)
    cache.select(rows)  # nothing to select from yet
    model.decode(tgt[:, :4], memory, mask, cache=cache)
    cache.select(rows)
    after = model.decode(tgt[rows, 4:], memory[rows], mask[rows], cache=cache, tap=tap_of(recorder))
    whole = model.decode(tgt[rows], memory[rows], mask[rows])
    assert torch.allclose(after, whole[:, 4:], atol=1e-10)
    assert {site: tuple(keys.shape) for site, keys in recorder.values.items()} == {
        f"decoder.{layer}.self_attn.keys": (3, 3, 2, 4) for layer in range(3)
    }


def test_the_limit_of_length_counts_what_the_cache_holds_and_an_empty_one_cannot_be_read():
    model, src, cache = tiny_model(), padded_source(), KVCache(3)
    memory, mask = model.encode(src), model.source_mask(src)
    model.decode(target_ids(16), memory, mask, cache=cache)
    with pytest.raises(QueryError, match="17 tokens"):
        model.decode(target_ids(1), memory, mask, cache=cache)
    with pytest.raises(RuntimeError, match="before anything was written"):
        AttentionCache(fixed=True).read()
