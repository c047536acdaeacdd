"""A trace records what each step saw, under labels that say what it was, and cannot be changed."""

import re
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch

from transformer import Beam, Greedy, Sampling, run, run_batch
from transformer.errors import QueryError
from transformer.model.taps import Recorder, tap_of
from transformer.runs.trace import RowLabel

SOURCE = "ba lo mi ta"
DECODINGS = [Greedy(), Beam(size=3), Sampling(temperature=0.8, top_k=20, top_p=0.9, seed=4)]


@pytest.fixture(scope="module", params=["pair", "shared"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module", params=["pair", "shared", "decoder"])
def precise(request):
    """The same models, and a decoder alone, in float64."""
    found = request.getfixturevalue(request.param)
    return replace(found, model=deepcopy(found.model).double())


@pytest.fixture(scope="module", params=DECODINGS, ids=lambda decoding: type(decoding).__name__)
def trace(request, precise):
    return run(precise, precise.query(SOURCE, decoding=request.param, max_new=7, forced=(9, 5)))


@pytest.fixture(scope="module")
def batch(checkpoint):
    """Sources and outputs of different lengths."""
    eos = checkpoint.config.eos_id
    queries = [
        checkpoint.query(SOURCE, max_new=9),
        checkpoint.query("mi", max_new=4),
        checkpoint.query("lo ke su ba lo", max_new=9, forced=(7, eos)),
        checkpoint.query("ta", max_new=6, decoding=Beam(size=3)),
        checkpoint.query("su mi", max_new=5, decoding=Sampling(seed=2)),
    ]
    return run_batch(checkpoint, queries)


def tensors(trace):
    return torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids])


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def own_probabilities(checkpoint, trace):
    """[step, tgt_vocab], from a pass of its own."""
    return softmax(checkpoint.model(*tensors(trace))[0, trace.first_row :].double().numpy())


def test_each_row_is_what_its_prefix_alone_gives(precise, trace):
    src, read = tensors(trace)
    assert trace.tgt_ids[:2] == (9, 5)
    for t in range(trace.n_steps):
        recorder, row, step = Recorder(), trace.row_of(t), trace.step(t)
        logits = precise.model(src, read[:, : row + 1], tap=tap_of(recorder))
        np.testing.assert_allclose(trace.log_probs[t], logits[0, row].log_softmax(-1), rtol=0, atol=1e-10)
        for part, rows in (("self_attn", step.decoder_rows), ("cross_attn", step.cross_rows)):
            seen = [value for site, value in recorder.values.items() if re.fullmatch(rf"dec.*{part}\.weights", site)]
            for own, weights in zip(rows, seen, strict=True):
                np.testing.assert_allclose(own, weights[0, :, row], rtol=0, atol=1e-10)
        if "encoder" in trace.kinds:
            seen = [recorder.values[f"encoder.{i}.self_attn.weights"][0] for i in range(len(trace.encoder_self))]
            np.testing.assert_allclose(trace.encoder_self, torch.stack(seen), rtol=0, atol=1e-10)


def test_the_masks_hide_the_future_and_the_padding_and_nothing_else(checkpoint, batch):
    config = checkpoint.config
    layers = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers, "cross": config.n_decoder_layers}
    for trace in batch:
        source = np.array(trace.src_ids) != 0
        target = np.arange(len(trace.read_ids)) < trace.n_steps
        past = np.tril(np.ones((len(target), len(target)), dtype=bool))
        assert (trace.encoder_mask == source).all()
        assert (trace.cross_mask == source).all()
        assert (trace.decoder_mask == (past & target)).all()
        for kind in trace.kinds:
            maps, mask = trace.maps(kind), trace.mask(kind)
            assert (maps.dtype, maps.shape) == (np.float32, (layers[kind], config.n_heads, *mask.shape))
            np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-5)
            assert (maps[:, :, ~mask] == 0).all()
            assert (maps[:, :, mask] > 0).all()
        assert [checkpoint.src_tokenizer.piece(i) for i in trace.src_ids] == list(trace.src_tokens)
    assert any(0 in trace.src_ids for trace in batch)
    assert any(0 in trace.read_ids for trace in batch)


