"""A whole output read at once has the losses of a plain pass, and numbers that loops find too."""

import numpy as np
import pytest
import torch

from transformer.analysis import teacher_forced_pass
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


def some_maps(heads=3, queries=4, keys=4, seed=0):
    scores = np.random.default_rng(seed).normal(size=(heads, queries, keys))
    return np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)


def test_the_largest_weight_is_the_mean_of_each_rows_largest_that_has_any():
    maps = [some_maps(), some_maps(keys=6, seed=1)]
    maps[0][:, 2] = 0
    rows = [max(row) for one in maps for head in one for row in head if max(row)]
    assert teacher_forced_pass.largest_weight(maps) == pytest.approx(sum(rows) / len(rows))
    assert teacher_forced_pass.largest_weight([np.zeros((1, 2, 2))]) == 0


def test_weight_on_later_tokens_and_on_some_keys():
    one, second = some_maps(), some_maps(seed=1)
    rows = [sum(one[h, i, j] for j in range(4) if j > i) for h in range(3) for i in range(3)]
    assert teacher_forced_pass.on_later([one]) == pytest.approx(sum(rows) / len(rows))
    assert teacher_forced_pass.on_later([np.tril(one)]) == teacher_forced_pass.on_later([np.ones((2, 1, 1))]) == 0
    keys, some = np.array([False, True, False, True]), np.array([True, True, False, False])
    expected = [np.mean([maps[h, i, 1] + maps[h, i, 3] for maps in (one, second) for h in range(3)]) for i in range(4)]
    assert teacher_forced_pass.on_keys([one, second], keys) == pytest.approx(expected)
    assert teacher_forced_pass.on_keys([one, second], keys, some) == pytest.approx(expected[:2])


def test_likeness_is_the_mean_cosine_of_pairs():
    vectors = np.random.default_rng(2).normal(size=(5, 7))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert teacher_forced_pass.likeness(vectors) == pytest.approx(((unit @ unit.T).sum() - 5) / 20)
    assert teacher_forced_pass.likeness(np.ones((1, 4))) == 1
