"""Teacher forcing: the numbers of a reference are those of a run that was forced to write it, and those of torch."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import SOURCES, TARGETS
from tests.transformer.made_up_changes import SilentHead
from tests.transformer.one_stack import alone
from transformer import load, run, score
from transformer.errors import NotFiniteError, QueryError
from transformer.model.taps import Replacer, tap_of
from transformer.runs.teacher_forcing import judge, parting

SOURCE, REFERENCE = SOURCES[0], TARGETS[3]
HEADS = (SilentHead("decoder", 0, 1), SilentHead("cross", 1, 0))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    return alone("decoder", tmp_path_factory.mktemp("one stack"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return alone("encoder", tmp_path_factory.mktemp("one stack"))


def by_torch(checkpoint, source_ids, read_ids, wanted):
    """Losses by torch's own cross-entropy over the logits of one plain call."""
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([source_ids]), torch.tensor([read_ids]))[0]
    rows = logits[len(read_ids) - len(wanted) :].double()
    return F.cross_entropy(rows, torch.tensor(wanted), reduction="none").numpy(), rows


# The numbers


def test_losses_are_those_of_a_run_that_is_forced_to_write_the_reference(checkpoint):
    found = score(checkpoint, SOURCE, REFERENCE)
    trace = checkpoint.run(checkpoint.query(SOURCE, forced=found.ids))
    assert trace.tgt_ids == found.ids
    steps = np.arange(trace.n_steps)
    np.testing.assert_allclose(-found.losses, trace.log_probs[steps, list(found.ids)], atol=1e-5)
    assert found.ranks.tolist() == [trace.rank_of(i, step=t) for t, i in enumerate(found.ids)]
    assert found.log_prob == pytest.approx(trace.log_prob, abs=1e-4)
    assert found.reads == tuple(label.reads for label in trace.row_labels())


def test_losses_and_ranks_are_torchs_own(checkpoint):
    found, config = score(checkpoint, SOURCE, REFERENCE), checkpoint.config
    source = checkpoint.run(SOURCE).src_ids
    losses, logits = by_torch(checkpoint, source, [config.decoder_start_id, *found.ids[:-1]], found.ids)
    np.testing.assert_allclose(found.losses, losses, atol=1e-5)
    for place, i in enumerate(found.ids):
        row = logits[place].tolist()
        assert found.ranks[place] == sorted(range(len(row)), key=lambda j: (-row[j], j)).index(i) + 1
        best = logits[place].topk(found.best_ids.shape[1])
        assert found.best_ids[place].tolist() == best.indices.tolist()
    assert found.ids[-1] == config.eos_id
    assert found.mean_loss == pytest.approx(losses.mean(), abs=1e-5)
    assert found.perplexity == pytest.approx(np.exp(losses.mean()), rel=1e-5)
    assert found.running_perplexity[-1] == pytest.approx(found.perplexity)
    np.testing.assert_allclose(found.perplexities, 1 / found.probabilities)
    assert found.guessing == pytest.approx(np.log(config.tgt_vocab_size))


def test_one_step_after_the_other_gives_the_same(checkpoint):
    whole = score(checkpoint, SOURCE, REFERENCE)
    step_by_step = judge(  # a tap that may mix tokens is given each beginning by itself
        checkpoint, checkpoint.query(SOURCE), REFERENCE, tap=tap_of(Replacer({"decoder.0.input": torch.clone}))
    )
    assert (whole.causal, step_by_step.causal) == (True, False)
    np.testing.assert_allclose(whole.losses, step_by_step.losses, atol=1e-5)
    assert whole.own_ids.tolist() == step_by_step.own_ids.tolist()


def test_a_text_of_several_pieces_of_work_is_judged_as_one(checkpoint, monkeypatch):
    whole = score(checkpoint, SOURCE, REFERENCE)
    monkeypatch.setattr("transformer.runs.distribution.ROWS", 3)
    monkeypatch.setattr("transformer.runs.teacher_forcing.ROWS", 3)
    parts = score(checkpoint, SOURCE, REFERENCE)
    np.testing.assert_allclose(whole.losses, parts.losses, atol=1e-6)
    assert (whole.ranks.tolist(), whole.own_ids.tolist()) == (parts.ranks.tolist(), parts.own_ids.tolist())


def test_changes_inside_the_model_change_the_losses_as_they_change_a_run(checkpoint):
    query = checkpoint.query(SOURCE, interventions=HEADS)
    found, plain = score(checkpoint, query, REFERENCE), score(checkpoint, SOURCE, REFERENCE)
    trace = run(checkpoint, replace(query, forced=found.ids))
    np.testing.assert_allclose(-found.losses, trace.log_probs[range(len(found)), list(found.ids)], atol=1e-5)
    assert np.abs(found.losses - plain.losses).max() > 1e-3
    assert found.written == run(checkpoint, query).tgt_ids


# Beside what the model writes by itself


def test_its_own_output_is_its_own_choice_everywhere(checkpoint):
    own = checkpoint.run(checkpoint.query(SOURCE, max_new=8))
    ended = own.stop_reason == "end of sentence"
    found = score(checkpoint, checkpoint.query(SOURCE, max_new=8), own.tgt_ids, with_end=ended)
    assert found.hits.all()
    assert (found.written, found.first_divergence) == (own.tgt_ids, None)
    np.testing.assert_allclose(found.own_probabilities, found.probabilities)


