import pytest
import torch
import torch.nn.functional as F

from tests.transformer.tiny import padded_source, target_ids, tiny_model
from transformer.training.data import Batch
from transformer.training.loss import target_loss
from transformer.training.schedule import learning_rate


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_torchs_over_the_real_tokens(smoothing):
    model, src, tgt_in = tiny_model(dtype=torch.float32), padded_source(), target_ids()
    tgt_out = torch.cat((tgt_in[:, 1:], torch.full((3, 1), 3)), dim=1)
    tgt_out[1, 3:] = 0
    tgt_out[2, 1:] = 0
    loss = target_loss(model, Batch(src, tgt_in, tgt_out), smoothing=smoothing)
    logits = model(src, tgt_in)
    expected = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=0, label_smoothing=smoothing)
    assert float(loss) == pytest.approx(float(expected), rel=1e-6)


def test_more_padding_does_not_move_the_loss():
    model, src, tgt_in = tiny_model(), padded_source(), target_ids()
    tgt_out = torch.cat((tgt_in[:, 1:], torch.full((3, 1), 3)), dim=1)
    zeros = torch.zeros(3, 2, dtype=torch.long)
    padded = Batch(*(torch.cat((ids, zeros), dim=1) for ids in (src, tgt_in, tgt_out)))
    expected = target_loss(model, Batch(src, tgt_in, tgt_out), smoothing=0.1)
    assert float(target_loss(model, padded, smoothing=0.1)) == pytest.approx(float(expected), rel=1e-6)


def test_the_rate_rises_to_its_peak_and_falls_to_almost_nothing():
    total, warmup = 200, 50
    rates = [learning_rate(step, step / total, peak=2.0, warmup=warmup) for step in range(1, total + 1)]
    top = rates.index(max(rates))
    assert all(0 < rate <= 2.0 for rate in rates)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[0] == pytest.approx(2.0 / warmup)
    assert rates[-1] <= 0.02 * 2.0
    assert 30 <= top < 60


def test_no_warm_up_starts_at_the_peak():
    assert learning_rate(1, 0.0, peak=1.0, warmup=0) == 1.0
    assert learning_rate(1, 2.0, peak=1.0, warmup=0) >= 0.0
