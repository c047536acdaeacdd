"""Credit in runs that are changed inside: every measure holds the changes fixed, whatever they change."""

import numpy as np
import pytest

from glassformer.extensions.effects.attribution.gradients import embeddings, gradient, integrating
from glassformer.extensions.effects.attribution.logit import contributions
from glassformer.extensions.effects.attribution.occlusion import hiding
from glassformer.extensions.effects.attribution.target import ask, ask_each, weigh
from tests.healthy import healthy
from transformer import Query, run
from transformer.runs.array_records import whole
from transformer.runs.interventions import parse

CHANGES = [
    "zero-cross.2.1_mean-decoder.1.2",
    "skip-decoder.2.whole",
    "skip-encoder.1.self",
    "mute-cross.all.all.all.2.0",
    "patch-decoder.2.layer.all.abcde",
    "patch-encoder.1.layer.2.abcde",
    "drop-2",
    "pads-3",
    "causal-off",
    "fill-all.m1",
    "twice-all.1",
    "scale-all.off.1",
    "heads-2",
    "noresidual-all.all.all",
    "nonorm-all.all.all",
    "swapnorms-all",
    "noffn-all.all_embed-all.3",
]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_measured_is_the_changed_run(change):
    checkpoint = healthy("reverse")
    query = Query(checkpoint=checkpoint.content_hash, source="glass", interventions=parse(change), max_new=8)
    trace = run(checkpoint, query)
    questions = ask_each(checkpoint, trace)
    chosen = trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
    np.testing.assert_allclose(whole(hiding(questions)).plain, chosen, atol=1e-4)
    one = questions[trace.n_steps // 2]
    found = contributions(one, (5,))
    assert np.abs(found.remainder).max() < max(1e-4, 1e-6 * np.abs(found.values).sum())
    values, _ = gradient(one, embeddings(one))
    assert float(values[0]) == pytest.approx(chosen[trace.n_steps // 2], abs=1e-4)
    assert np.isfinite(whole(integrating(one, n_points=2)).credit).all()
    assert np.isfinite(weigh(one).lengths).all()


def test_a_value_that_was_patched_is_a_part_of_its_own():
    checkpoint = healthy("reverse")
    changes = parse("patch-decoder.2.layer.all.abcde")
    trace = run(checkpoint, Query(checkpoint=checkpoint.content_hash, source="glass", interventions=changes))
    parts = [part.kind for part in contributions(ask(checkpoint, trace, 1)).parts]
    assert parts.count("changed") == 1
