"""A tap is decoded through the cache where that is right, and prefix by prefix where it is not."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer import Beam, Greedy, Sampling, run
from transformer.model.cache import KVCache
from transformer.model.taps import Recorder, Replacer, tap_of
from transformer.runs.beam import beam_search
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.running import replay

SOURCE = "ba lo mi ta"
CLOSE = {"rtol": 0, "atol": 1e-10}


def averaged(value):
    """Over all tokens so far, also those after the row: others with every further token."""
    return value.mean(dim=-2, keepdim=True).expand_as(value)


TAPS = {
    "nothing": {},
    "values averaged over positions": {"decoder.1.self_attn.values": averaged},
    "no causal mask": {"decoder.*.self_attn.mask": torch.ones_like},
    "the source and the logits averaged": dict.fromkeys(
        ("encoder.0.output", "decoder.0.ffn.output", "logits"), averaged
    ),
}


@pytest.fixture(scope="module", params=["pair", "decoder"])
def precise(request):
    found = request.getfixturevalue(request.param)
    return replace(found, model=deepcopy(found.model).double())


def naive(checkpoint, src_ids, ids, tap, max_new):
    """Greedy decoding by whole prefixes, nothing kept."""
    rows = []
    for _ in range(max_new):
        row = checkpoint.model(torch.tensor([src_ids]), torch.tensor([ids]), tap=tap)[0, -1].log_softmax(-1)
        rows.append(row.clone())
        row[0] = -torch.inf
        ids = [*ids, int(row.argmax())]
        if ids[-1] == checkpoint.config.eos_id:
            break
    return torch.stack(rows), ids


@pytest.mark.parametrize("changes", TAPS.values(), ids=TAPS)
def test_a_tap_that_mixes_tokens_is_decoded_as_the_naive_loop_does(precise, changes):
    tap, query = tap_of(*[Replacer(changes)] * bool(changes)), precise.query(SOURCE, max_new=7)
    assert tap.causal == (not changes)
    trace, plain = run(precise, query, tap=tap), run(precise, query)
    log_probs, ids = naive(precise, trace.src_ids, list(trace.read_ids[: trace.row_of(0) + 1]), tap, 7)
    assert tuple(ids[trace.row_of(1) :]) == trace.tgt_ids
    np.testing.assert_allclose(trace.log_probs, log_probs, **CLOSE)
    moved = not np.allclose(trace.log_probs[-1], plain.log_probs[-1 : trace.n_steps], atol=1e-4)
    assert moved == bool(changes)


@pytest.mark.parametrize("changes", TAPS.values(), ids=TAPS)
def test_each_row_of_a_trace_is_what_its_prefix_alone_gives(precise, changes):
    tap = tap_of(*[Replacer(changes)] * bool(changes))
    trace = run(precise, precise.query(SOURCE, max_new=5, forced=(9, 5)), tap=tap)
    src, read = torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids])
    found = replay(precise, trace, ["*"], tap=tap)
    for row in range(len(trace.read_ids)):
        recorder = Recorder(("*",))
        precise.model(src, read[:, : row + 1], tap=tap.also(recorder))
        for kind in trace.kinds:
            one = precise.model.anatomy.attention(kind)
            if one.stack == "decoder":
                for layer, maps in enumerate(trace.maps(kind)):
                    seen = recorder.values[one.site(layer, "weights")][0, :, row]
                    np.testing.assert_allclose(maps[:, row, : seen.size(-1)], seen, **CLOSE)
                    assert (maps[:, row, seen.size(-1) :] == 0).all()
                allowed = recorder.values[one.site(0, "mask")].expand(1, 1, row + 1, -1)[0, 0, row]
                assert trace.mask(kind)[row, : len(allowed)].tolist() == allowed.tolist()
        for site in ("decoder.1.ffn.output", "decoder.0.self_attn.norm", "logits"):
            np.testing.assert_allclose(found[site][row], recorder.values[site][0, row], **CLOSE)
    for site, value in recorder.values.items():  # of the last row, which read everything
        if not site.endswith("mask"):
            assert found[site].shape == (value.shape if site.endswith("positions") else value.shape[1:])
            if site.startswith("encoder") and site.endswith("weights"):
                np.testing.assert_allclose(trace.encoder_self[int(site.split(".")[1])], value[0], **CLOSE)


@pytest.mark.parametrize("site", ["decoder.1.self_attn.values", "decoder.0.self_attn.weights", "logits"])
def test_a_causal_change_is_the_same_with_and_without_the_cache(precise, site):
    taps = [tap_of(Replacer({site: lambda value: value * 0.5}, causal=causal)) for causal in (True, False)]
    cached, whole = (Prefix(precise.model, torch.tensor([[5, 6]]), cache=KVCache(3), tap=tap) for tap in taps)
    assert (cached.cache is None, whole.cache) == (False, None)
    for decoding in (Greedy(), Beam(size=3), Sampling(seed=2)):
        query = precise.query(SOURCE, decoding=decoding, max_new=6)
        one, other = (run(precise, query, tap=tap) for tap in taps)
        assert one.tgt_ids == other.tgt_ids
        assert not np.array_equal(one.log_probs[0], run(precise, query).log_probs[0])
        np.testing.assert_allclose(one.log_probs, other.log_probs, **CLOSE)
        for kind in one.kinds:
            np.testing.assert_allclose(one.maps(kind), other.maps(kind), **CLOSE)


def test_a_tap_that_only_looks_changes_nothing_and_sees_every_step(precise):
    recorder, src = Recorder(("decoder.0.self_attn.queries",)), torch.tensor([[5, 6, 7, 8]])

    def prefixes():
        return [Prefix(precise.model, src, cache=KVCache(3), tap=tap) for tap in (tap_of(recorder), tap_of())]

    seen, plain = (collect(greedy(prefix, max_new=5)) for prefix in prefixes())
    assert seen == plain
    assert recorder.values["decoder.0.self_attn.queries"].size(2) == 1
    seen, plain = (list(beam_search(prefix, size=2, alpha=0.6, max_new=4))[-1] for prefix in prefixes())
    assert seen == plain
