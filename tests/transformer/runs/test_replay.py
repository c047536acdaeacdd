"""A finished run is looked at more closely, and computes no more than what is looked at."""

import numpy as np
import pytest
import torch

import transformer
from transformer.errors import QueryError
from transformer.model.transformer import Transformer
from transformer.runs.running import replay, run


@pytest.fixture(scope="module")
def trace(checkpoint):
    return run(checkpoint, checkpoint.query("ba lo mi ta", max_new=9))


def test_what_is_recorded_is_what_the_trace_has(checkpoint, trace):
    found = replay(checkpoint, trace, ["*_attn.weights", "logits", "decoder.0.cross_attn.mask"])
    for layer in range(checkpoint.config.n_decoder_layers):
        assert np.abs(found[f"decoder.{layer}.cross_attn.weights"] - trace.cross[layer]).max() < 1e-6
        assert np.abs(found[f"decoder.{layer}.self_attn.weights"] - trace.decoder_self[layer]).max() < 1e-6
    for layer in range(checkpoint.config.n_encoder_layers):
        assert np.abs(found[f"encoder.{layer}.self_attn.weights"] - trace.encoder_self[layer]).max() < 1e-6
    log_probs = torch.tensor(found["logits"]).log_softmax(-1).numpy()
    assert np.abs(log_probs - trace.log_probs).max() < 1e-5
    assert found["decoder.0.cross_attn.mask"].dtype == bool
    assert not any(value.flags.writeable for value in found.values())


def test_a_site_that_does_not_exist_is_refused(checkpoint, trace):
    with pytest.raises(QueryError, match=r"no site that matches 'decoder\.77"):
        replay(checkpoint, trace, ["logits", "decoder.77.*"])


def test_a_run_of_another_checkpoint_is_refused(shared_checkpoint_folder, trace):
    with pytest.raises(QueryError, match="made with a checkpoint other than tiny-shared;"):
        replay(transformer.load(shared_checkpoint_folder), trace, ["logits"])


@pytest.mark.parametrize(("site", "n"), [("decoder.0.self_attn.heads", 0), ("logits", 1)])
def test_logits_are_computed_where_somebody_wants_them(checkpoint, trace, monkeypatch, site, n):
    calls = count_projections(monkeypatch)
    replay(checkpoint, trace, [site])
    assert len(calls) == n


def count_projections(monkeypatch):
    """A list that grows with every call of `project`."""
    calls, project = [], Transformer.project
    monkeypatch.setattr(
        Transformer, "project", lambda self, hidden, **more: calls.append(1) or project(self, hidden, **more)
    )
    return calls
