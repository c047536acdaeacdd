"""Through a tap many look at one model and change it, each for itself; with a cache tokens are computed once."""

import pytest
import torch

from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.errors import QueryError
from transformer.model.cache import AttentionCache, KVCache
from transformer.tap import Recorder, Replacer, tap_of


def run(model, *visitors):
    return model(padded_source(), target_ids(), tap=tap_of(*visitors))


def test_values_replaced_by_themselves_change_no_bit():
    model, expected, found = tiny_model(norm="post", dtype=torch.float32), Recorder(("*",)), Recorder(("*",))
    run(model, expected)
    run(model, Replacer({"*": torch.Tensor.clone}), found)
    assert found.values.keys() == expected.values.keys()
    assert all(torch.equal(found.values[name], value) for name, value in expected.values.items())


def test_a_mask_can_be_replaced_on_the_fused_path_too_and_visitors_are_asked_in_order():
    model = tiny_model()
    unmask = Replacer({"decoder.*.self_attn.mask": torch.ones_like})
    assert torch.allclose(run(model, unmask), run(model, unmask, Recorder(("*",))), atol=1e-10)
    assert not torch.allclose(run(model, unmask), run(model), atol=1e-3)
    first, last = Recorder(("logits",)), Recorder(("logits",))
    output = run(model, first, Replacer({"logits": torch.zeros_like}), last)
    assert first.values["logits"].abs().max() > 0
    assert torch.equal(last.values["logits"], output)
    assert (output == 0).all()


class Listener:
    """Asked for each site, it wants one of them."""

    def __init__(self, site=None):
        self.site, self.asked, self.offsets = site, [], []

    def wants(self, site):
        self.asked.append(site)
        return site == self.site

    def visit(self, site, value, offset):
        assert site == self.site
        self.offsets.append((offset, tuple(value.shape)))
        return value


def test_what_nobody_wants_is_not_computed_and_under_a_cache_a_tap_is_told_where_the_query_stands():
    model, src, tgt, nosy = tiny_model(), padded_source(), target_ids(), Listener()
    assert torch.allclose(run(model, nosy), run(model), atol=0)
    # weights and scores are asked for, found unwanted, and so never passed through
    assert nosy.asked.count("encoder.0.self_attn.weights") == nosy.asked.count("encoder.0.self_attn.heads") == 1
    cache, memory, mask = KVCache(3), model.encode(src), model.source_mask(src)
    listener = Listener("decoder.0.self_attn.weights")
    for chunk in tgt.split([1, 1, 3], dim=1):
        model.decode(chunk, memory, mask, cache=cache, tap=tap_of(listener))
    assert listener.offsets == [(0, (3, 3, 1, 1)), (1, (3, 3, 1, 2)), (2, (3, 3, 3, 5))]


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