def test_row_t_reads_piece_t_minus_1_and_predicts_piece_t(checkpoint, batch):
    piece, start = checkpoint.tgt_tokenizer.piece, checkpoint.config.decoder_start_id
    for trace in batch:
        read = [start, *trace.tgt_ids[:-1]]
        expected = [RowLabel(piece(a), piece(b)) for a, b in zip(read, trace.tgt_ids, strict=True)]
        labels = trace.row_labels()
        assert list(labels[: trace.n_steps]) == expected
        assert labels[trace.n_steps :] == (RowLabel(piece(0), None),) * (len(labels) - trace.n_steps)
        assert len(labels) == trace.decoder_self.shape[2] == trace.cross.shape[2]
        assert [trace.step(t).label for t in range(trace.n_steps)] == expected
        frame = trace.to_frame()
        assert [*zip(frame["reads"], frame["predicts"], strict=True)] == [(e.reads, e.predicts) for e in expected]
        assert str(labels[0]) == f"{piece(start)} → {piece(trace.tgt_ids[0])}"


@pytest.mark.parametrize("top_k", [0, 3, 1_000])
def test_candidates_are_the_best_first_and_the_chosen_piece_is_always_among_them(precise, trace, top_k):
    probs = own_probabilities(precise, trace)
    for t, i in enumerate(trace.tgt_ids):
        step = trace.step(t, top_k=top_k)
        assert [c.id for c in step.candidates[:top_k]] == np.argsort(-probs[t], kind="stable")[:top_k].tolist()
        for c in step.candidates:
            assert c.probability == pytest.approx(probs[t, c.id], abs=1e-10)
            assert c.piece == precise.tgt_tokenizer.piece(c.id)
            assert (c.sampling_probability is None) == (not isinstance(trace.query.decoding, Sampling))
        assert [c.id for c in step.candidates if c.chosen] == [i] == [step.chosen.id]
        assert len(step.candidates) == min(top_k, len(trace.vocabulary)) + (step.rank > top_k)
        assert step.rank == 1 + int((trace.log_probs[t] > trace.log_probs[t, i]).sum())
        assert step.forced == (t < 2)
    for index in (-1, 7):
        with pytest.raises(QueryError, match=f"step {index} does not exist; this run has steps 0 to 6"):
            trace.step(index)


def test_the_entropy_is_in_bits(trace):
    n = len(trace.vocabulary)
    rows = np.full((3, n), -np.inf)
    rows[0, 5] = 0.0
    rows[1, :8] = -np.log(8)
    rows[2] = -np.log(n)
    entropies = replace(trace, log_probs=rows, tgt_ids=(5, 5, 5)).entropies()
    assert entropies == pytest.approx([0, 3, np.log2(n)])
    assert str(entropies[0]) == "0.0"


def test_the_frame_has_one_row_a_step(precise, trace):
    frame, probs = trace.to_frame(), own_probabilities(precise, trace)
    chosen = probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
    assert frame["step"].tolist() == list(range(trace.n_steps))
    assert frame["id"].tolist() == list(trace.tgt_ids)
    assert frame["probability"].tolist() == pytest.approx(chosen, abs=1e-10)
    assert frame["log_probability"].tolist() == pytest.approx(np.log(chosen), abs=1e-10)
    assert frame["rank"].tolist() == [trace.step(t).rank for t in range(trace.n_steps)]
    assert frame["forced"].tolist() == [True, True] + [False] * 5
    assert frame["entropy_bits"].tolist() == [trace.step(t).entropy for t in range(trace.n_steps)]
    texts = [precise.tgt_tokenizer.decode(trace.tgt_ids[: t + 1]) for t in range(trace.n_steps)]
    assert frame["text"].tolist() == list(trace.texts) == texts
    assert trace.output_text == texts[-1]
    assert trace.log_prob == pytest.approx(np.log(chosen).sum(), abs=1e-9)


def test_equality_is_exact_but_knows_no_seconds(trace):
    assert trace == replace(trace, seconds=trace.seconds + 1)
    assert trace != replace(trace, log_probs=np.nextafter(trace.log_probs, 2))
    for kind in trace.kinds:
        changed = np.nextafter(trace.maps(kind), 2)
        assert trace != replace(trace, weights={**trace.weights, kind: changed})
        assert trace != replace(trace, masks={**trace.masks, kind: ~trace.mask(kind)})
    assert trace != replace(trace, notes=("another",))
    assert trace != replace(trace, query=replace(trace.query, max_new=8))
    assert trace != "a trace"


def test_a_trace_cannot_be_changed(trace):
    with pytest.raises(FrozenInstanceError):
        trace.log_prob = 0.0
    for array in (trace.log_probs, trace.decoder_self, trace.decoder_mask, trace.step(1).decoder_rows):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_its_size_is_that_of_its_arrays(trace):
    arrays = [trace.log_probs, trace.log_sums, *map(trace.maps, trace.kinds), *map(trace.mask, trace.kinds)]
    assert trace.nbytes == sum(array.nbytes for array in arrays)
