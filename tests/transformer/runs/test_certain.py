"""Where a choice is said to be certain, no rounding changes it."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer import Greedy, Sampling
from transformer.runs.distribution import race, sampling_distribution
from transformer.runs.drafting import CLOSE, choices

PAD, STEPS, VOCABULARY = 0, 6, 40
ROUNDING = CLOSE / 8  # four times what was measured


def certain(log_probs, ids, decoding, *, n_forced=0):
    """Whether all of these ids are surely chosen, of pieces without padding."""
    log_probs = log_probs.clone()
    log_probs[:, PAD] = -torch.inf
    return choices(log_probs, ids, decoding, n_forced=n_forced) == list(ids)


def choose(log_probs, decoding):
    """What decoding alone chooses at each step."""
    log_probs = log_probs.clone()
    log_probs[:, PAD] = -torch.inf
    if isinstance(decoding, Greedy):
        return log_probs.argmax(dim=-1).tolist()
    generator = torch.Generator().manual_seed(decoding.seed)
    return [int(race(sampling_distribution(row, decoding), generator).argmax()) for row in log_probs]


def random_log_probs(seed, *, grain, steps=STEPS):
    """Log-probabilities, many of them equal or nearly so where the grain is coarse."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(steps, VOCABULARY, generator=generator)
    logits = (logits / grain).round() * grain if grain else logits
    return (logits + 1e-5 * torch.randn(logits.shape, generator=generator)).log_softmax(dim=-1)


DECODINGS = st.one_of(
    st.just(Greedy()),
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.05, 0.4, 1.0, 3.0]),
        top_k=st.sampled_from([0, 1, 2, 5, 39, 40, 1000]),
        top_p=st.sampled_from([0.01, 0.3, 0.8, 0.99, 1.0]),
        seed=st.integers(0, 999),
    ),
)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5, 2.0]), DECODINGS)
def test_what_is_certain_withstands_rounding(seed, grain, decoding):
    log_probs = random_log_probs(seed, grain=grain)
    ids = choose(log_probs, decoding)
    if certain(log_probs, ids, decoding):
        for change in range(8):
            generator = torch.Generator().manual_seed(change)
            moved = log_probs + ROUNDING * (2 * torch.rand(log_probs.shape, generator=generator) - 1)
            assert choose(moved, decoding) == ids


def test_another_piece_than_the_best_is_never_certain():
    log_probs = random_log_probs(1, grain=0.0)
    for decoding in (Greedy(), Sampling(seed=3)):
        ids = choose(log_probs, decoding)
        for step in range(STEPS):
            wrong = [*ids[:step], (ids[step] + 1) % VOCABULARY, *ids[step + 1 :]]
            assert not certain(log_probs, wrong, decoding)
            kept = wrong[: step + 1]
            assert certain(log_probs[: step + 1], kept, decoding, n_forced=len(kept))
    for gap, expected in ((CLOSE / 2, False), (2 * CLOSE, True)):
        logits = torch.full((1, VOCABULARY), -8.0)
        logits[0, 7], logits[0, 9] = 0.0, -gap
        assert certain(logits.log_softmax(dim=-1), [7], Greedy()) is expected
    log_probs[2] = torch.nan
    assert not certain(log_probs, ids, Sampling(seed=3))


def test_a_draw_is_that_of_torch():
    """So a seed draws what it drew when `torch.multinomial` was asked, now and at the next draw."""
    for seed in range(50):
        probs = torch.rand(300, generator=torch.Generator().manual_seed(seed)) ** 6
        probs = torch.where(probs < 0.1, 0.0, probs)
        ours, torchs = (torch.Generator().manual_seed(seed) for _ in range(2))
        for _ in range(3):
            drawn = torch.multinomial(probs / probs.sum(), 1, generator=torchs)
            assert race(probs / probs.sum(), ours).argmax() == drawn
