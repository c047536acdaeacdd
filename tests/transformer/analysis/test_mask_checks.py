"""Masks of a batch and the live checks of them are what plain calls of the model give."""

import numpy as np
import pytest
import torch

from tests.test_checkpoints import FOLDER
from tests.transformer.featured import featured
from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_model
from transformer.analysis import mask_checks
from transformer.analysis.mask_checks import batch_masks, changed_masks, check_causality, check_padding
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import parse
from transformer.runs.running import run_batch


@pytest.fixture(scope="module", params=["reverse", "alibi"])
def batch(request, tmp_path_factory):
    """A checkpoint, a trained pair of stacks or a decoder alone, and sentences of different lengths as one batch."""
    if request.param == "reverse":
        checkpoint, sources = load(FOLDER / "reverse"), ["glass", "noon", "transformer"]
    else:
        checkpoint, sources = featured("alibi", tmp_path_factory.mktemp("alone")), ["ba lo mi ta", "ba", "lo su"]
    traces = run_batch(checkpoint, [checkpoint.query(source, max_new=9) for source in sources])
    return checkpoint, traces, tuple(one.src_ids for one in traces), tuple(one.read_ids for one in traces)


def plain_masks(src, tgt, pad, sees=lambda q, k: k <= q):
    """The masks as attention applies them [sentence][query][key], by their definition."""
    places = range(len(tgt[0]))
    return {
        "source": [[[key != pad for key in row] for _ in row] for row in src],
        "target": [[[key != pad or k == 0 for k, key in enumerate(row)] for _ in row] for row in tgt],
        "causal": [[[k <= q for k in places] for q in places] for _ in tgt],
        "decoder": [[[(row[k] != pad or k == 0) and sees(q, k) for k in places] for q in places] for row in tgt],
        "cross": [[[key != pad for key in row] for _ in places] for row in src],
    }


def test_masks_are_those_of_the_ids_and_those_that_the_run_recorded(batch):
    checkpoint, traces, src, tgt = batch
    masks, expected = batch_masks(checkpoint.model, src, tgt), plain_masks(src, tgt, checkpoint.config.pad_id)
    for name in masks.names:
        assert masks.whole(name).tolist() == expected[name], name
        assert not masks.whole(name).all()  # padding is real
    for row, trace in enumerate(traces):
        for kind in trace.kinds:
            name = "source" if kind == "encoder" else kind
            np.testing.assert_array_equal(masks.whole(name)[row], trace.mask(kind))
    for name in {"source", "cross"} - set(masks.names):
        with pytest.raises(QueryError, match=f"has no mask named '{name}'; its masks are"):
            masks.own(name)


CHANGES = {
    "causal-off": lambda q, k: True,
    "causal-peek": lambda q, k: k <= q + 1,
    "causal-inverted": lambda q, k: k > q,
    "window-decoder.1": lambda q, k: q - 1 <= k <= q,
}


@pytest.mark.parametrize("do", CHANGES)
def test_a_change_opens_and_closes_what_it_says_for_a_pass_over_the_whole_output(batch, do):
    checkpoint, _, src, tgt = batch
    masks = changed_masks(checkpoint.model, src, tgt, tap_for(parse(do), checkpoint))
    expected = plain_masks(src, tgt, checkpoint.config.pad_id, CHANGES[do])
    for name in set(masks.names) - {"causal"}:
        assert masks.whole(name).tolist() == expected[name], name
    masks = changed_masks(checkpoint.model, src, tgt, tap_for(parse("padding-all.off"), checkpoint))
    np.testing.assert_array_equal(masks.whole("decoder"), masks.whole("causal"))
    assert all(masks.whole(name).all() for name in {"source", "target", "cross"} & set(masks.names))


def test_the_start_id_is_seen_even_where_it_is_the_padding_id():
    masks = batch_masks(tiny_model(decoder_start_id=0, pad_id=0), ((5, 6),), ((0, 7, 0),))
    assert masks.target[0, 0, 0].tolist() == [True, True, False]
    assert mask_checks.additive(masks.target)[0, 0, 0].tolist() == [0, 0, -np.inf]


