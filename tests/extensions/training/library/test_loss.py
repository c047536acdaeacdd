"""The loss and every gradient are torch's, with any mask, in little memory; a leak opens the future and no more."""

import dataclasses
import threading

import pytest
import torch
import torch.nn.functional as F

from glassformer.extensions.training.library import checkpointing
from glassformer.extensions.training.library.data import Batch, encode_pairs, make_batch
from glassformer.extensions.training.library.run import train
from glassformer.extensions.training.library.scoring import ROWS, held_out_loss, smoothed_loss, target_loss
from tests.extensions.training.library.one_stack_texts import DECODER, ENCODER, examples_of, hidden
from tests.extensions.training.library.training_jobs import train_and_stop, with_settings
from tests.transformer.tiny import padded_source, target_ids, tiny_config, tiny_model
from transformer.checkpoint.load import load
from transformer.errors import DataError
from transformer.model.masks import padding_mask
from transformer.model.taps import without_causal_mask

D, V, SOME = 6, 23, 2 * ROWS + 5


def inputs(n, *, dtype=torch.float64, scale=1.0, bias=True):
    """hidden, weight, bias and targets; the three that can be learned need gradients."""
    generator = torch.Generator().manual_seed(n)
    shapes = [(n, D), (V, D)] + [(V,)] * bias
    values = [scale * torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]
    learned = [value.requires_grad_() for value in values] + [None] * (not bias)
    return *learned, torch.randint(V, (n,), generator=generator)


def with_torchs(values, smoothing):
    """Torch's loss of copies of the same, and the copies, which have its gradients times 3.7."""
    *learned, targets = values
    copies = [None if value is None else value.detach().clone().requires_grad_() for value in learned]
    loss = F.cross_entropy(F.linear(*copies), targets, label_smoothing=smoothing)
    (3.7 * loss).backward()
    return loss, copies


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("n", [1, ROWS, ROWS + 1, SOME])
@pytest.mark.parametrize("bias", [True, False])
def test_loss_and_gradients_are_torchs(n, smoothing, bias):
    *learned, targets = inputs(n, bias=bias)
    loss = smoothed_loss(*learned, targets, smoothing=smoothing)
    expected, copies = with_torchs((*learned, targets), smoothing)
    assert loss.shape == ()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
    with torch.inference_mode():
        assert smoothed_loss(*learned, targets, smoothing=smoothing).item() == loss.item()
    (3.7 * loss).backward()  # a gradient that comes from above is not forgotten
    for found, wanted in zip(learned, copies, strict=True):
        assert wanted is None or torch.allclose(found.grad, wanted.grad, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("scale", "autocast", "near"), [(100.0, False, 1e-5), (1.0, True, 2e-3)])
def test_extreme_logits_stay_finite_and_autocast_comes_close_to_float32(scale, autocast, near):
    *learned, targets = inputs(SOME, dtype=torch.float32, scale=scale)
    assert autocast or float(F.linear(*learned[:2]).detach().abs().max()) > 1e4
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = smoothed_loss(*learned, targets, smoothing=0.1)
    (3.7 * loss).backward()
    expected, copies = with_torchs((*learned, targets), 0.1)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected.item(), rel=near)
    for found, wanted in zip(learned, copies, strict=True):
        assert found.grad.dtype == torch.float32
        if autocast:
            assert (found.grad - wanted.grad).norm() < 0.02 * wanted.grad.norm()
        else:
            assert torch.allclose(found.grad, wanted.grad, rtol=1e-4, atol=3.7e-4)


def test_no_logits_of_more_than_some_rows_exist_at_a_time_and_none_are_kept(monkeypatch):
    made, kept, linear, here = [], [], F.linear, threading.get_ident()

    def watched(*given):
        result = linear(*given)
        if threading.get_ident() == here:  # a thread of an earlier test may still run a model
            made.append(result)
        return result

    monkeypatch.setattr(F, "linear", watched)
    *learned, targets = inputs(SOME)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()) or tensor, lambda t: t):
        smoothed_loss(*learned, targets, smoothing=0.1)
    assert [len(logits) for logits in made] == [ROWS, ROWS, 5]
    assert sorted(kept) == sorted(value.numel() for value in learned)


