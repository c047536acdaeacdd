"""Greedy decoding and sampling write the same with and without a cache, alone and in a batch."""

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.transformer.tiny import padded_source, random_ids, tiny_model
from transformer.model.cache import KVCache
from transformer.runs.decoding import Prefix, collect, greedy, sample
from transformer.runs.distribution import sampling_distribution
from transformer.runs.query import Sampling

PAD, EOS, VOCAB = 0, 3, 8
FORCED = [[5, 6], [], [4, EOS]]
VARIANTS = [{}, {"norm": "post", "bias": False, "positions": "learned"}, {"decoder_start_id": PAD}]
NO_LIMITS = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}  # as in `Sampling`


def limited(**changes):
    return SimpleNamespace(**(NO_LIMITS | changes))


def small_model(seed=0, **changes):
    """With so few pieces that some rows end early; untied, or it would repeat what it reads."""
    return tiny_model(seed=seed, **({"tgt_vocab_size": VOCAB, "tie_output": False} | changes))


def prefix_of(model, src, *, cached=True):
    return Prefix(model, src, cache=KVCache(model.config.n_decoder_layers) if cached else None)


def draw(prefix, *, seeds=(7, 8, 9), max_new=6, forced=None, **changes):
    return sample(prefix, limited(**changes), max_new=max_new, seeds=seeds, forced=forced)


@pytest.mark.parametrize("changes", VARIANTS)
@pytest.mark.parametrize("forced", [None, FORCED])
@pytest.mark.parametrize("limits", [None, {}, {"temperature": 0.7, "top_k": 5}, {"temperature": 2.0, "top_p": 0.8}])
def test_decoding_is_the_same_with_a_cache(changes, forced, limits):
    model, src = small_model(**changes), padded_source()
    cached, uncached = (
        list(
            greedy(prefix_of(model, src, cached=cached), max_new=8, forced=forced)
            if limits is None
            else draw(prefix_of(model, src, cached=cached), forced=forced, **limits)
        )
        for cached in (True, False)
    )
    for a, b in zip(cached, uncached, strict=True):
        assert (a.ids, a.finished) == (b.ids, b.finished)
        assert a.log_probs == pytest.approx(b.log_probs, abs=1e-10, rel=0)


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("decode", [lambda p: greedy(p, max_new=8), draw])
def test_a_row_in_a_padded_batch_is_decoded_as_alone(cached, decode):
    model, src = small_model(2), padded_source()
    together = list(decode(prefix_of(model, src, cached=cached)))
    for row, length in enumerate((6, 4, 1)):
        own = (7, 8, 9)[row : row + 1]
        single = prefix_of(model, src[row : row + 1, :length], cached=cached)
        alone = list(draw(single, seeds=own) if decode is draw else decode(single))
        assert collect(iter(alone)) == [collect(iter(together))[row]]
        for a, b in zip(alone, together, strict=False):
            assert a.log_probs[0] == pytest.approx(b.log_probs[row], abs=1e-10)


def test_greedy_takes_the_most_probable_piece_each_time():
    model, src = tiny_model(), padded_source()
    ids = torch.full((3, 1), model.config.decoder_start_id)
    for step in greedy(prefix_of(model, src), max_new=8):
        log_probs = model(src, ids)[:, -1].log_softmax(-1)
        log_probs[:, PAD] = -torch.inf
        open_rows = [row for row in range(3) if step.ids[row] != PAD]
        assert all(step.ids[row] == int(log_probs[row].argmax()) for row in open_rows)
        ids = torch.cat((ids, torch.tensor(step.ids)[:, None]), dim=1)


def test_rows_that_ended_are_padded_and_cost_nothing():
    steps = list(greedy(prefix_of(small_model(), padded_source()), max_new=8, forced=[[EOS], [5, EOS], []]))
    for before, after in pairwise(steps):
        for row, over in enumerate(before.finished):
            assert not over or (after.ids[row], after.log_probs[row], after.finished[row]) == (PAD, 0.0, True)
    rows = collect(iter(steps))
    assert rows[:2] == [[EOS], [5, EOS]]
    assert PAD not in rows[2]
    both_ended = list(greedy(prefix_of(small_model(), padded_source()), max_new=8, forced=[[5, EOS], [EOS], [EOS]]))
    assert [step.finished for step in both_ended] == [(False, True, True), (True, True, True)]


@pytest.mark.parametrize("cached", [True, False])
def test_padding_is_never_written_however_probable_it_is(cached):
    model = tiny_model(output_bias=True)
    model.output_bias[PAD] = 50.0
    for steps in (
        greedy(prefix_of(model, padded_source(), cached=cached), max_new=6),
        draw(prefix_of(model, padded_source(), cached=cached)),
    ):
        assert all(PAD not in row and row for row in collect(steps))


def test_what_a_row_draws_does_not_depend_on_the_others():
    model, src = tiny_model(), random_ids(5, 5)
    together = collect(draw(prefix_of(model, src), seeds=[1, 2, 3, 4, 5]))
    reversed_ = collect(draw(prefix_of(model, src.flip(0)), seeds=[5, 4, 3, 2, 1]))
    alone = [collect(draw(prefix_of(model, src[i : i + 1]), seeds=[i + 1]))[0] for i in range(5)]
    assert together == reversed_[::-1] == alone
    same_text = collect(draw(prefix_of(model, src[:1].expand(20, 5)), seeds=range(20)))
    assert len({tuple(row) for row in same_text}) > 5


@pytest.mark.parametrize("limits", [{"temperature": 0.6, "top_k": 9}, {"temperature": 1.5, "top_p": 0.8}])
def test_pieces_are_drawn_as_often_as_the_distribution_says(limits):
    model, src, n = tiny_model(), random_ids(1, 5), 1_500
    first = prefix_of(model, src).next_log_probs()[0].index_fill(0, torch.tensor([PAD]), -torch.inf)
    expected = n * sampling_distribution(first, limited(**limits))
    (step,) = draw(prefix_of(model, src.expand(n, 5)), seeds=range(n), max_new=1, **limits)
    found = torch.bincount(torch.tensor(step.ids), minlength=19)
    assert (found[expected == 0] == 0).all()
    often = expected > 5
    chi_square = float(((found - expected) ** 2 / expected)[often].sum())
    freedom = int(often.sum()) - 1
    assert chi_square < freedom + 4 * math.sqrt(2 * freedom)


LOGITS = st.lists(st.floats(-20, 20) | st.just(-math.inf), min_size=1, max_size=12).filter(
    lambda row: max(row) > -math.inf
)


@given(row=LOGITS, temperature=st.floats(0.05, 5), top_k=st.integers(0, 14), top_p=st.floats(0.01, 1))
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
    log_probs = 2 * torch.randn(50, 8_000, generator=torch.Generator().manual_seed(0))
    log_probs = log_probs.log_softmax(-1)
    assert bool((sampling_distribution(log_probs, Sampling()) > 0).all())
