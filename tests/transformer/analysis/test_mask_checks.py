"""Masks of a batch, the scores under them and the live checks, each against a plain recomputation."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.transformer.tiny import joined, tiny_model
from transformer.analysis.mask_checks import (
    Movement,
    additive,
    batch_masks,
    check_causality,
    check_padding,
    record_attention,
)
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.runs.running import run_batch

ROOT = Path(__file__).parents[3]
NAMES = ["zh-en", "en-fr", "reverse"]
SOURCES = {
    "zh-en": ["汤姆有两个孩子。", "我喜欢喝咖啡。", "如果明天下雨，我们就待在家里。"],
    "en-fr": ["Tom has two children.", "I like coffee.", "If it rains tomorrow, we will stay at home."],
    "reverse": ["glass", "noon", "transformer"],
}


@pytest.fixture(scope="module", params=NAMES)
def batch(request):
    """A shipped checkpoint, and three sentences of different lengths run as one batch."""
    checkpoint = load(ROOT / "checkpoints" / request.param)
    traces = run_batch(checkpoint, [checkpoint.query(source) for source in SOURCES[request.param]])
    src, tgt = tuple(trace.src_ids for trace in traces), tuple(trace.read_ids for trace in traces)
    return checkpoint, traces, src, tgt


def plain_masks(src, tgt, pad):
    """The three masks as attention applies them [sentence][query][key], by their definition."""
    places = range(len(tgt[0]))
    return {
        "source": [[[key != pad for key in row] for _ in row] for row in src],
        "target": [[[key != pad or k == 0 for k, key in enumerate(row)] for _ in row] for row in tgt],
        "causal": [[[k <= q for k in places] for q in places] for _ in tgt],
        "decoder": [
            [[(row[k] != pad or k == 0) and k <= q for k in places] for q in places] for row in tgt
        ],
        "cross": [[[key != pad for key in row] for _ in places] for row in src],
    }  # fmt: skip


def test_masks_are_those_of_the_ids_and_those_that_the_run_recorded(batch):
    checkpoint, traces, src, tgt = batch
    masks = batch_masks(checkpoint.model, src, tgt)
    n, s, t = len(src), len(src[0]), len(tgt[0])
    assert masks.source.shape == masks.cross.shape == (n, 1, 1, s)
    assert masks.target.shape == (n, 1, 1, t)
    assert (masks.causal.shape, masks.decoder.shape) == ((1, 1, t, t), (n, 1, t, t))
    for name, expected in plain_masks(src, tgt, checkpoint.config.pad_id).items():
        assert masks.whole(name).tolist() == expected, name
    for row, trace in enumerate(traces):
        for name, kind in (("source", "encoder"), ("decoder", "decoder"), ("cross", "cross")):
            np.testing.assert_array_equal(masks.whole(name)[row], trace.mask(kind))
    assert not masks.source.all()  # padding is real
    assert not masks.target.all()


def test_the_start_id_is_seen_even_where_it_is_the_padding_id():
    model = tiny_model(decoder_start_id=0, pad_id=0)
    masks = batch_masks(model, ((5, 6),), ((0, 7, 0),))
    assert masks.target[0, 0, 0].tolist() == [True, True, False]
    assert masks.decoder[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]


def test_added_masks_are_zero_or_minus_infinity():
    mask = np.array([[True, False], [True, True]])
    np.testing.assert_array_equal(additive(mask), np.array([[0, -np.inf], [0, 0]], dtype=np.float32))
    assert additive(mask).dtype == np.float32
    np.testing.assert_array_equal(additive(mask) == 0, mask)


def plain_encoder_scores(model, src):
    """Scores and weights of the first encoder layer of a pre-norm model, from its parameters alone."""
    config, layer = model.config, model.encoder.layers[0]
    ids = torch.tensor(src)
    x = model.src_table[ids] * math.sqrt(config.d_model) + model.encoder.embedding.positions(ids.size(1))
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, unbiased=False)
    norm = layer.self_attn_residual.norm
    x = (x - mean) / torch.sqrt(var + config.norm_eps) * norm.weight + norm.bias
    w, b = joined(layer.self_attn), joined(layer.self_attn, "bias")
    d = config.d_model
    q, k = (x @ w[i * d : (i + 1) * d].T + b[i * d : (i + 1) * d] for i in (0, 1))
    size = d // config.n_heads
    scores = torch.stack(
        [
            torch.stack([q[n, :, h : h + size] @ k[n, :, h : h + size].T for h in range(0, d, size)])
            for n in range(len(ids))
        ]
    ) / math.sqrt(size)
    closed = (ids == config.pad_id)[:, None, None, :].expand_as(scores)
    return scores, (scores + torch.where(closed, -math.inf, 0.0)).softmax(-1)


def test_scores_and_weights_are_those_of_the_parameters(batch):
    checkpoint, _, src, tgt = batch
    found = record_attention(checkpoint.model, src, tgt, kind="encoder", layer=0)
    scores, weights = plain_encoder_scores(checkpoint.model, src)
    assert found.scores.shape == found.mask.shape == found.weights.shape
    np.testing.assert_allclose(found.scores, scores.detach(), atol=2e-4)
    np.testing.assert_allclose(found.weights, weights.detach(), atol=2e-5)
    assert (found.weights[~found.mask] == 0).all()
    assert np.abs(found.scores[~found.mask]).max() > 0.1  # pads have scores like any key: the mask is needed


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_weights_are_the_softmax_of_scores_under_the_mask_and_those_of_the_run(batch, kind):
    checkpoint, traces, src, tgt = batch
    found = record_attention(checkpoint.model, src, tgt, kind=kind, layer=1)
    name = {"encoder": "source", "decoder": "decoder", "cross": "cross"}[kind]
    masks = np.array(plain_masks(src, tgt, checkpoint.config.pad_id)[name])
    np.testing.assert_array_equal(found.mask, np.broadcast_to(masks[:, None], found.mask.shape))
    masked = np.where(found.mask, found.scores.astype(np.float64), -np.inf)
    raised = np.exp(masked - masked.max(-1, keepdims=True))
    np.testing.assert_allclose(found.weights, raised / raised.sum(-1, keepdims=True), atol=1e-6)
    for row, trace in enumerate(traces):
        np.testing.assert_allclose(found.weights[row], trace.maps(kind)[1], atol=5e-6)


def test_a_layer_that_is_not_there_is_refused(batch):
    checkpoint, _, src, tgt = batch
    with pytest.raises(QueryError, match="no cross layer 10"):
        record_attention(checkpoint.model, src, tgt, kind="cross", layer=9)


@torch.inference_mode()
def test_causality_is_the_difference_of_two_forward_calls(batch):
    checkpoint, traces, src, tgt = batch
    place = traces[0].n_steps // 2
    piece_id = next(i for i in range(5, 30) if i != tgt[0][place])
    found = check_causality(checkpoint.model, src, tgt, sentence=0, place=place, piece_id=piece_id)
    changed = torch.tensor(tgt)
    changed[0, place] = piece_id
    before = checkpoint.model(torch.tensor(src), torch.tensor(tgt))
    moved = (checkpoint.model(torch.tensor(src), changed) - before).abs().amax(-1)
    np.testing.assert_array_equal(found.kept, moved[0])
    assert found.largest == before[0].abs().max()
    assert (found.kept[:place] == 0).all()
    assert found.elsewhere == moved[1:].max() == 0
    assert (found.kept[place:] > 1e-3).all()
    assert (found.taken[:place] > 1e-2).all()  # without the mask every earlier row sees the change


def test_without_the_causal_mask_is_a_run_that_sees_the_future(batch):
    """Against an encoder-like decoder: each row alone, its own mask given by hand."""
    checkpoint, _, src, tgt = batch
    model = checkpoint.model
    place, piece_id = 1, next(i for i in range(5, 30) if i != tgt[1][1])
    found = check_causality(model, src, tgt, sentence=1, place=place, piece_id=piece_id)
    changed = [list(row) for row in tgt]
    changed[1][place] = piece_id
    with torch.inference_mode():
        source = torch.tensor(src)
        memory, cross = model.encode(source), (source != checkpoint.config.pad_id)[:, None, None]
        logits = []
        for ids in (torch.tensor(tgt), torch.tensor(changed)):
            seen = (ids != checkpoint.config.pad_id)[:, None, None].expand(-1, 1, ids.size(1), -1)
            logits.append(model.project(model.decoder(ids, model.target_table, memory, seen, cross)))
    np.testing.assert_allclose(found.taken, (logits[1] - logits[0]).abs().amax(-1)[1], atol=1e-5)


def test_a_place_that_is_not_there_is_refused(batch):
    checkpoint, _, src, tgt = batch
    for sentence, place in ((0, 99), (0, -1), (7, 0)):
        with pytest.raises(QueryError, match="has no target token"):
            check_causality(checkpoint.model, src, tgt, sentence=sentence, place=place, piece_id=5)


@pytest.mark.parametrize("n_pads", [1, 3])
@torch.inference_mode()
def test_padding_is_the_difference_of_two_forward_calls(batch, n_pads):
    checkpoint, traces, _, _ = batch
    model, pad = checkpoint.model, checkpoint.config.pad_id
    src = [i for i in traces[0].src_ids if i != pad]
    tgt = list(traces[0].read_ids[: traces[0].n_steps])
    found = check_padding(model, src, tgt, n_pads=n_pads)
    pads = [pad] * n_pads
    alone = model(torch.tensor([src]), torch.tensor([tgt]))[0]
    on_source = model(torch.tensor([src + pads]), torch.tensor([tgt]))[0]
    on_target = model(torch.tensor([src]), torch.tensor([tgt + pads]))[0, : len(tgt)]
    np.testing.assert_array_equal(found.source.kept, (on_source - alone).abs().amax(-1))
    np.testing.assert_array_equal(found.target.kept, (on_target - alone).abs().amax(-1))
    for moved in (found.source, found.target):
        assert moved.largest == alone.abs().max()
        assert moved.kept.max() <= moved.rounding < 1e-4
        assert moved.kept.shape == moved.taken.shape == (len(tgt),)
    assert found.source.taken.min() > 1e-2  # without the mask the pads are read
    assert found.target.taken.max() <= found.target.rounding  # the causal mask alone hides pads that come after


def test_pads_that_are_read_are_another_piece_at_the_end(batch):
    """Without its mask a pad is a source piece like any other: marking nothing as padding gives the same run."""
    checkpoint, traces, _, _ = batch
    model, pad = checkpoint.model, checkpoint.config.pad_id
    src = [i for i in traces[0].src_ids if i != pad]
    tgt = list(traces[0].read_ids[: traces[0].n_steps])
    found = check_padding(model, src, tgt, n_pads=1)
    with torch.inference_mode():
        ids, read = torch.tensor([[*src, pad]]), torch.tensor([tgt])
        memory = model.encoder(ids, model.src_table, torch.ones(1, 1, 1, ids.size(1), dtype=torch.bool))
        logits = model.project(model.decode(read, memory, None))
        moved = (logits - model(torch.tensor([src]), read)).abs().amax(-1)[0]
    np.testing.assert_allclose(found.source.taken, moved, atol=1e-5)


def test_too_many_pads_are_refused():
    model = tiny_model(max_len=6)
    with pytest.raises(QueryError, match="at most 6"):
        check_padding(model, [5, 6, 7], [2, 5], n_pads=4)


def test_rounding_is_counted_in_spacings_of_the_largest_logit():
    moved = Movement(kept=np.zeros(2), taken=np.ones(2), largest=12.0)
    assert moved.spacing == 2.0**-20  # numbers from 8 to 16 have 20 binary places left of 24
    assert moved.rounding == 16 * moved.spacing
