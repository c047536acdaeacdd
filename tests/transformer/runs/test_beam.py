"""Beam search finds what trying everything finds, alone and in a batch, with a cache and without."""

import itertools

import pytest
import torch

from tests.transformer.tiny import padded_source, random_ids, tiny_model
from transformer.model.cache import KVCache
from transformer.runs import beam
from transformer.runs.beam import beam_search
from transformer.runs.decoding import Prefix, collect, greedy

PAD, START, EOS, VOCAB = 0, 2, 3, 7
LENGTHS = (6, 4, 1)  # of the rows of `padded_source`


def small_model(seed=0, **changes):
    """With so few pieces that many hypotheses end early; untied, or it would repeat what it reads."""
    return tiny_model(seed=seed, tgt_vocab_size=VOCAB, tie_output=False, **changes)


def rounds(model, src, *, size, alpha=0.6, max_new=6, forced=None, cached=True):
    prefix = Prefix(model, src, cache=KVCache(model.config.n_decoder_layers) if cached else None)
    return list(beam_search(prefix, size=size, alpha=alpha, max_new=max_new, forced=forced))


def search(model, src, **how):
    """The last round's hypotheses of every sentence."""
    return rounds(model, src, **how)[-1]


def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


def everything(model, src, *, max_new, alpha, forced=()):
    """All sequences that end, or are cut, within `max_new` pieces: (score, ids), best first."""
    whole = list(itertools.product([i for i in range(VOCAB) if i != PAD], repeat=max_new))
    read = torch.tensor([(START, *ids[:-1]) for ids in whole])
    log_probs = model(src.expand(len(whole), -1), read).log_softmax(-1)
    sums = log_probs.gather(2, torch.tensor(whole)[:, :, None])[:, :, 0].cumsum(1)
    found = {}
    for ids, row in zip(whole, sums.tolist(), strict=True):
        length = ids.index(EOS) + 1 if EOS in ids else max_new
        if ids[: len(forced)] == tuple(forced):
            found[ids[:length]] = row[length - 1] / penalty(length, alpha)
    return sorted(((score, ids) for ids, score in found.items()), reverse=True)


def assert_same_hypotheses(found, expected):
    assert [[(h.ids, h.ended) for h in row] for row in found] == [[(h.ids, h.ended) for h in row] for row in expected]
    numbers = ([number for row in rows for h in row for number in (h.log_prob, h.score)] for rows in (found, expected))
    assert next(numbers) == pytest.approx(next(numbers), abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_a_beam_of_one_is_greedy(seed):
    model, src = tiny_model(seed=seed, tgt_vocab_size=5 + seed, tie_output=seed == 0), random_ids(3, 1 + seed)
    expected = collect(greedy(Prefix(model, src, cache=None), max_new=7))
    for alpha in (0.0, 2.0):
        assert [list(row[0].ids) for row in search(model, src, size=1, alpha=alpha, max_new=7)] == expected


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("forced", [(), (4, 6), (5, EOS)])
@pytest.mark.parametrize(("max_new", "size"), [(2, VOCAB), (3, VOCAB**2)])
def test_a_wide_enough_beam_finds_what_trying_everything_finds_but_padding(alpha, forced, max_new, size):
    model, src = small_model(output_bias=True), random_ids(1, 4)
    model.output_bias[PAD] = 20.0  # however probable it is
    expected = everything(model, src, max_new=max_new, alpha=alpha, forced=forced)[:size]
    (found,) = search(model, src, size=size, alpha=alpha, max_new=max_new, forced=[forced])
    assert [h.ids for h in found] == [ids for _, ids in expected]
    assert [h.score for h in found] == pytest.approx([score for score, _ in expected], abs=1e-10)


@pytest.mark.parametrize(("alpha", "size"), [(0.0, 9), (0.6, 2), (0.6, 9), (2.0, 2)])
def test_hypotheses_are_ordered_and_what_they_say_and_stopping_early_changes_none(alpha, size, monkeypatch):
    models, src, how = [small_model(seed) for seed in range(2)], padded_source(), {"size": size, "alpha": alpha}
    early = [search(model, src, **how, max_new=8) for model in models]
    cases = [(model, row, found) for model, rows in zip(models, early, strict=True) for row, found in enumerate(rows)]
    for model, row, found in cases:
        assert len(found) == size == len({h.ids for h in found})
        assert found == tuple(sorted(found, key=lambda h: -h.score))
        for h in found:
            rows = model(src[row : row + 1, : LENGTHS[row]], torch.tensor([[START, *h.ids[:-1]]]))[0].log_softmax(-1)
            assert h.log_prob == pytest.approx(float(rows.gather(1, torch.tensor(h.ids)[:, None]).sum()), abs=1e-10)
            assert h.score == pytest.approx(h.log_prob / penalty(len(h.ids), alpha), abs=1e-12)
            assert h.ended == (h.ids[-1] == EOS)
            assert h.ended or len(h.ids) == 8
            assert {PAD, EOS}.isdisjoint(h.ids[:-1])
    monkeypatch.setattr(beam._Beams, "settled", lambda self: False)
    for model, found in zip(models, early, strict=True):
        assert_same_hypotheses(found, search(model, src, **how, max_new=8))


def test_the_search_does_stop_early():
    model = small_model(output_bias=True)
    model.output_bias[EOS] = 8.0
    assert len(rounds(model, padded_source(), size=2, max_new=12, cached=False)) < 6


@pytest.mark.parametrize("changes", [{}, {"norm": "post", "positions": "learned"}, {"decoder_start_id": PAD}])
@pytest.mark.parametrize("forced", [None, [(5, 6), (), (4, EOS)]])
def test_a_batch_is_searched_with_a_cache_as_one_by_one_without(changes, forced):
    model, src = small_model(**changes), padded_source()
    alone = [
        search(model, src[i : i + 1, :n], size=6, forced=forced and [forced[i]], cached=False)[0]
        for i, n in enumerate(LENGTHS)
    ]
    assert_same_hypotheses(search(model, src, size=6, forced=forced), alone)


def test_there_are_no_more_hypotheses_than_sequences():
    """Of a vocabulary with one piece besides the special ones; a beam far too wide is no error."""
    model = tiny_model(tgt_vocab_size=5)
    for max_new, n in {1: 4, 2: 1 + 3 * 4, 3: 1 + 3 * (1 + 3 * 4)}.items():
        (found,) = search(model, random_ids(1, 3), size=100, max_new=max_new)
        assert len(found) == len({h.ids for h in found}) == n
