"""A trace records what each step saw, under labels that say what it was, and cannot be changed."""

from copy import deepcopy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch

from transformer import Beam, Greedy, Sampling, run, run_batch
from transformer.errors import QueryError
from transformer.runs.trace import RowLabel

SOURCE = "ba lo mi ta"
DECODINGS = [Greedy(), Beam(size=3), Sampling(temperature=0.8, top_k=20, top_p=0.9, seed=4)]


@pytest.fixture(scope="module", params=["pair", "shared", "decoder"])
def precise(request):
    """The same models, and a decoder alone, in float64."""
    found = request.getfixturevalue(request.param)
    return replace(found, model=deepcopy(found.model).double())


@pytest.fixture(scope="module", params=DECODINGS, ids=lambda decoding: type(decoding).__name__)
def trace(request, precise):
    return run(precise, precise.query(SOURCE, decoding=request.param, max_new=7, forced=(9, 5)))


@pytest.mark.parametrize("name", ["pair", "shared"])
def test_masks_hide_the_future_and_the_padding_and_row_t_reads_piece_t_minus_1_and_predicts_piece_t(name, request):
    checkpoint = request.getfixturevalue(name)
    config, piece = checkpoint.config, checkpoint.tgt_tokenizer.piece
    layers = {"encoder": config.n_encoder_layers, "decoder": config.n_decoder_layers, "cross": config.n_decoder_layers}
    settings = {
        SOURCE: {"max_new": 9},
        "mi": {"max_new": 4},
        "lo ke su ba lo": {"max_new": 9, "forced": (7, config.eos_id)},
        "ta": {"max_new": 6, "decoding": Beam(size=3)},
        "su mi": {"max_new": 5, "decoding": Sampling(seed=2)},
    }
    batch = run_batch(checkpoint, [checkpoint.query(text, **how) for text, how in settings.items()])
    for field in ("src_ids", "read_ids"):
        assert any(0 in getattr(trace, field) for trace in batch)
    for trace in batch:
        source, target = np.array(trace.src_ids) != 0, np.arange(len(trace.read_ids)) < trace.n_steps
        assert (trace.encoder_mask == source).all()
        assert (trace.cross_mask == source).all()
        assert (trace.decoder_mask == (np.tri(len(target), dtype=bool) & target)).all()
        for kind in trace.kinds:
            maps, mask = trace.maps(kind), trace.mask(kind)
            assert (maps.dtype, maps.shape) == (np.float32, (layers[kind], config.n_heads, *mask.shape))
            np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-5)
            assert np.array_equal(maps > 0, np.broadcast_to(mask, maps.shape))
        assert [checkpoint.src_tokenizer.piece(i) for i in trace.src_ids] == list(trace.src_tokens)
        read = [config.decoder_start_id, *trace.tgt_ids[:-1]]
        expected = [RowLabel(piece(a), piece(b)) for a, b in zip(read, trace.tgt_ids, strict=True)]
        labels, frame = trace.row_labels(), trace.to_frame()
        assert labels == (*expected, *[RowLabel(piece(0), None)] * (len(labels) - trace.n_steps))
        assert len(labels) == trace.decoder_self.shape[2] == trace.cross.shape[2]
        assert [trace.step(t).label for t in range(trace.n_steps)] == expected
        assert [*zip(frame["reads"], frame["predicts"], strict=True)] == [(e.reads, e.predicts) for e in expected]
        assert str(labels[0]) == f"{piece(config.decoder_start_id)} → {piece(trace.tgt_ids[0])}"


def test_candidates_are_the_best_first_and_the_frame_has_one_row_a_step(precise, trace):
    logits = precise.model(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]))[0, trace.first_row :]
    probs, steps = logits.softmax(-1).numpy(), range(trace.n_steps)
    own, piece = probs[steps, list(trace.tgt_ids)], precise.tgt_tokenizer.piece
    for t, i in enumerate(trace.tgt_ids):
        order, row = np.argsort(-probs[t], kind="stable").tolist(), trace.row_of(t)
        for top_k in (0, 3, 1_000):
            step = trace.step(t, top_k=top_k)
            assert [c.id for c in step.candidates[:top_k]] == order[:top_k]
            found = [c.probability for c in step.candidates]
            assert found == pytest.approx([probs[t, c.id] for c in step.candidates], abs=1e-10)
            assert [c.piece for c in step.candidates] == [piece(c.id) for c in step.candidates]
            draws = [c.sampling_probability is not None for c in step.candidates]
            assert draws == [isinstance(trace.query.decoding, Sampling)] * len(draws)
            assert [c.id for c in step.candidates if c.chosen] == [i] == [step.chosen.id]
            assert len(step.candidates) == min(top_k, len(trace.vocabulary)) + (step.rank > top_k)
        assert (step.rank, step.forced) == (1 + int((probs[t] > probs[t, i]).sum()), t < 2)
        assert np.array_equal(step.decoder_rows, trace.decoder_self[:, :, row, : row + 1])
        assert "cross" not in trace.kinds or np.array_equal(step.cross_rows, trace.cross[:, :, row])
    for index in (-1, 7):
        with pytest.raises(QueryError, match=f"step {index} does not exist; this run has steps 0 to 6"):
            trace.step(index)
    texts = [precise.tgt_tokenizer.decode(trace.tgt_ids[: t + 1]) for t in steps]
    expected = {
        "step": list(steps),
        "id": list(trace.tgt_ids),
        "probability": pytest.approx(own, abs=1e-10),
        "log_probability": pytest.approx(np.log(own), abs=1e-10),
        "rank": [trace.step(t).rank for t in steps],
        "forced": [True, True] + [False] * 5,
        "entropy_bits": [trace.step(t).entropy for t in steps],
        "text": texts,
    }
    frame = trace.to_frame()
    assert {name: frame[name].tolist() for name in expected} == expected
    assert (list(trace.texts), trace.output_text) == (texts, texts[-1])
    assert trace.log_prob == pytest.approx(np.log(own).sum(), abs=1e-9)


def test_the_entropy_is_in_bits(trace):
    n = len(trace.vocabulary)
    rows = np.full((3, n), -np.inf)
    rows[0, 5] = 0.0
    rows[1, :8] = -np.log(8)
    rows[2] = -np.log(n)
    entropies = replace(trace, log_probs=rows, tgt_ids=(5, 5, 5)).entropies()
    assert entropies == pytest.approx([0, 3, np.log2(n)])
    assert str(entropies[0]) == "0.0"


def test_equality_is_exact_but_knows_no_seconds_a_trace_cannot_be_changed_and_its_size_is_that_of_its_arrays(trace):
    assert trace == replace(trace, seconds=trace.seconds + 1)
    changes = [{"log_probs": np.nextafter(trace.log_probs, 2)}, {"notes": ("another",)}]
    changes += [{"query": replace(trace.query, max_new=8)}]
    changes += [{"weights": {**trace.weights, kind: np.nextafter(trace.maps(kind), 2)}} for kind in trace.kinds]
    changes += [{"masks": {**trace.masks, kind: ~trace.mask(kind)}} for kind in trace.kinds]
    assert all(trace != replace(trace, **change) for change in changes)
    assert trace != "a trace"
    with pytest.raises(FrozenInstanceError):
        trace.log_prob = 0.0
    for array in (trace.log_probs, trace.decoder_self, trace.decoder_mask, trace.step(1).decoder_rows):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    arrays = [trace.log_probs, trace.log_sums, *map(trace.maps, trace.kinds), *map(trace.mask, trace.kinds)]
    assert trace.nbytes == sum(array.nbytes for array in arrays)
