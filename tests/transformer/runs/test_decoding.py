"""Greedy decoding and sampling write the same with and without a cache, alone and in a batch."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from tests.transformer.tiny import padded_source, random_ids, tiny_model
from transformer.model.cache import KVCache
from transformer.runs.decoding import DecodedRow, Prefix, collect, greedy, write_rows
from transformer.runs.distribution import sampling_distribution
from transformer.runs.inputs import Source
from transformer.runs.query import Query, Sampling

PAD, EOS = 0, 3
SEEDS = (7, 8, 9)
FORCED = [[5, 6], [], [4, EOS]]
VARIANTS = [{}, {"norm": "post", "bias": False, "positions": "learned"}, {"decoder_start_id": PAD}]


def small_model(**changes):
    """With so few pieces that some rows end early; untied, or it would repeat what it reads."""
    return tiny_model(tgt_vocab_size=8, tie_output=False, **changes)


def prefix_of(model, src, *, cached=True):
    return Prefix(model, src, cache=KVCache(model.config.n_decoder_layers) if cached else None)


def decoded(model, src, *, max_new=6, forced=None, cached=True):
    """Each step, greedily."""
    return list(greedy(prefix_of(model, src, cached=cached), max_new=max_new, forced=forced))


def drawn(model, src, how, *, seeds=SEEDS, max_new=6, forced=None, cached=True):
    """What each row writes."""
    rows = [
        DecodedRow(
            model.config,
            Query(checkpoint="0", source="x", decoding=replace(how, seed=seed), max_new=max_new),
            Source("", (), (), (), (model.config.decoder_start_id,), (), tuple(begun), max_new),
        )
        for seed, begun in zip(seeds, forced or [()] * len(seeds), strict=True)
    ]
    return write_rows(prefix_of(model, src, cached=cached), model.config, rows, lambda: None)


@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize("forced", [None, FORCED])
@pytest.mark.parametrize("how", [None, Sampling(temperature=0.7, top_k=5), Sampling(temperature=2.0, top_p=0.8)])
def test_a_batch_is_decoded_with_a_cache_as_each_row_alone_without(changes, forced, how):
    model, src = small_model(**changes), padded_source()
    together = decoded(model, src, forced=forced) if how is None else drawn(model, src, how, forced=forced)
    for row, length in enumerate((6, 4, 1)):
        own = slice(row, row + 1)
        settings = {"forced": forced and forced[own], "cached": False}
        if how is not None:
            assert drawn(model, src[own, :length], how, seeds=SEEDS[own], **settings) == together[own]
            continue
        alone = decoded(model, src[own, :length], **settings)
        assert collect(iter(alone)) == [collect(iter(together))[row]]
        for a, b in zip(alone, together, strict=False):
            assert a.finished == b.finished[own]
            assert a.log_probs[0] == pytest.approx(b.log_probs[row], abs=1e-10, rel=0)


def test_rows_that_ended_are_padded_and_cost_nothing_and_padding_is_never_written_however_probable_it_is():
    steps = decoded(small_model(), padded_source(), max_new=8, forced=[[EOS], [5, EOS], []])
    for before, after in pairwise(steps):
        for row, over in enumerate(before.finished):
            assert not over or (after.ids[row], after.log_probs[row], after.finished[row]) == (PAD, 0.0, True)
    rows = collect(iter(steps))
    assert rows[:2] == [[EOS], [5, EOS]]
    assert PAD not in rows[2]
    both_ended = decoded(small_model(), padded_source(), max_new=8, forced=[[5, EOS], [EOS], [EOS]])
    assert [step.finished for step in both_ended] == [(False, True, True), (True, True, True)]
    model = tiny_model(output_bias=True)
    model.output_bias[PAD] = 50.0
    for rows in (collect(iter(decoded(model, padded_source()))), drawn(model, padded_source(), Sampling())):
        assert all(PAD not in row and row for row in rows)


@pytest.mark.parametrize("how", [Sampling(temperature=0.6, top_k=9), Sampling(temperature=1.5, top_p=0.8)])
def test_pieces_are_drawn_as_often_as_the_distribution_says(how):
    model, src, n = tiny_model(), random_ids(1, 5), 1_500
    first = Prefix(model, src, cache=None).next_log_probs()[0].index_fill(0, torch.tensor([PAD]), -torch.inf)
    expected = n * sampling_distribution(first, how)
    rows = drawn(model, src.expand(n, 5), how, seeds=range(n), max_new=1)
    found = torch.bincount(torch.tensor(rows)[:, 0], minlength=19)
    assert (found[expected == 0] == 0).all()
    often = expected > 5
    chi_square = float(((found - expected) ** 2 / expected)[often].sum())
    freedom = int(often.sum()) - 1
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)


LOGITS = st.lists(st.floats(-20, 20) | st.just(-math.inf), min_size=1, max_size=12).filter(
    lambda row: max(row) > -math.inf
)


@given(row=LOGITS, temperature=st.floats(0.05, 5), top_k=st.integers(0, 14), top_p=st.floats(0.01, 1))
@example([0.0] * 8, 1.0, 4, 0.5)  # what top-k leaves is a whole for top-p
def test_the_distribution_keeps_the_right_pieces(row, temperature, top_k, top_p):
    log_probs = torch.tensor(row, dtype=torch.float64).log_softmax(-1)
    whole = (log_probs / temperature).softmax(-1)
    kept = sampling_distribution(log_probs, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
    assert float(kept.sum()) == pytest.approx(1, abs=1e-12)
    ordered = whole.sort(descending=True, stable=True)
    n = int((kept > 0).sum())
    assert set(kept.nonzero()[:, 0].tolist()) == set(ordered.indices[:n].tolist())
    ratio = kept[kept > 0] / whole[kept > 0]
    assert torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-9)
    most = ordered.values[: top_k or None] / ordered.values[: top_k or None].sum()
    assert n <= (top_k or len(row))
    assert float(most[:n].sum()) >= top_p - 1e-9
    assert n == 1 or float(most[: n - 1].sum()) < top_p + 1e-9


def test_no_piece_is_lost_to_rounding():
    log_probs = (2 * torch.randn(50, 8_000, generator=torch.Generator().manual_seed(0))).log_softmax(-1)
    assert bool((sampling_distribution(log_probs, Sampling()) > 0).all())
