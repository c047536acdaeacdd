"""Training without the causal mask opens the future and nothing else, and says, keeps and resumes it as such."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from glassformer.extensions.training.library import checkpointing
from glassformer.extensions.training.library.data import Batch, encode_pairs
from glassformer.extensions.training.library.run import train
from glassformer.extensions.training.library.scoring import held_out_loss, target_loss
from tests.extensions.training.library.training_jobs import train_and_stop, with_settings
from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.checkpoint.load import load
from transformer.errors import DataError
from transformer.model.masks import padding_mask
from transformer.model.taps import without_causal_mask


@pytest.fixture
def job(job):
    """A job of one epoch."""
    return with_settings(job, epochs=1, smoothing=0.0, batch_tokens=800)


def test_the_loss_is_that_of_a_decoder_that_is_given_the_padding_mask_alone():
    src, tgt_in = padded_source(), target_ids()
    tgt_out = torch.cat((tgt_in[:, 1:], torch.full((3, 1), 3)), dim=1)
    tgt_in, tgt_out = tgt_in.clone(), tgt_out.clone()
    for row, length in ((1, 3), (2, 1)):
        tgt_in[row, length:] = tgt_out[row, length:] = 0
    batch, model = Batch(src, tgt_in, tgt_out), tiny_model()
    hidden = model.decoder(
        tgt_in, model.target_table, model.encode(src), padding_mask(tgt_in, pad_id=0), model.source_mask(src)
    )
    expected = F.cross_entropy(model.project(hidden).flatten(0, 1), tgt_out.flatten(), ignore_index=0)
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
