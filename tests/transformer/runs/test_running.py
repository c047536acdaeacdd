"""A run is the same alone and among others, and refused where it cannot be; a replay computes what is looked at."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from transformer import Beam, Greedy, Query, Sampling, run, run_batch
from transformer.errors import QueryError
from transformer.model.taps import Replacer, tap_of
from transformer.model.transformer import Transformer
from transformer.runs.beam import length_penalty
from transformer.runs.running import replay

SOURCE = "ba lo mi ta"
PAD, EOS = 0, 3
DECODINGS = [Greedy(), Beam(size=4), Sampling(temperature=1.5, seed=11)]


@pytest.mark.parametrize("decoding", DECODINGS)
def test_an_output_that_is_cut_says_so_and_any_piece_but_padding_can_be_forced(checkpoint, decoding):
    for max_new in (1, 512):
        trace = run(checkpoint, checkpoint.query(SOURCE, decoding=decoding, max_new=max_new))
        assert trace.stop_reason == ("end of sentence" if trace.tgt_ids[-1] == EOS else "length limit")
        assert trace.n_steps <= min(max_new, checkpoint.config.max_len)
        assert PAD not in trace.tgt_ids
        assert EOS not in trace.tgt_ids[:-1]
    written = [i for i in range(checkpoint.config.tgt_vocab_size) if i != PAD]
    queries = [checkpoint.query("ba", decoding=decoding, forced=(i,), max_new=2) for i in written]
    traces = run_batch(checkpoint, queries)
    assert [trace.tgt_ids[0] for trace in traces] == written
    assert all(trace.step(0).forced for trace in traces)
    trace = run(checkpoint, checkpoint.query(SOURCE, decoding=decoding, forced=(9, 5, EOS)))
    assert (trace.tgt_ids, trace.stop_reason) == ((9, 5, EOS), "end of sentence")


def test_each_result_of_beam_search_can_be_looked_at(checkpoint):
    queries = [checkpoint.query(SOURCE, decoding=Beam(size=4), hypothesis=i, max_new=6) for i in range(4)]
    traces = [run(checkpoint, query) for query in queries]
    ranked = traces[0].hypotheses
    assert [h.score for h in ranked] == sorted((h.score for h in ranked), reverse=True)
    for query, trace, h in zip(queries, traces, ranked, strict=True):
        assert trace.query is query
        assert trace.hypotheses == ranked
        assert (trace.tgt_ids, trace.output_text, trace.stop_reason) == (h.ids, h.text, h.stop_reason)
        assert trace.log_prob == pytest.approx(h.log_prob, abs=1e-4)
        assert h.score == pytest.approx(h.log_prob / length_penalty(len(h.ids), 0.6))
    with pytest.raises(QueryError, match="result 2 was requested, but beam search found only 1"):
        run(checkpoint, checkpoint.query(SOURCE, decoding=Beam(size=4), forced=(5, EOS), hypothesis=1))


@pytest.mark.parametrize(
    ("forced", "message"),
    [
        ((-1,), "forced token id: found -1"),
        ((5, 10_000), "outside the vocabulary; ids go from 0 to"),
        ((5, PAD, 6), "is never written: it is padding"),
        ((5, EOS, 6), "forced token comes after the end mark"),
        ((5,) * 33, "33 tokens are forced, but tiny can write at most 32"),
    ],
)
def test_forced_pieces_that_cannot_be_written_are_refused(checkpoint, forced, message):
    with pytest.raises(QueryError, match=message):
        run(checkpoint, checkpoint.query(SOURCE, forced=forced, max_new=512))


def test_who_ablates_disturbs_nobody(checkpoint):
    """A replaces every cross-attention by nothing while B runs plain, 12 times each, in four threads."""
    query = checkpoint.query(SOURCE, max_new=3)
    solo = run(checkpoint, query)
    src, read = torch.tensor([solo.src_ids]), torch.tensor([solo.read_ids])
    ablation = tap_of(Replacer({"decoder.*.cross_attn.weights": torch.zeros_like}))

    def ablated(_):
        with torch.inference_mode():
            return checkpoint.model(src, read, tap=ablation)

    expected = ablated(0)
    assert not torch.allclose(expected, checkpoint.model(src, read))
    with ThreadPoolExecutor(4) as threads:
        pairs = [(threads.submit(ablated, i), threads.submit(run, checkpoint, query)) for i in range(12)]
        for a, b in pairs:
            assert torch.equal(a.result(), expected)
            assert b.result() == solo


def test_what_is_recorded_is_what_the_trace_has_and_logits_are_computed_where_wanted(checkpoint, monkeypatch):
    trace = run(checkpoint, checkpoint.query(SOURCE, max_new=9))
    calls, project = [], Transformer.project
    monkeypatch.setattr(Transformer, "project", lambda *given, **more: calls.append(1) or project(*given, **more))
    found = replay(checkpoint, trace, ["*_attn.weights", "decoder.0.cross_attn.mask"])
    assert calls == []
    for kind in trace.kinds:
        for layer, maps in enumerate(trace.maps(kind)):
            site = checkpoint.model.anatomy.attention(kind).site(layer, "weights")
            assert np.abs(found[site] - maps).max() < 1e-6
    assert found["decoder.0.cross_attn.mask"].dtype == bool
    assert not any(value.flags.writeable for value in found.values())
    logits = replay(checkpoint, trace, ["logits"])["logits"]
    assert len(calls) == 1
    assert np.abs(torch.tensor(logits).log_softmax(-1).numpy() - trace.log_probs).max() < 1e-5


def test_what_is_not_of_the_checkpoint_is_refused(checkpoint, shared):
    trace = run(checkpoint, checkpoint.query(SOURCE, max_new=2))
    for other, said in (("ab" * 32, "for checkpoint abababababab, not for tiny"), ("", "not for tiny")):
        with pytest.raises(QueryError, match=said):
            run(checkpoint, Query(checkpoint=other, source=SOURCE))
    with pytest.raises(QueryError, match="made with a checkpoint other than tiny-shared;"):
        replay(shared, trace, ["logits"])
    with pytest.raises(QueryError, match=r"no site that matches 'decoder\.77"):
        replay(checkpoint, trace, ["logits", "decoder.77.*"])
    with pytest.raises(QueryError, match="at least one query"):
        run_batch(checkpoint, [])