def test_greedy_output_parts_where_the_first_piece_is_not_the_models_own_choice(checkpoint):
    found = score(checkpoint, SOURCE, REFERENCE)
    first = found.first_divergence
    assert first == int(np.flatnonzero(~found.hits)[0])
    assert found.written[:first] == found.ids[:first]
    assert found.written[first] == found.own_ids[first] != found.ids[first]


TEXTS = st.lists(st.integers(0, 3), max_size=8).map(tuple)


@given(TEXTS, TEXTS)
def test_where_two_texts_part(one, other):
    found = parting(one, other)
    assert (found.first is None) == (one == other)
    assert parting(other, one) == found
    if found.first is not None:
        assert one[: found.first] == other[: found.first]
        assert one[found.first : found.first + 1] != other[found.first : found.first + 1]
        rests = one[found.first :], other[found.first :]
        assert found.tail <= min(map(len, rests))
        ends = [rest[len(rest) - found.tail :] for rest in rests]
        assert ends[0] == ends[1]
        longer = [rest[len(rest) - found.tail - 1 :] for rest in rests if len(rest) > found.tail]
        assert len(longer) < 2 or longer[0][:1] != longer[1][:1]


@given(TEXTS, TEXTS, TEXTS)
def test_what_two_texts_begin_and_end_with_is_found(head, one, tail):
    found = parting((*head, 8, *one, *tail), (*head, 9, *tail))
    assert found.first == len(head)
    assert found.tail >= len(tail)


# A decoder alone


def test_a_decoder_alone_judges_what_follows_its_prompt(decoder):
    found, prompt = score(decoder, "ba lo", "mi ta"), decoder.run("ba lo").src_ids
    assert found.before == tuple(decoder.src_tokenizer.piece(i) for i in prompt)
    losses, _ = by_torch(decoder, [], [*prompt, *found.ids[:-1]], found.ids)
    np.testing.assert_allclose(found.losses, losses, atol=1e-5)
    assert decoder.config.eos_id not in found.ids
    assert score(decoder, "ba lo", "mi ta", with_end=True).ids == (*found.ids, decoder.config.eos_id)


def test_without_a_reference_it_judges_the_text_itself(decoder):
    found, ids = score(decoder, "ba lo mi ta"), decoder.run("ba lo mi ta").src_ids
    assert (found.ids, found.written, found.parting) == (ids[1:], None, None)  # behind the start piece
    losses, _ = by_torch(decoder, [], ids[:-1], ids[1:])
    np.testing.assert_allclose(found.losses, losses, atol=1e-5)


def test_without_a_start_piece_the_first_piece_is_not_judged(tmp_path):
    found = alone("decoder", tmp_path, prepend_source_bos=False)
    ids = found.run("ba lo mi").src_ids
    assert score(found, "ba lo mi").ids == ids[1:]
    with pytest.raises(QueryError, match="This text is a single piece"):
        score(found, "ba")


# What is refused, in one sentence


def refused(*arguments, **named):
    with pytest.raises(QueryError) as error:
        score(*arguments, **named)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250
    return str(error.value)


def test_bad_references_are_refused_in_a_sentence(checkpoint, encoder):
    size = checkpoint.config.tgt_vocab_size
    assert refused(checkpoint, SOURCE) == f"There is no reference. Give the correct output for {checkpoint.name}."
    assert "is empty" in refused(checkpoint, SOURCE, "  ")
    assert "is empty" in refused(checkpoint, SOURCE, [checkpoint.config.eos_id])
    assert f"ids go from 0 to {size - 1}" in refused(checkpoint, SOURCE, [5, size])
    assert "contains the id" in refused(checkpoint, SOURCE, [5, True])
    assert "padding" in refused(checkpoint, SOURCE, [5, checkpoint.config.pad_id])
    assert "room for" in refused(checkpoint, SOURCE, TARGETS[3] * 40)
    assert "the limit is 4,000" in refused(checkpoint, SOURCE, "a" * 4_001)
    assert "encoder alone" in refused(encoder, SOURCE)
    assert "source is empty" in refused(checkpoint, " ", REFERENCE)
    assert "encoder alone" in refused(encoder, SOURCE, REFERENCE)


def test_the_longest_reference_fits_and_one_more_piece_does_not(checkpoint):
    room = checkpoint.config.max_len - 1  # beside the start piece; the end mark is not read
    assert len(score(checkpoint, SOURCE, [5] * room)) == room + 1
    assert f"room for only {room} after" in refused(checkpoint, SOURCE, [5] * (room + 1))


def test_unknown_pieces_are_noted(checkpoint):
    found = score(checkpoint, SOURCE, "the 日 fox")
    assert any("unknown piece" in note for note in found.notes)
    assert not score(checkpoint, SOURCE, REFERENCE).notes


def test_a_score_is_frozen_and_has_a_table(checkpoint):
    found = score(checkpoint, SOURCE, REFERENCE)
    with pytest.raises(FrozenInstanceError):
        found.ids = ()
    with pytest.raises(ValueError, match="read-only"):
        found.losses[0] = 0
    table = found.to_frame()
    assert table["piece"].tolist() == list(found.pieces)
    assert table["loss"].tolist() == found.losses.tolist()
    assert len(found) == len(table)


def test_what_is_not_finite_is_said(checkpoint_folder):
    broken = load(checkpoint_folder)
    broken.model.decoder.layers[0].ffn.down_proj.weight.data[0, 0] = np.nan
    with pytest.raises(NotFiniteError, match=r"decoder\.0\.ffn"):
        score(broken, SOURCE, REFERENCE)
