"""Every measure of credit holds a run's changes fixed, whatever they change."""

import numpy as np
import pytest

from glassformer.extensions.effects.attribution.gradients import embeddings, gradient, integrating
from glassformer.extensions.effects.attribution.logit import contributions
from glassformer.extensions.effects.attribution.occlusion import hiding
from glassformer.extensions.effects.attribution.target import ask_each, weigh
from tests.healthy import healthy
from transformer import Query, run
from transformer.runs.array_records import whole
from transformer.runs.interventions import parse

CHANGES = [
    "zero-cross.2.1_mean-decoder.1.2_skip-encoder.1.self",
    "skip-decoder.2.whole_mute-cross.all.all.all.2.0",
    "patch-decoder.2.layer.all.abcde",
    "patch-encoder.1.layer.2.abcde_drop-2",
    "causal-off_pads-3",
    "fill-all.m1_twice-all.1",
    "heads-2_noresidual-all.all.all",
    "swapnorms-all_noffn-all.all_embed-all.3",
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
    patched = [part.kind for part in found.parts].count("changed")  # a value of another run is a part of its own
    assert patched == 1 or not change.startswith("patch-decoder")
