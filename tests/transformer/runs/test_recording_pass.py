"""Decoding and recording with a tap: through the cache where that is right, prefix by prefix where it is not."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.transformer.one_stack import alone
from transformer import Beam, Greedy, Sampling, load, run
from transformer.model.cache import KVCache
from transformer.model.taps import Recorder, Replacer, tap_of
from transformer.runs.beam import beam_search
from transformer.runs.decoding import Prefix, collect, greedy
from transformer.runs.replay import replay

SOURCE = "ba lo mi ta"


def averaged(value):
    """Over all tokens so far, also those after the row: others with every further token."""
    return value.mean(dim=-2, keepdim=True).expand_as(value)


def look_ahead(mask):
    return torch.ones_like(mask)


TAPS = {
    "values averaged over positions": {"decoder.1.self_attn.values": averaged},
    "no causal mask": {"decoder.*.self_attn.mask": look_ahead},
    "logits averaged over positions": {"logits": averaged},
    "the source averaged too": {"encoder.0.output": averaged, "decoder.0.ffn.output": averaged},
}


@pytest.fixture(scope="module", params=["both", "decoder"])
def precise(request, checkpoint_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    found = load(checkpoint_folder) if request.param == "both" else alone("decoder", folder)
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
    tap = tap_of(Replacer(changes))
    assert not tap.causal
    query = precise.query(SOURCE, max_new=7)
    trace, plain = run(precise, query, tap=tap), run(precise, query)
    log_probs, ids = naive(precise, trace.src_ids, list(trace.read_ids[: trace.row_of(0) + 1]), tap, 7)
    assert tuple(ids[trace.row_of(1) :]) == trace.tgt_ids
    np.testing.assert_allclose(trace.log_probs, log_probs, rtol=0, atol=1e-10)
    assert not np.allclose(trace.log_probs[-1], plain.log_probs[-1 : trace.n_steps], atol=1e-4)


@pytest.mark.parametrize("changes", TAPS.values(), ids=TAPS)
def test_each_row_of_such_a_trace_is_what_its_prefix_alone_gives(precise, changes):
    tap = tap_of(Replacer(changes))
    trace = run(precise, precise.query(SOURCE, max_new=5, forced=(9, 5)), tap=tap)
    src, read = torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids])
    found = replay(precise, trace, ["*"], tap=tap)
    for row in range(len(trace.read_ids)):
        recorder = Recorder(("*",))
        precise.model(src, read[:, : row + 1], tap=tap.also(recorder))
        for kind in trace.kinds:
            one = precise.model.anatomy.attention(kind)
            if one.stack == "decoder":
                seen = recorder.values[one.site(1, "weights")][0, :, row]
                np.testing.assert_allclose(trace.maps(kind)[1, :, row, : seen.size(-1)], seen, rtol=0, atol=1e-10)
                assert (trace.maps(kind)[1, :, row, seen.size(-1) :] == 0).all()
                allowed = recorder.values[one.site(0, "mask")].expand(1, 1, row + 1, -1)[0, 0, row]
                assert trace.mask(kind)[row, : len(allowed)].tolist() == allowed.tolist()
        for site in ("decoder.1.ffn.output", "decoder.0.self_attn.norm", "logits"):
            np.testing.assert_allclose(found[site][row], recorder.values[site][0, row], rtol=0, atol=1e-10)
    for site, value in recorder.values.items():  # of the last row, which read everything
        if not site.endswith("mask"):
            assert found[site].shape == (value.shape if site.endswith("positions") else value.shape[1:])


def halved(value):
    return value * 0.5


@pytest.mark.parametrize("site", ["decoder.0.self_attn.heads", "decoder.1.self_attn.values", "decoder.1.ffn.output",
                                  "decoder.0.self_attn.weights", "logits"])  # fmt: skip
def test_a_causal_change_is_the_same_with_and_without_the_cache(precise, site):
    prefixes = []
    for causal in (True, False):
        tap = tap_of(Replacer({site: halved}, causal=causal))
        src = torch.tensor([[5, 6, 7, 8]])
        prefixes.append(Prefix(precise.model, src, cache=KVCache(3), tap=tap))
    cached, whole = prefixes
    assert cached.cache is not None
    assert whole.cache is None
    with torch.inference_mode():
        for ids in (9, 5, 7, 11, 6):
            np.testing.assert_allclose(cached.next_log_probs(), whole.next_log_probs(), rtol=0, atol=1e-10)
            for prefix in prefixes:
                prefix.append(torch.tensor([ids]))
    for decoding in (Greedy(), Beam(size=3), Sampling(seed=2)):
        query = precise.query(SOURCE, decoding=decoding, max_new=6)
        one, other = (run(precise, query, tap=tap_of(Replacer({site: halved}, causal=c))) for c in (True, False))
        assert one.tgt_ids == other.tgt_ids
        np.testing.assert_allclose(one.log_probs, other.log_probs, rtol=0, atol=1e-10)
        for kind in one.kinds:
            np.testing.assert_allclose(one.maps(kind), other.maps(kind), rtol=0, atol=1e-10)


def test_a_replacer_changes_the_output_of_each_way_of_decoding(precise):
    tap = tap_of(Replacer({"decoder.output": torch.neg}, causal=True))
    for decoding in (Greedy(), Beam(size=3), Sampling(seed=2)):
        query = precise.query(SOURCE, decoding=decoding, max_new=8)
        assert run(precise, query, tap=tap).tgt_ids != run(precise, query).tgt_ids


def test_a_tap_that_only_looks_changes_nothing_and_sees_every_step(precise):
    recorder = Recorder(("decoder.0.self_attn.queries",))
    src = torch.tensor([[5, 6, 7, 8]])
    plain = Prefix(precise.model, src, cache=KVCache(3))
    seen = Prefix(precise.model, src, cache=KVCache(3), tap=tap_of(recorder))
    assert collect(greedy(seen, max_new=5)) == collect(greedy(plain, max_new=5))
    assert recorder.values["decoder.0.self_attn.queries"].size(2) == 1
    seen = Prefix(precise.model, src, cache=KVCache(3), tap=tap_of(recorder))
    plain = Prefix(precise.model, src, cache=KVCache(3))
    one, other = (list(beam_search(prefix, size=2, alpha=0.6, max_new=4)) for prefix in (seen, plain))
    assert one[-1].best == other[-1].best


def test_the_checkpoint_runs_with_a_tap(precise):
    tap = tap_of(Replacer({"decoder.*.ffn.output": torch.zeros_like}, causal=True))
    assert precise.run(SOURCE, tap=tap) == run(precise, precise.query(SOURCE), tap=tap)
