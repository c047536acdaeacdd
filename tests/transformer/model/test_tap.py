"""Through a tap many look at one model and change it, each call for itself."""

import torch

from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.model.cache import KVCache
from transformer.tap import Recorder, Replacer, tap_of

EVERYTHING = ("*",)


def run(model, *visitors):
    return model(padded_source(), target_ids(), tap=tap_of(*visitors))


def test_values_replaced_by_themselves_change_no_bit():
    model, expected, found = tiny_model(norm="post", dtype=torch.float32), Recorder(EVERYTHING), Recorder(EVERYTHING)
    run(model, expected)
    run(model, Replacer({"*": torch.Tensor.clone}), found)
    assert found.values.keys() == expected.values.keys()
    assert all(torch.equal(found.values[name], value) for name, value in expected.values.items())


def test_a_mask_can_be_replaced_on_the_fused_path_too():
    model = tiny_model()
    unmask = Replacer({"decoder.*.self_attn.mask": torch.ones_like})
    assert torch.allclose(run(model, unmask), run(model, unmask, Recorder(EVERYTHING)), atol=1e-10)
    assert not torch.allclose(run(model, unmask), run(model), atol=1e-3)


def test_visitors_are_asked_in_order():
    first, last = Recorder(("logits",)), Recorder(("logits",))
    output = run(tiny_model(), first, Replacer({"logits": torch.zeros_like}), last)
    assert first.values["logits"].abs().max() > 0
    assert torch.equal(last.values["logits"], output)
    assert (output == 0).all()


def test_what_nobody_wants_is_not_computed():
    seen = []

    class Nosy:
        def wants(self, site):
            seen.append(site)
            return False

        def visit(self, site, value, offset):
            raise AssertionError(site)

    assert torch.allclose(run(tiny_model(), Nosy()), run(tiny_model()), atol=0)
    # weights and scores are asked for, found unwanted, and so never passed through
    assert seen.count("encoder.0.self_attn.weights") == 1
    assert seen.count("encoder.0.self_attn.heads") == 1


def test_a_recorder_keeps_what_it_was_asked_for():
    recorder = Recorder(("decoder.1.cross_attn.weights", "encoder.output"))
    run(tiny_model(), recorder)
    assert set(recorder.values) == {"decoder.1.cross_attn.weights", "encoder.output"}
    default = Recorder()
    run(tiny_model(), default)
    assert all(site.endswith(("_attn.weights", "_attn.mask")) for site in default.values)
    assert len(default.values) == 2 * (2 + 3 + 3)


def test_under_a_cache_a_tap_is_told_where_the_query_stands():
    offsets = []

    class Listener:
        def wants(self, site):
            return site == "decoder.0.self_attn.weights"

        def visit(self, site, value, offset):
            offsets.append((offset, tuple(value.shape)))
            return value

    model, src, tgt = tiny_model(), padded_source(), target_ids()
    cache, memory, mask = KVCache(3), model.encode(src), model.source_mask(src)
    for chunk in tgt.split([1, 1, 3], dim=1):
        model.decode(chunk, memory, mask, cache=cache, tap=tap_of(Listener()))
    assert offsets == [(0, (3, 3, 1, 1)), (1, (3, 3, 1, 2)), (2, (3, 3, 3, 5))]