@torch.inference_mode()
def test_causality_is_the_difference_of_two_calls_with_the_mask_and_without(batch):
    checkpoint, _, src, tgt = batch
    model, place = checkpoint.model, 2
    piece_id = next(i for i in range(5, 30) if i != tgt[0][place])
    found = check_causality(model, src, tgt, sentence=0, place=place, piece_id=piece_id)
    source, read = torch.tensor(src), torch.tensor(tgt)
    changed = read.clone()
    changed[0, place] = piece_id
    before = model(source, read)
    moved = (model(source, changed) - before).abs().amax(-1)
    np.testing.assert_array_equal(found.kept, moved[0])
    assert found.largest == before[0].abs().max()
    assert found.elsewhere == moved[1:].max() == found.kept[:place].max() == 0
    memory, cross = (model.encode(source), model.source_mask(source)) if model.anatomy.reads else (None, None)
    one, other = (
        model.project(model.decoder(ids, model.target_table, memory, (ids != 0)[:, None, None], cross))
        for ids in (read, changed)
    )
    np.testing.assert_allclose(found.taken, (other - one).abs().amax(-1)[0], atol=1e-5)
    assert (found.taken[:place] > 1e-3).all()
    for sentence, wrong in ((0, 99), (0, -1), (7, 0)):
        with pytest.raises(QueryError, match="has no target token"):
            check_causality(model, src, tgt, sentence=sentence, place=wrong, piece_id=5)


@pytest.mark.parametrize("stacks", [{}, DECODER, ENCODER, {**ENCODER, "mlm_head": True}], ids=str)
@torch.inference_mode()
def test_padding_is_the_difference_of_two_calls(stacks):
    model, (src, tgt) = tiny_model(dtype=torch.float32, **stacks), (random_ids(1, n) for n in (6, 5))
    found = check_padding(model, src[0].tolist(), tgt[0].tolist(), n_pads=2)

    def called(src, tgt):  # a head that fills gaps is left out: vectors are compared
        return (model.encode(src) if model.anatomy.fills else model(src, tgt))[0]

    alone, longer, other = called(src, tgt), *(torch.nn.functional.pad(ids, (0, 2)) for ids in (src, tgt))
    for moved, ids in ((found.source, (longer, tgt)), (found.target, (src, other))):
        if moved is not None:
            np.testing.assert_array_equal(moved.kept, (called(*ids)[: len(alone)] - alone).abs().amax(-1))
            assert moved.kept.max() <= moved.rounding < 1e-3
            assert moved.largest == alone.abs().max()
    assert (found.source is None, found.target is None) == (not model.anatomy.reads, not model.anatomy.writes)
    if found.target:  # the causal mask alone hides pads that come after
        assert found.target.taken.max() <= found.target.rounding
    if found.source and found.target:  # without its mask a pad is a source piece like any other
        memory = model.encoder(longer, model.src_table, torch.ones(1, 1, 1, 8, dtype=torch.bool))
        read = model.project(model.decode(tgt, memory, None))
        np.testing.assert_allclose(found.source.taken, (read[0] - alone).abs().amax(-1), atol=1e-5)


def test_what_cannot_be_padded_is_refused_and_rounding_is_counted_in_spacings_of_the_largest_logit():
    with pytest.raises(QueryError, match="at most 6"):
        check_padding(tiny_model(max_len=6), [5, 6, 7], [2, 5], n_pads=4)
    with pytest.raises(QueryError, match="no padding token"):
        check_padding(tiny_model(**DECODER, pad_id=None), [4, 5], [4, 5], n_pads=2)
    moved = mask_checks.Movement(kept=np.zeros(2), taken=np.ones(2), largest=12.0)
    assert moved.spacing == 2.0**-20 == moved.rounding / 16  # numbers from 8 to 16 have 20 binary places left of 24
