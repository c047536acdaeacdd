"""The learning rate rises to the peak asked for and falls as its paper says, also where time is the limit.

That a training goes on with the rates that it began with is in `test_checkpointing`.
"""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.settings import SCHEDULES, TrainSettings


class Still(Trainer):
    """A trainer of a length that is given, which never steps."""

    def __init__(self, total, settings):
        self.settings, self.steps_an_epoch, self.turn, self.rows = settings, total, None, []


def rates(total, *, warmup, peak=2e-3, seconds_a_step=0.0, minutes=0.0, schedule="linear"):
    settings = TrainSettings(epochs=1, peak_rate=peak, warmup=warmup, max_minutes=minutes, schedule=schedule)
    trainer = Still(total, settings)
    return [trainer._rate(step, (step - 1) * seconds_a_step) for step in range(1, total + 1)]


@given(total=st.integers(1, 400), warmup=st.integers(0, 1_000), schedule=st.sampled_from(list(SCHEDULES)))
def test_the_rate_rises_to_its_peak_and_falls_to_almost_nothing(total, warmup, schedule):
    found = rates(total, warmup=warmup, schedule=schedule)
    assert max(found) == 2e-3
    top = found.index(max(found))
    assert found[: top + 1] == sorted(found[: top + 1])
    assert found[top:] == sorted(found[top:], reverse=True)
    assert all(rate > 0 for rate in found)
    assert top + 1 == max(min(warmup, -(-total // 2)), 1)
    if total > 1 and schedule != "inverse-sqrt":
        assert found[-1] == pytest.approx(0.01 * 2e-3, rel=1e-6) or top == total - 1


@pytest.mark.parametrize("warmup", [10, 800])
def test_the_peak_is_reached_where_the_time_is_the_limit(warmup):
    """A step takes a second, and a minute is given: of 1,000 steps 60 are done."""
    found = rates(1_000, warmup=warmup, seconds_a_step=1.0, minutes=1.0)[:60]
    assert max(found) == 2e-3
    assert found.index(2e-3) == pytest.approx(min(warmup - 1, 30))
    assert found[-1] < 0.05 * 2e-3


def test_the_ways_down_are_those_of_their_papers():
    step = 700
    line = rates(1_000, warmup=100)
    assert [line[24], line[step - 1]] == pytest.approx([2e-3 * 0.25, 2e-3 * (1_000 - step) / 900])
    root = rates(1_000, warmup=100, schedule="inverse-sqrt")
    assert root[step - 1] == pytest.approx(2e-3 * (100 / step) ** 0.5)
    half = rates(1_000, warmup=100, schedule="cosine")
    assert half[step - 1] == pytest.approx(1e-3 * (1 + math.cos(math.pi * (step - 100) / 900)))
    assert half[550 - 1] == pytest.approx(1e-3)  # half way down, half of the rate
