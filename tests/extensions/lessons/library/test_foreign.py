"""Lessons on models of other programs: a step that makes sense is posed, any other says why it makes none."""

from collections import Counter

import pytest

from tests.extensions.lessons.library.posed import STEPS, case, check
from tests.healthy import FOREIGN, texts

TRIED = 2


@pytest.mark.parametrize("name", FOREIGN)
def test_every_step_is_posed_or_says_why_not(name):
    posed = Counter()
    for text in texts(name).sources[:TRIED]:
        run = case(name, text)
        for lesson, _, step in STEPS:
            if not step.on:
                posed[lesson.name] += check(step, run) is not None
    if name != "bert":
        assert posed["one-piece"] > TRIED, "a model that writes can be asked how it writes"
    if name not in ("gpt2", "llama", "bert"):
        assert posed["looking"] > 0, "it has cross-attention"
    assert sum(posed.values()) > 3 * TRIED
