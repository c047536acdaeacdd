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


def mixed_queries(checkpoint):
    return [
        checkpoint.query(SOURCE, max_new=9),
        checkpoint.query("mi", max_new=4),
        checkpoint.query("lo ke su ba lo su mi", max_new=9, forced=(7, EOS)),
        checkpoint.query("ta", max_new=6, decoding=Beam(size=3), hypothesis=2),
        checkpoint.query("ta lo", max_new=6, decoding=Beam(size=3), forced=(9,)),
        checkpoint.query("su mi", max_new=5, decoding=Sampling(seed=2)),
        checkpoint.query("su mi", max_new=5, decoding=Sampling(seed=3)),
        checkpoint.query("su mi", max_new=5, decoding=Sampling(seed=3, temperature=0.3)),
        checkpoint.query(SOURCE, max_new=512),
    ]


def test_a_batch_gives_what_each_query_gives_alone(checkpoint):
    queries = mixed_queries(checkpoint)
    batch = run_batch(checkpoint, queries)
    bare = run_batch(checkpoint, queries, maps=False)
    assert [trace.tgt_ids for trace in bare] == [trace.tgt_ids for trace in batch]
    assert all(trace.maps("cross").shape[2:] == (0, 0) for trace in bare)
    for query, found in zip(queries, batch, strict=True):
        alone = run(checkpoint, query)
        n_src, n = len(alone.src_ids), alone.n_steps
        for field in ("query", "notes", "source_text", "tgt_ids", "tgt_tokens", "texts", "stop_reason"):
            assert getattr(found, field) == getattr(alone, field)
        assert [h.ids for h in found.hypotheses] == [h.ids for h in alone.hypotheses]
        assert found.src_ids == alone.src_ids + (PAD,) * (len(found.src_ids) - n_src)
        assert found.read_ids == alone.read_ids + (PAD,) * (len(found.read_ids) - n)
        assert found.src_tokens[:n_src] == alone.src_tokens
        assert found.log_prob == pytest.approx(alone.log_prob, abs=1e-4)
        np.testing.assert_allclose(found.log_probs, alone.log_probs, rtol=1e-4, atol=1e-4)
        for kind in alone.kinds:
            own = tuple(map(slice, alone.mask(kind).shape))
            np.testing.assert_allclose(found.maps(kind)[:, :, *own], alone.maps(kind), rtol=1e-4, atol=1e-4)
            assert (found.mask(kind)[own] == alone.mask(kind)).all()
    with pytest.raises(QueryError, match="at least one query"):
        run_batch(checkpoint, [])


@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize("max_new", [1, 512])
def test_an_output_that_is_cut_says_so(checkpoint, decoding, max_new):
    trace = run(checkpoint, checkpoint.query(SOURCE, decoding=decoding, max_new=max_new))
    ended = trace.tgt_ids[-1] == EOS
    assert trace.stop_reason == ("end of sentence" if ended else "length limit")
    assert trace.n_steps <= min(max_new, checkpoint.config.max_len)
    assert PAD not in trace.tgt_ids
    assert EOS not in trace.tgt_ids[:-1]


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


@pytest.mark.parametrize("decoding", DECODINGS)
def test_any_other_piece_can_be_forced_and_a_forced_end_ends_the_output(checkpoint, decoding):
    written = [i for i in range(checkpoint.config.tgt_vocab_size) if i != PAD]
    queries = [checkpoint.query("ba", decoding=decoding, forced=(i,), max_new=2) for i in written]
    traces = run_batch(checkpoint, queries)
    assert [trace.tgt_ids[0] for trace in traces] == written
    assert all(trace.step(0).forced for trace in traces)
    trace = run(checkpoint, checkpoint.query(SOURCE, decoding=decoding, forced=(9, 5, EOS)))
    assert (trace.tgt_ids, trace.stop_reason) == ((9, 5, EOS), "end of sentence")


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


@pytest.fixture(scope="module")
def trace(checkpoint):
    return run(checkpoint, checkpoint.query("ba lo mi ta", max_new=9))


def test_what_is_recorded_is_what_the_trace_has(checkpoint, trace):
    found = replay(checkpoint, trace, ["*_attn.weights", "logits", "decoder.0.cross_attn.mask"])
    for layer in range(checkpoint.config.n_decoder_layers):
        assert np.abs(found[f"decoder.{layer}.cross_attn.weights"] - trace.cross[layer]).max() < 1e-6
        assert np.abs(found[f"decoder.{layer}.self_attn.weights"] - trace.decoder_self[layer]).max() < 1e-6
    for layer in range(checkpoint.config.n_encoder_layers):
        assert np.abs(found[f"encoder.{layer}.self_attn.weights"] - trace.encoder_self[layer]).max() < 1e-6
    log_probs = torch.tensor(found["logits"]).log_softmax(-1).numpy()
    assert np.abs(log_probs - trace.log_probs).max() < 1e-5
    assert found["decoder.0.cross_attn.mask"].dtype == bool
    assert not any(value.flags.writeable for value in found.values())


def test_what_is_not_of_the_checkpoint_is_refused(checkpoint, shared, trace):
    for other, said in (("ab" * 32, "for checkpoint abababababab, not for tiny"), ("", "not for tiny")):
        with pytest.raises(QueryError, match=said):
            run(checkpoint, Query(checkpoint=other, source=SOURCE))
    with pytest.raises(QueryError, match="made with a checkpoint other than tiny-shared;"):
        replay(shared, trace, ["logits"])
    with pytest.raises(QueryError, match=r"no site that matches 'decoder\.77"):
        replay(checkpoint, trace, ["logits", "decoder.77.*"])


@pytest.mark.parametrize(("site", "n"), [("decoder.0.self_attn.heads", 0), ("logits", 1)])
def test_logits_are_computed_where_somebody_wants_them(checkpoint, trace, monkeypatch, site, n):
    calls, project = [], Transformer.project
    monkeypatch.setattr(Transformer, "project", lambda *given, **more: calls.append(1) or project(*given, **more))
    replay(checkpoint, trace, [site])
    assert len(calls) == n
