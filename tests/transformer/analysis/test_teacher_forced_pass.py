"""A whole output read at once has the losses of a plain pass, and numbers that loops find too."""

import pytest
import torch
import torch.nn.functional as F

from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.runs.teacher_forcing import read_at_once


@pytest.fixture(scope="module")
def tiny(checkpoint_folder):
    return load(checkpoint_folder)


def test_its_losses_are_those_of_the_run_and_of_a_plain_pass(tiny):
    trace = tiny.run("ba lo mi")
    read = read_at_once(tiny, trace.query, trace.tgt_ids)
    logits = tiny.model(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]))[0].double()
    plain = F.cross_entropy(logits, torch.tensor(trace.tgt_ids), reduction="none")
    assert read.losses == pytest.approx(plain.numpy(force=True), abs=1e-5)
    assert read.losses.sum() == pytest.approx(-trace.log_prob, abs=1e-4)
    assert read.mean_loss == pytest.approx(-trace.log_prob / trace.n_steps, abs=1e-5)
    assert (read.src_ids, list(read.best)) == (trace.src_ids, list(trace.tgt_ids))  # greedy took the likeliest


def test_a_decoder_alone_reads_its_prompt_first_and_a_model_that_writes_nothing_has_no_output(decoder, encoder, tiny):
    trace = decoder.run("ba lo mi")
    read = read_at_once(decoder, trace.query, trace.tgt_ids, ["decoder.0.self_attn.weights"])
    assert read.first_row == trace.first_row > 0
    assert read.losses.sum() == pytest.approx(-trace.log_prob, abs=1e-4)
    assert read.values["decoder.0.self_attn.weights"].shape[-1] == len(trace.read_ids)
    for checkpoint, ids in ((encoder, (5,)), (tiny, ())):
        with pytest.raises(QueryError, match="no output"):
            read_at_once(checkpoint, checkpoint.query("ba lo mi"), ids)
