"""Where a choice is said to be certain, no rounding changes it."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer import Greedy, Sampling
from transformer.runs.distribution import race, sampling_distribution
from transformer.runs.drafting import CLOSE, choices

PAD, STEPS, VOCABULARY = 0, 6, 40
ROUNDING = CLOSE / 8  # four times what was measured


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def unpadded(log_probs):
    return log_probs.index_fill(1, torch.tensor([PAD]), -torch.inf)


def certain(log_probs, ids, decoding, *, n_forced=0):
    """Whether all of these ids are surely chosen, of pieces without padding."""
    return choices(unpadded(log_probs), ids, decoding, n_forced=n_forced) == list(ids)


def choose(log_probs, decoding):
    """What decoding alone chooses at each step."""
    if isinstance(decoding, Greedy):
        return unpadded(log_probs).argmax(dim=-1).tolist()
    generator = seeded(decoding.seed)
    return [int(race(sampling_distribution(row, decoding), generator).argmax()) for row in unpadded(log_probs)]


def random_log_probs(seed, *, grain):
    """Log-probabilities, many of them equal or nearly so where the grain is coarse."""
    generator = seeded(seed)
    logits = 3 * torch.randn(STEPS, VOCABULARY, generator=generator)
    logits = (logits / grain).round() * grain if grain else logits
    return (logits + 1e-5 * torch.randn(logits.shape, generator=generator)).log_softmax(dim=-1)


DECODINGS = st.just(Greedy()) | st.builds(
    Sampling,
    temperature=st.sampled_from([0.05, 0.4, 1.0, 3.0]),
    top_k=st.sampled_from([0, 1, 2, 5, 39, 40, 1000]),
    top_p=st.sampled_from([0.01, 0.3, 0.8, 0.99, 1.0]),
    seed=st.integers(0, 999),
)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 2.0]), DECODINGS)
def test_what_is_certain_withstands_rounding(seed, grain, decoding):
    log_probs = random_log_probs(seed, grain=grain)
    ids = choose(log_probs, decoding)
    if certain(log_probs, ids, decoding):
        for change in range(8):
            moved = log_probs + ROUNDING * (2 * torch.rand(log_probs.shape, generator=seeded(change)) - 1)
            assert choose(moved, decoding) == ids


def test_another_piece_than_the_best_is_never_certain_nor_is_the_best_where_another_comes_close():
    log_probs = random_log_probs(1, grain=0.0)
    for decoding in (Greedy(), Sampling(seed=3)):
        ids = choose(log_probs, decoding)
        for step in range(STEPS):
            wrong = [*ids[:step], (ids[step] + 1) % VOCABULARY, *ids[step + 1 :]]
            assert not certain(log_probs, wrong, decoding)
            kept = wrong[: step + 1]
            assert certain(log_probs[: step + 1], kept, decoding, n_forced=len(kept))
    log_probs[2] = torch.nan
    assert not certain(log_probs, ids, Sampling(seed=3))
    for temperature in (1.0, 0.05):  # which divides differences
        times = 1 / race(torch.ones(VOCABULARY), seeded(0))
        for ahead, expected in ((0.5, False), (2, True)):
            gap = torch.zeros(VOCABULARY).index_fill(0, torch.tensor([7]), ahead * CLOSE)
            far = torch.full((VOCABULARY,), -8.0).index_fill(0, torch.tensor([7, 9]), 0.0)
            assert certain((far + gap).log_softmax(-1)[None], [7], Greedy()) is expected
            evened = temperature * times.log() + far + gap  # 7 and 9 would arrive at once
            assert certain(evened.log_softmax(-1)[None], [7], Sampling(temperature=temperature)) is expected


def test_a_draw_is_that_of_torch():
    """So a seed draws what it drew when `torch.multinomial` was asked, now and at the next draw."""
    for seed in range(50):
        probs = torch.rand(300, generator=seeded(seed)) ** 6
        probs = torch.where(probs < 0.1, 0.0, probs)
        ours, torchs = seeded(seed), seeded(seed)
        for _ in range(3):
            drawn = torch.multinomial(probs / probs.sum(), 1, generator=torchs)
            assert race(probs / probs.sum(), ours).argmax() == drawn
