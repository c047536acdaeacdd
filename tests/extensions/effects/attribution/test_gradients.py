"""Gradients agree with finite differences, their integral is complete, and nobody else notices them."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from glassformer.extensions.effects.attribution import gradients
from glassformer.extensions.effects.attribution.gradients import (
    FLOOR,
    baseline_of,
    by_depth,
    embeddings,
    gradient,
    input_times_gradient,
    integrating,
)
from glassformer.extensions.effects.attribution.target import ask
from glassformer.extensions.effects.attribution_pictures import completeness
from glassformer.extensions.what_if.interventions.layer_changes import NoNorm, NoResidual, SwapNorms
from glassformer.runs.loading import SHIPPED
from tests.extensions.effects.attribution.asking import asked, with_gradient
from tests.transformer.tiny import DECODER, tiny_config
from transformer import ZeroHead, load, run
from transformer.errors import QueryError
from transformer.model.taps import Replacer, both, tap_of
from transformer.runs.apply_interventions import tap_for
from transformer.runs.array_records import whole

SMOOTH = {"activation": "gelu"}
SHAPES = [SMOOTH, {**DECODER, **SMOOTH, "norm": "both", "logit_cap": 5.0}]


def at(question, x):
    """f of some embeddings, by another way than the gradients take."""
    tap = tap_of(Replacer({question.tokens: lambda _: x}))
    return float(question.log_probs(tap=tap)[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_agree_with_finite_differences(shape):
    question = asked(**shape)
    x = embeddings(question)
    values, slopes = gradient(question, x)
    assert float(values[0]) == pytest.approx(at(question, x), abs=1e-12)
    assert slopes.abs().max() > 1e-3
    generator = torch.Generator().manual_seed(0)
    for _ in range(6):
        along = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        step = 1e-5
        measured = (at(question, x + step * along) - at(question, x - step * along)) / (2 * step)
        assert float((slopes * along).sum()) == pytest.approx(measured, abs=1e-8)
    by_piece = input_times_gradient(question)
    np.testing.assert_allclose(by_piece, (x * slopes)[0].sum(-1)[: question.n_pieces], atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("change", [(), (NoResidual(), NoNorm()), (SwapNorms(),)])
def test_the_gradient_at_a_layer_has_the_length_that_finite_differences_give(shape, change):
    if change and any(one.unfit(tiny_config(**shape)) for one in change):
        return
    question = asked(**shape)
    ground = SimpleNamespace(model=question.model, config=question.model.config)
    question = replace(question, tap=both(question.tap, tap_for(change, ground)))
    stacks = [stack.name for stack in question.model.anatomy.stacks]
    sites = [f"{stacks[0]}.embedding.output", f"{stacks[-1]}.0.output"]
    found = by_depth(question, sites)
    for site, length in zip(sites, found, strict=True):
        x, slopes = with_gradient(question, site, lambda logits: logits.log_softmax(-1))
        step = 1e-5 * slopes / slopes.norm()  # the steepest way up, along which it rises by the length
        ends = [
            float(question.log_probs(tap=question.tap.also(Replacer({site: lambda _, to=to: to[None]})))[0])
            for to in (x + step, x - step)
        ]
        assert length == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-7)
        assert length == pytest.approx(float(slopes.norm()), rel=1e-9)


@pytest.mark.parametrize(("shape", "baseline"), [(SHAPES[0], "zero"), (SHAPES[1], "mean")])
def test_integrated_gradients_are_complete(shape, baseline):
    question = asked(**shape)
    x = embeddings(question)
    start = baseline_of(question, baseline).expand_as(x)
    found = whole(integrating(question, baseline=baseline, n_points=gradients.MOST_POINTS))
    assert found.value == pytest.approx(float(question.log_probs()), abs=1e-12)
    assert found.baseline == pytest.approx(at(question, start), abs=1e-12)
    assert abs(found.error) < 1e-3
    few = whole(integrating(question, baseline=baseline, n_points=1))
    _, slopes = gradient(question, (x + start) / 2)
    np.testing.assert_allclose(few.credit, ((x - start) * slopes)[0].sum(-1)[: question.n_pieces], atol=1e-12)


def test_a_small_error_is_small_where_the_change_is_small_too():
    checkpoint = load(SHIPPED / "reverse")
    found = whole(integrating(ask(checkpoint, checkpoint.run(checkpoint.query("glass")), 5)))
    assert abs(found.error) < FLOOR
    assert found.is_complete
    assert "cannot be trusted" not in completeness(found, "zero")
    far = replace(found, baseline=found.value, credit=np.full(2, FLOOR))  # nothing changes, and 0.002 are credited
    assert "cannot be trusted" in completeness(far, "zero")


def test_points_are_added_until_the_error_is_small():
    question = asked()
    found, told = whole(integrating(question)), [(one.done, one.whole) for one in integrating(question)]
    assert found.n_points in (16, 32, 64, 128, 256)
    assert found.is_complete or found.n_points == 256
    assert (told[0], told[-1][1]) == ((0, 16), found.n_points)
    assert abs(whole(integrating(question, n_points=1)).error) > abs(found.error)


def test_the_mean_baseline_is_the_mean_row_as_it_would_come_in():
    question = asked(scale_embedding=True)
    expected = question.model.src_table.mean(dim=0) * 12**0.5
    np.testing.assert_allclose(baseline_of(question, "mean"), expected, atol=1e-12)


def test_a_query_that_may_see_nothing_has_a_gradient_of_numbers():
    closed = Replacer({"decoder.0.cross_attn.mask": lambda mask: mask & False})
    assert np.isfinite(input_times_gradient(asked(tap=tap_of(closed)))).all()


def test_a_model_that_was_loaded_in_inference_mode_is_refused(checkpoint_folder):
    with torch.inference_mode():
        damaged = asked()
    with pytest.raises(QueryError, match="load it outside"):
        input_times_gradient(damaged)
    checkpoint = load(checkpoint_folder)
    trace = checkpoint.run("mi ta")
    with torch.inference_mode():
        inside = input_times_gradient(ask(checkpoint, trace, 0))
    np.testing.assert_array_equal(inside, input_times_gradient(ask(checkpoint, trace, 0)))


def test_nobody_else_notices(checkpoint_folder):
    """Runs in another thread are the same to the last bit while gradients are taken, and nothing is left behind."""
    checkpoint = load(checkpoint_folder)
    before, stop, found = checkpoint.run("ba lo mi ta"), threading.Event(), []
    other = run(checkpoint, checkpoint.query("su mi ke ta", interventions=(ZeroHead("cross", 0, 1),)))

    def gradients_again():
        while not stop.is_set():
            found.append(whole(integrating(ask(checkpoint, other, 1), n_points=8)).credit)

    thread = threading.Thread(target=gradients_again)
    thread.start()
    try:
        assert all(checkpoint.run("ba lo mi ta") == before for _ in range(4))
    finally:
        stop.set()
        thread.join()
    assert found
    assert all((one == found[0]).all() for one in found)
    assert not any(p.requires_grad or p.grad is not None for p in checkpoint.model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in checkpoint.model.modules())
    assert torch.is_grad_enabled()
