"""Training without the causal mask, a mistake made on purpose: the future is open, and all else stays as it is."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from glassformer.extensions.training.library import checkpointing, run
from glassformer.extensions.training.library.data import Batch, encode_pairs
from glassformer.extensions.training.library.run import train
from glassformer.extensions.training.library.scoring import held_out_loss, target_loss
from tests.extensions.training.library.training_jobs import train_and_stop, with_settings
from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.__main__ import main
from transformer.checkpoint.load import load
from transformer.errors import DataError
from transformer.model.masks import padding_mask
from transformer.model.taps import all_seen, without_causal_mask


@pytest.fixture
def job(job):
    """A job of one epoch."""
    return with_settings(job, epochs=1, smoothing=0.0)


def batch_with_pads():
    src, tgt_in = padded_source(), target_ids()
    tgt_out = torch.cat((tgt_in[:, 1:], torch.full((3, 1), 3)), dim=1)
    tgt_in, tgt_out = tgt_in.clone(), tgt_out.clone()
    for row, length in ((1, 3), (2, 1)):
        tgt_in[row, length:] = tgt_out[row, length:] = 0
    return Batch(src, tgt_in, tgt_out)


def test_every_row_sees_all_but_padding():
    batch, model = batch_with_pads(), tiny_model()
    mask = model.target_mask(batch.tgt_in)
    found = all_seen(mask)
    assert found.shape == mask.shape
    assert torch.equal(found, padding_mask(batch.tgt_in, pad_id=0).expand_as(mask))
    assert not torch.equal(found, mask)


def test_the_loss_is_that_of_a_decoder_that_is_given_the_padding_mask_alone():
    batch, model = batch_with_pads(), tiny_model()
    memory = model.encode(batch.src)
    hidden = model.decoder(
        batch.tgt_in, model.target_table, memory, padding_mask(batch.tgt_in, pad_id=0), model.source_mask(batch.src)
    )
    expected = F.cross_entropy(model.project(hidden).flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0)
    loss = target_loss(model, batch, smoothing=0.0, tap=without_causal_mask(model.config))
    assert loss.item() == pytest.approx(expected.item(), abs=1e-10)
    assert loss.item() != pytest.approx(target_loss(model, batch, smoothing=0.0).item(), abs=1e-3)


def test_a_training_without_the_mask_learns_something_else_and_its_model_keeps_the_mask(job):
    closed = train(job)
    rows = train(with_settings(dataclasses.replace(job, out=job.out.with_name("leak")), causal_mask=False))
    assert rows[0].loss != closed[0].loss
    trained = load(job.out.with_name("leak"))
    assert trained.config == load(job.out).config
    ids = torch.tensor([[trained.config.bos_id, 5, 6, 7]])
    assert trained.model.target_mask(ids).sum() == 4 + 3 + 2 + 1
    trace = trained.run("abc")
    assert not trace.decoder_mask[0, 1:].any()


def test_its_dev_loss_is_of_what_it_learned_and_the_lowest_decides_what_is_kept(job, monkeypatch):
    taps, losses = [], iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(checkpointing, "held_out_loss", lambda model, dev, tap: taps.append(tap) or next(losses))
    rows = train(with_settings(job, causal_mask=False, epochs=3))
    assert [row.dev_loss for row in rows] == [3.0, 1.0, 2.0]
    assert all(tap.child("decoder", 0, "self_attn").wants("mask") for tap in taps)
    assert load(job.out).card.training["epochs"] == 2


def test_a_loss_near_0_keeps_three_digits(job, monkeypatch):
    monkeypatch.setattr(checkpointing, "held_out_loss", lambda model, dev, tap: 0.0000467891)
    assert train(with_settings(job, causal_mask=False))[0].dev_loss == 4.68e-05


def test_it_goes_on_as_if_it_had_not_been_stopped_but_not_with_the_mask(job, monkeypatch):
    leak = with_settings(job, causal_mask=False, epochs=2)
    expected = train(dataclasses.replace(leak, out=job.out.with_name("whole")))
    train_and_stop(leak, monkeypatch)
    with pytest.raises(DataError, match="causal_mask was False and is now True"):
        train(dataclasses.replace(with_settings(job, epochs=2), resume=True))
    rows = train(dataclasses.replace(leak, resume=True))
    assert [row.loss for row in rows] == [row.loss for row in expected]


def test_the_command_has_a_flag_that_says_what_it_does(job, monkeypatch, capsys):
    found = []
    monkeypatch.setattr(run, "train", lambda job: found.append(job))
    files = ["--train", str(job.train), "--dev", str(job.dev), "--out", str(job.out)]
    main(["train", *files])
    main(["train", *files, "--no-causal-mask"])
    assert [one.settings.causal_mask for one in found] == [True, False]
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert "a deliberate mistake: the decoder sees the pieces that it has to predict" in " ".join(
        capsys.readouterr().out.split()
    )


def test_held_out_loss_takes_the_tap(job):
    train(job)
    trained = load(job.out)
    dev = encode_pairs([("abc", "cba"), ("xy", "yx")], trained.src_tokenizer, trained.tgt_tokenizer, trained.config)
    with_mask = held_out_loss(trained.model, dev)
    assert held_out_loss(trained.model, dev, tap=without_causal_mask(trained.config)) != with_mask
