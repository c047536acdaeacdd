"""Runs and traces of a decoder alone, which goes on with its prompt, and of an encoder alone, which only reads."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.transformer.one_stack import alone
from transformer import Beam, Greedy, Sampling, run, run_batch
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.model.taps import Recorder, tap_of
from transformer.runs.decoding import Prefix
from transformer.runs.replay import replay
from transformer.runs.trace import RowLabel

PROMPT = "the red fox"
DECODINGS = [Greedy(), Beam(size=3), Sampling(temperature=0.8, seed=4)]


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return alone("decoder", tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def precise(decoder):
    return replace(decoder, model=deepcopy(decoder.model).double())


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return alone("encoder", tmp_path_factory.mktemp("alone"))


# Folders


@pytest.mark.parametrize("which", ["decoder", "encoder"])
def test_a_folder_has_one_vocabulary_and_opens_as_it_was_written(which, request):
    checkpoint = request.getfixturevalue(which)
    names = sorted(path.name for path in checkpoint.folder.iterdir())
    assert names == ["card.json", "config.json", "model.safetensors", "pieces.model"]
    assert checkpoint.warnings == ()
    assert checkpoint == load(checkpoint.folder)
    assert checkpoint.card.parameters == checkpoint.config.count_parameters()


# A decoder alone


def naive_greedy(model, ids, n):
    """Log-probabilities and pieces, each prefix read whole."""
    rows = []
    for _ in range(n):
        rows.append(model(torch.zeros(1, 1, dtype=torch.long), torch.tensor([ids]))[0, -1].log_softmax(-1))
        allowed = rows[-1].clone()
        allowed[0] = -torch.inf
        ids = [*ids, int(allowed.argmax())]
        if ids[-1] == 3:
            break
    return torch.stack(rows), ids


def test_greedy_goes_on_with_the_prompt(precise):
    trace = run(precise, precise.query(PROMPT, max_new=8))
    log_probs, ids = naive_greedy(precise.model, list(trace.src_ids), 8)
    assert trace.src_ids + trace.tgt_ids == tuple(ids)
    assert trace.read_ids == tuple(ids[:-1])
    np.testing.assert_allclose(trace.log_probs, log_probs, rtol=0, atol=1e-10)
    assert trace.output_text == precise.tgt_tokenizer.decode(trace.tgt_ids)


@pytest.mark.parametrize("decoding", DECODINGS, ids=lambda d: type(d).__name__)
def test_each_step_is_what_its_prefix_alone_gives(precise, decoding):
    trace = run(precise, precise.query(PROMPT, decoding=decoding, max_new=7, forced=(9, 5)))
    assert trace.tgt_ids[:2] == (9, 5)
    for t in range(trace.n_steps):
        recorder, step = Recorder(), trace.step(t)
        read = torch.tensor([trace.src_ids + trace.tgt_ids[:t]])
        logits = precise.model(read, read, tap=tap_of(recorder))
        assert trace.row_of(t) == read.size(1) - 1
        np.testing.assert_allclose(trace.log_probs[t], logits[0, -1].log_softmax(-1), rtol=0, atol=1e-10)
        assert step.decoder_rows.shape == (3, 3, read.size(1))
        assert step.cross_rows.shape == (0, 0, 0)
        for layer in range(3):
            seen = recorder.values[f"decoder.{layer}.self_attn.weights"][0, :, -1]
            np.testing.assert_allclose(step.decoder_rows[layer], seen, rtol=0, atol=1e-10)


def test_maps_masks_and_labels_cover_prompt_and_continuation(decoder):
    trace = run(decoder, decoder.query(PROMPT, max_new=6))
    n_prompt, n = len(trace.src_ids), len(trace.read_ids)
    assert trace.kinds == ("decoder",)
    assert trace.src_ids[0] == decoder.config.bos_id
    assert n == n_prompt + trace.n_steps - 1 == trace.n_tokens("decoder")
    assert trace.n_tokens("encoder") == 0
    assert trace.maps("decoder").shape == (3, 3, n, n)
    np.testing.assert_allclose(trace.decoder_self.sum(axis=-1), 1, atol=1e-5)
    assert (trace.decoder_mask == np.tril(np.ones((n, n), dtype=bool))).all()
    assert (trace.decoder_self[:, :, ~trace.decoder_mask] == 0).all()
    labels = trace.row_labels()
    assert [label.reads for label in labels] == list(trace.src_pieces + trace.tgt_pieces[:-1])
    assert [label.predicts for label in labels] == [None] * (n_prompt - 1) + list(trace.tgt_pieces)
    assert trace.step(0).label == RowLabel(trace.src_pieces[-1], trace.tgt_pieces[0])
    assert len(trace.to_frame()) == trace.n_steps
    for kind in ("encoder", "cross"):
        with pytest.raises(QueryError, match=f"no '{kind}' attention, only these kinds: decoder"):
            trace.maps(kind)


def test_prompts_of_different_lengths_are_a_batch_that_changes_nothing(decoder):
    sources = ("the", PROMPT, "a lake is red", "moon")
    queries = [decoder.query(s, decoding=d, max_new=5) for s in sources for d in DECODINGS]
    for query, found in zip(queries, run_batch(decoder, queries), strict=True):
        single, n = run(decoder, query), len(run(decoder, query).read_ids)
        assert (found.tgt_ids, found.texts, found.notes) == (single.tgt_ids, single.texts, single.notes)
        assert found.row_labels()[:n] == single.row_labels()
        assert found.n_tokens("decoder") == n
        np.testing.assert_allclose(found.log_probs, single.log_probs, atol=1e-4)
        np.testing.assert_allclose(found.decoder_self[:, :, :n, :n], single.decoder_self, atol=1e-5)
        assert (found.decoder_self[..., n:] == 0)[:, :, :n].all()


def test_prompt_and_output_share_the_room(decoder):
    n_prompt = len(run(decoder, decoder.query(PROMPT, max_new=1)).src_ids)
    room = 24 - n_prompt + 1
    trace = run(decoder, decoder.query(PROMPT, max_new=512, forced=(9,) * room))
    assert (trace.n_steps, len(trace.read_ids)) == (room, 24)
    with pytest.raises(QueryError, match=f"{room + 1} pieces are forced, but decoder alone can write at most {room}"):
        run(decoder, decoder.query(PROMPT, max_new=512, forced=(9,) * (room + 1)))
    with pytest.raises(QueryError, match="reads at most 24"):
        run(decoder, decoder.query("the red fox " * 20))
    with pytest.raises(QueryError, match="source is empty"):
        run(decoder, decoder.query(" "))


def test_a_finished_run_is_read_again(decoder):
    trace = run(decoder, decoder.query(PROMPT, max_new=6))
    found = replay(decoder, trace, ["*.weights", "logits", "decoder.0.self_attn.keys"])
    assert found["decoder.0.self_attn.keys"].shape == (1, len(trace.read_ids), 4)
    np.testing.assert_allclose(found["decoder.1.self_attn.weights"], trace.decoder_self[1], atol=1e-6)
    rows = [trace.row_of(t) for t in range(trace.n_steps)]
    log_probs = torch.tensor(found["logits"][rows]).log_softmax(-1).numpy()
    np.testing.assert_allclose(log_probs, trace.log_probs, atol=1e-5)


def test_prompts_with_padding_cannot_be_decoded_together(decoder):
    with pytest.raises(QueryError, match="prompts decoded together must have the same length and no padding"):
        Prefix(decoder.model, torch.tensor([[5, 6], [5, 0]]), cache=None)


# An encoder alone


def test_an_encoder_alone_has_maps_and_no_steps(encoder):
    trace = run(encoder, encoder.query(PROMPT))
    n = len(trace.src_ids)
    assert (trace.kinds, trace.n_steps, trace.output_text) == (("encoder",), 0, "")
    assert (trace.tgt_ids, trace.read_ids, trace.texts, trace.row_labels()) == ((), (), (), ())
    assert (trace.stop_reason, trace.log_prob, len(trace.entropies()), len(trace.to_frame())) == ("no decoder", 0, 0, 0)
    assert trace.maps("encoder").shape == (2, 3, n, n)
    np.testing.assert_allclose(trace.encoder_self.sum(axis=-1), 1, atol=1e-5)
    assert trace.encoder_mask.all()
    assert (trace.n_tokens("encoder"), trace.n_tokens("decoder")) == (n, 0)
    assert trace == run(encoder, encoder.query(PROMPT))
    found = replay(encoder, trace, ["encoder.output", "encoder.*.weights"])
    assert found["encoder.output"].shape == (n, 12)
    np.testing.assert_allclose(found["encoder.1.self_attn.weights"], trace.encoder_self[1], atol=1e-6)


def test_what_an_encoder_alone_cannot_do_is_said(encoder):
    trace = run(encoder, encoder.query(PROMPT))
    with pytest.raises(QueryError, match="this model generates no output"):
        trace.step(0)
    with pytest.raises(QueryError, match="is an encoder-only model and generates no output"):
        run(encoder, encoder.query(PROMPT, forced=(5,)))
    with pytest.raises(QueryError, match="no decoder"):
        Prefix(encoder.model, torch.tensor([[5]]), cache=None)


def test_a_batch_of_an_encoder_alone_hides_its_padding(encoder):
    short, long = run_batch(encoder, [encoder.query("the"), encoder.query(PROMPT)])
    n = short.n_tokens("encoder")
    assert n < long.n_tokens("encoder") == len(short.src_ids)
    assert (short.encoder_self[..., n:] == 0).all()
    np.testing.assert_allclose(
        short.encoder_self[:, :, :n, :n], run(encoder, encoder.query("the")).encoder_self, atol=1e-5
    )
