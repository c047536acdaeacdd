"""A whole output read at once has the losses of a plain pass, and numbers that loops find too."""

import numpy as np
import pytest
import torch

from transformer.analysis.teacher_forced_pass import read_at_once
from transformer.checkpoint.load import load
from transformer.errors import QueryError


@pytest.fixture(scope="module")
def tiny(checkpoint_folder):
    return load(checkpoint_folder)


def plain_losses(checkpoint, trace, mask=None):
    """A pass without a tap; the mask, if one is given, takes the place of the model's own."""
    model = checkpoint.model
    src, tgt = torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids])
    memory, src_mask = model.encode(src), model.source_mask(src)
    own = model.target_mask(tgt) if mask is None else mask
    hidden = model.decoder(tgt, model.target_table, memory, own, src_mask)
    logits = model.project(hidden)[0].double().numpy()
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]


def test_its_losses_are_those_of_the_run(tiny):
    trace = tiny.run("ba lo mi")
    read = read_at_once(tiny, trace.query, trace.tgt_ids)
    assert read.losses == pytest.approx(plain_losses(tiny, trace), abs=1e-5)
    assert read.losses.sum() == pytest.approx(-trace.log_prob, abs=1e-4)
    assert read.mean_loss == pytest.approx(-trace.log_prob / trace.n_steps, abs=1e-5)
    assert read.src_ids == trace.src_ids
    assert list(read.best) == list(trace.tgt_ids)  # greedy took the likeliest


def test_a_decoder_alone_reads_its_prompt_first(decoder):
    trace = decoder.run("ba lo mi")
    read = read_at_once(decoder, trace.query, trace.tgt_ids, ["decoder.0.self_attn.weights"])
    assert read.first_row == trace.first_row > 0
    assert read.losses.sum() == pytest.approx(-trace.log_prob, abs=1e-4)
    assert read.values["decoder.0.self_attn.weights"].shape[-1] == len(trace.read_ids)


def test_a_model_that_writes_nothing_has_no_output_to_read(encoder, tiny):
    for checkpoint, ids in ((encoder, (5,)), (tiny, ())):
        with pytest.raises(QueryError, match="no output"):
            read_at_once(checkpoint, checkpoint.query("ba lo mi"), ids)