def batch_of_three():
    """Three pairs whose targets have five, three and one pieces."""
    src, tgt_in = padded_source(), target_ids()
    tgt_out = torch.cat((tgt_in[:, 1:], torch.full((3, 1), 3)), dim=1)
    for row, length in ((1, 3), (2, 1)):
        tgt_out[row, length:] = 0
    return Batch(src, tgt_in, tgt_out)


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
    batch = batch_of_three()
    if "max_len" in features:  # of one stack
        batch = make_batch(hidden() if features is ENCODER else examples_of(features), tiny_config(**features))
    ours, plain = (tiny_model(**features).requires_grad_() for _ in range(2))
    loss = target_loss(ours, batch, smoothing=smoothing)
    logits = plain(batch.src, batch.tgt_in).flatten(0, 1)
    expected = F.cross_entropy(logits, batch.tgt_out.flatten(), ignore_index=0, label_smoothing=smoothing)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
    loss.backward()
    expected.backward()
    for (name, found), wanted in zip(ours.named_parameters(), plain.parameters(), strict=True):
        assert torch.allclose(found.grad, wanted.grad, rtol=0, atol=1e-10), name


@pytest.fixture
def job(job):
    """A job of one epoch."""
    return with_settings(job, epochs=1, smoothing=0.0, batch_tokens=800)


def test_the_loss_is_that_of_a_decoder_that_is_given_the_padding_mask_alone():
    batch, model = batch_of_three(), tiny_model()
    src, tgt_in = batch.src, batch.tgt_in.where(batch.tgt_out > 0, 0)
    masks = padding_mask(tgt_in, pad_id=0), model.source_mask(src)
    logits = model.project(model.decoder(tgt_in, model.target_table, model.encode(src), *masks))
    expected = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0)
    batch = Batch(src, tgt_in, batch.tgt_out)
    loss = target_loss(model, batch, smoothing=0.0, tap=without_causal_mask(model.config))
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
    assert loss.item() != pytest.approx(target_loss(model, batch, smoothing=0.0).item(), abs=1e-3)


def test_it_learns_something_else_its_model_keeps_the_mask_and_it_goes_on_without_it_alone(job, monkeypatch):
    closed = train(job)
    leak = with_settings(dataclasses.replace(job, out=job.out.with_name("leak")), causal_mask=False, epochs=2)
    expected = train(dataclasses.replace(leak, out=job.out.with_name("whole")))
    assert expected[0].loss != closed[0].loss
    trained = load(job.out.with_name("whole"))
    assert trained.config == load(job.out).config
    assert not trained.run("abc").decoder_mask[0, 1:].any()
    dev = encode_pairs([("abc", "cba"), ("xy", "yx")], trained.src_tokenizer, trained.tgt_tokenizer, trained.config)
    with_mask = held_out_loss(trained.model, dev)
    assert held_out_loss(trained.model, dev, tap=without_causal_mask(trained.config)) != with_mask
    train_and_stop(leak, monkeypatch)
    with pytest.raises(DataError, match="causal_mask was False and is now True"):
        train(dataclasses.replace(with_settings(leak, causal_mask=True), resume=True))
    rows = train(dataclasses.replace(leak, resume=True))
    assert [row.loss for row in rows] == [row.loss for row in expected]


def test_its_dev_loss_is_of_what_it_learned_and_the_lowest_decides_what_is_kept(job, monkeypatch):
    taps, losses = [], iter([3.0, 0.0000467891, 2.0])
    monkeypatch.setattr(checkpointing, "held_out_loss", lambda model, dev, tap: taps.append(tap) or next(losses))
    rows = train(with_settings(job, causal_mask=False, epochs=3))
    assert [row.dev_loss for row in rows] == [3.0, 4.68e-05, 2.0]  # near 0 three digits are kept
    assert all(tap.child("decoder", 0, "self_attn").wants("mask") for tap in taps)
    assert load(job.out).card.training["epochs"] == 2
