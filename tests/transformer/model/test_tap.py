import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.transformer.tiny import padded_source, target_ids, tiny_config, tiny_model
from transformer.model.cache import KVCache
from transformer.tap import NO_TAP, Recorder, Replacer, sites, tap_of

EVERYTHING = ("*",)


def all_sites():
    """The sites of a tiny model, without the features that only some have."""
    return sites(tiny_config())


def run(model, *visitors):
    return model(padded_source(), target_ids(), tap=tap_of(*visitors))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("final_norm", [True, False])
def test_every_documented_site_fires_and_no_other(norm, final_norm):
    recorder = Recorder(EVERYTHING)
    run(tiny_model(norm=norm, final_norm=final_norm), recorder)
    assert recorder.values.keys() == all_sites().keys()


def test_every_site_has_the_documented_axes():
    recorder = Recorder(EVERYTHING)
    run(tiny_model(), recorder)
    fixed = {"batch": 3, "head": 3, "kv_head": 3, "d_model": 12, "d_head": 4, "d_ff": 20, "tgt_vocab": 19}
    for site, text in all_sites().items():
        here = 6 if site.startswith("encoder") else 5
        there = 6 if "cross" in site else here
        sizes = fixed | {"query": here, "token": here, "key": there}
        axes = re.search(r"\[(.*?)\]", text)[1].split(", ")
        shape, expected = recorder.values[site].shape, [sizes[axis] for axis in axes]
        if "broadcasts" in text:
            shape = torch.broadcast_shapes(shape, expected)
        assert list(shape) == expected, site


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_value_replaced_by_itself_changes_no_bit(norm):
    model = tiny_model(norm=norm, dtype=torch.float32)
    expected = Recorder(EVERYTHING)
    run(model, expected)
    for site in all_sites():
        found = Recorder(EVERYTHING)
        run(model, Replacer({site: torch.Tensor.clone}), found)
        assert all(torch.equal(found.values[name], value) for name, value in expected.values.items()), site


def test_every_site_is_live():
    """What is replaced is what the model goes on with."""
    model = tiny_model()
    expected = run(model, Recorder(EVERYTHING))

    def change(value):
        if value.dtype == torch.bool:
            return value & (torch.arange(value.size(-1)) == 0)
        generator = torch.Generator().manual_seed(0)
        return value + torch.randn(value.shape, generator=generator, dtype=value.dtype)

    for site in all_sites():
        assert not torch.allclose(run(model, Replacer({site: change})), expected, atol=1e-6), site


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


def test_no_tap_wants_nothing():
    value = torch.ones(1)
    assert tap_of() is NO_TAP
    assert NO_TAP("x", value) is value
    assert NO_TAP.child("decoder", 2).at(3) is NO_TAP
    assert not NO_TAP.wants("x")


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


def test_many_threads_share_one_model():
    """One ablates, one records, one decodes with a cache, one does nothing: each as if it were alone."""
    model, src, tgt = tiny_model(dtype=torch.float32), padded_source(), target_ids()
    memory, mask = model.encode(src), model.source_mask(src)

    def ablate():
        return run(model, Replacer({"*cross_attn.weights": torch.zeros_like}))

    def record():
        recorder = Recorder()
        run(model, recorder)
        return torch.cat([value.flatten().float() for value in recorder.values.values()])

    def decode():
        cache = KVCache(3)
        return torch.cat([model.decode(ids, memory, mask, cache=cache) for ids in tgt.split(1, dim=1)])

    def plain():
        return run(model)

    jobs = (ablate, record, decode, plain)
    alone = [job() for job in jobs]
    assert not torch.allclose(alone[0], alone[3])
    with ThreadPoolExecutor(len(jobs)) as pool:
        together = list(pool.map(lambda i: jobs[i % 4](), range(4 * 200)))
    assert all(torch.equal(result, alone[i % 4]) for i, result in enumerate(together))
