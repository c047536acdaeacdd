"""The loss and every gradient are torch's, with any mask or padding, in little memory."""

import threading

import pytest
import torch
import torch.nn.functional as F

from glassformer.extensions.training.library.data import Batch, make_batch
from glassformer.extensions.training.library.scoring import ROWS, smoothed_loss, target_loss
from tests.extensions.training.library.one_stack_texts import DECODER, ENCODER, examples_of, hidden
from tests.transformer.tiny import padded_source, target_ids, tiny_config, tiny_model

D, V = 6, 23


def inputs(n, *, dtype=torch.float64, scale=1.0, bias=True):
    """hidden, weight, bias and targets; the three that can be learned need gradients."""
    generator = torch.Generator().manual_seed(n)
    shapes = [(n, D), (V, D)] + [(V,)] * bias
    values = [scale * torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
    learned = [value.requires_grad_() for value in values] + [None] * (not bias)
    return *learned, torch.randint(V, (n,), generator=generator)


def torchs(hidden, weight, bias, targets, *, smoothing):
    return F.cross_entropy(F.linear(hidden, weight, bias), targets, label_smoothing=smoothing)


def copies(values):
    return [None if value is None else value.detach().clone().requires_grad_() for value in values]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n", [1, ROWS, ROWS + 1, 2 * ROWS + 5])
@pytest.mark.parametrize("bias", [True, False])
def test_loss_and_gradients_are_torchs(n, smoothing, bias):
    *learned, targets = inputs(n, bias=bias)
    expected_of = copies(learned)
    loss = smoothed_loss(*learned, targets, smoothing=smoothing)
    expected = torchs(*expected_of, targets, smoothing=smoothing)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
    with torch.inference_mode():
        assert smoothed_loss(*learned, targets, smoothing=smoothing).item() == loss.item()
    (3.7 * loss).backward()  # a gradient that comes from above is not forgotten
    (3.7 * expected).backward()
    for found, wanted in zip(learned, expected_of, strict=True):
        if wanted is not None:
            assert torch.allclose(found.grad, wanted.grad, rtol=0, atol=1e-10)


def test_autocast_comes_close_to_float32():
    *learned, targets = inputs(2 * ROWS + 5, dtype=torch.float32)
    exact = copies(learned)
    smoothed_loss(*exact, targets, smoothing=0.1).backward()
    with torch.autocast("cpu", torch.bfloat16):
        loss = smoothed_loss(*learned, targets, smoothing=0.1)
    loss.backward()
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(torchs(*exact, targets, smoothing=0.1).item(), rel=2e-3)
    for found, expected in zip(learned, exact, strict=True):
        assert found.grad.dtype == torch.float32
        assert (found.grad - expected.grad).norm() < 0.02 * expected.grad.norm()


def test_extreme_logits_stay_finite():
    *learned, targets = inputs(ROWS + 3, dtype=torch.float32, scale=100.0)
    assert float(F.linear(*learned[:2]).detach().abs().max()) > 1e4
    expected_of = copies(learned)
    loss = smoothed_loss(*learned, targets, smoothing=0.1)
    expected = torchs(*expected_of, targets, smoothing=0.1)
    loss.backward()
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for found, wanted in zip(learned, expected_of, strict=True):
        assert found.grad.isfinite().all()
        assert torch.allclose(found.grad, wanted.grad, rtol=1e-4, atol=1e-4)


def test_no_logits_of_more_than_some_rows_exist_at_a_time_and_none_are_kept(monkeypatch):
    made, kept, linear, here = [], [], F.linear, threading.get_ident()

    def watched(*given):
        result = linear(*given)
        if threading.get_ident() == here:  # a thread of an earlier test may still run a model
            made.append(result)
        return result

    monkeypatch.setattr(F, "linear", watched)
    *learned, targets = inputs(2 * ROWS + 5)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda t: t):
        smoothed_loss(*learned, targets, smoothing=0.1)
    assert [len(logits) for logits in made] == [ROWS, ROWS, 5]
    assert sorted(kept) == sorted(value.numel() for value in learned)


def batch_of_three():
    src, tgt_in = padded_source(), target_ids()
    tgt_out = torch.cat((tgt_in[:, 1:], torch.full((3, 1), 3)), dim=1)
    tgt_out[1, 3:] = 0
    tgt_out[2, 1:] = 0
    return Batch(src, tgt_in, tgt_out)


def same_gradients(one, other):
    wanted = dict(other.named_parameters())
    for name, parameter in one.named_parameters():
        assert torch.allclose(parameter.grad, wanted[name].grad, rtol=0, atol=1e-10), name


@pytest.mark.parametrize(
    ("features", "smoothing"),
    [
        ({}, 0.0),
        ({"output_bias": True}, 0.1),
        ({"tie_output": False, "output_bias": True}, 0.1),
        ({"shared_vocab": True, "tgt_vocab_size": 17}, 0.1),
        (DECODER, 0.1),
        (DECODER | {"positions": "rotary", "d_head": 4}, 0.0),
        (ENCODER, 0.0),
        (ENCODER, 0.1),
    ],
)
def test_every_parameter_of_a_model_gets_torchs_gradient(features, smoothing):
    """Tied weights get one gradient as embeddings and one as the output: both must arrive."""
    if "max_len" in features:  # of one stack
        batch = make_batch(hidden() if features is ENCODER else examples_of(features), tiny_config(**features))
    else:
        batch = batch_of_three()
    ours, plain = (tiny_model(**features).requires_grad_() for _ in range(2))
    loss = target_loss(ours, batch, smoothing=smoothing)
    logits = plain(batch.src, batch.tgt_in).flatten(0, 1)
    expected = F.cross_entropy(logits, batch.tgt_out.flatten(), ignore_index=0, label_smoothing=smoothing)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
    loss.backward()
    expected.backward()
    same_gradients(ours, plain)
