"""The losses of a reference are those of a run forced to write it, and those of torch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import SOURCES, TARGETS
from tests.transformer.made_up_changes import SilentHead
from tests.transformer.one_stack import alone
from transformer import run, score
from transformer.errors import QueryError
from transformer.model.taps import Replacer, tap_of
from transformer.runs.teacher_forcing import judge, parting

SOURCE, REFERENCE = SOURCES[0], TARGETS[3]
HEADS = (SilentHead("decoder", 0, 1), SilentHead("cross", 1, 0))


def by_torch(checkpoint, source_ids, read_ids, wanted):
    """Losses by torch's own cross-entropy over the logits of one plain call."""
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([source_ids]), torch.tensor([read_ids]))[0]
    rows = logits[len(read_ids) - len(wanted) :].double()
    return F.cross_entropy(rows, torch.tensor(wanted), reduction="none").numpy(), rows


def test_losses_and_ranks_are_torchs_own_in_whatever_pieces_of_work(checkpoint, monkeypatch):
    found, config = score(checkpoint, SOURCE, REFERENCE), checkpoint.config
    source = checkpoint.run(SOURCE).src_ids
    losses, logits = by_torch(checkpoint, source, [config.decoder_start_id, *found.ids[:-1]], found.ids)
    np.testing.assert_allclose(found.losses, losses, atol=1e-5)
    order = logits.argsort(dim=-1, descending=True, stable=True)
    assert found.best_ids.tolist() == order[:, : found.best_ids.shape[1]].tolist()
    assert found.ranks.tolist() == [row.tolist().index(i) + 1 for row, i in zip(order, found.ids, strict=True)]
    assert found.ids[-1] == config.eos_id
    assert found.perplexity == pytest.approx(np.exp(losses.mean()), rel=1e-5)
    means = np.cumsum(losses) / np.arange(1, len(losses) + 1)
    np.testing.assert_allclose(found.running_perplexity, np.exp(means), rtol=1e-5)
    assert found.to_frame()["loss"].tolist() == found.losses.tolist()
    with pytest.raises(ValueError, match="read-only"):
        found.losses[0] = 0
    # A tap that may mix tokens is given each beginning by itself.
    mixing = tap_of(Replacer({"decoder.0.input": torch.clone}))
    step_by_step = judge(checkpoint, checkpoint.query(SOURCE), REFERENCE, tap=mixing)
    assert (found.causal, step_by_step.causal) == (True, False)
    for module in ("distribution", "teacher_forcing"):
        monkeypatch.setattr(f"transformer.runs.{module}.ROWS", 3)
    for other in (step_by_step, score(checkpoint, SOURCE, REFERENCE)):
        np.testing.assert_allclose(found.losses, other.losses, atol=1e-5)
        assert (found.ranks.tolist(), found.own_ids.tolist()) == (other.ranks.tolist(), other.own_ids.tolist())


@pytest.mark.parametrize("changes", [(), HEADS])
def test_losses_are_those_of_a_run_that_is_forced_to_write_the_reference_also_of_a_changed_model(checkpoint, changes):
    query = checkpoint.query(SOURCE, interventions=changes)
    found, plain = score(checkpoint, query, REFERENCE), score(checkpoint, SOURCE, REFERENCE)
    trace = run(checkpoint, replace(query, forced=found.ids))
    np.testing.assert_allclose(-found.losses, trace.log_probs[range(len(found)), list(found.ids)], atol=1e-5)
    assert found.ranks.tolist() == [trace.rank_of(i, step=t) for t, i in enumerate(found.ids)]
    assert found.reads == tuple(label.reads for label in trace.row_labels())
    assert (np.abs(found.losses - plain.losses).max() > 1e-3) == bool(changes)
    assert found.written == run(checkpoint, query).tgt_ids
    first = found.first_divergence
    assert first == int(np.flatnonzero(~found.hits)[0])
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


def test_a_decoder_alone_judges_what_follows_its_prompt_or_without_a_reference_the_text_itself(decoder, tmp_path):
    found, prompt = score(decoder, "ba lo", "mi ta"), decoder.run("ba lo").src_ids
    assert found.before == tuple(decoder.src_tokenizer.piece(i) for i in prompt)
    losses, _ = by_torch(decoder, [], [*prompt, *found.ids[:-1]], found.ids)
    np.testing.assert_allclose(found.losses, losses, atol=1e-5)
    assert decoder.config.eos_id not in found.ids
    assert score(decoder, "ba lo", "mi ta", with_end=True).ids == (*found.ids, decoder.config.eos_id)
    found, ids = score(decoder, "ba lo mi ta"), decoder.run("ba lo mi ta").src_ids
    assert (found.ids, found.written, found.parting) == (ids[1:], None, None)  # behind the start piece
    np.testing.assert_allclose(found.losses, by_torch(decoder, [], ids[:-1], ids[1:])[0], atol=1e-5)
    without = alone("decoder", tmp_path, prepend_source_bos=False)  # then the first piece is not judged
    assert score(without, "ba lo mi").ids == without.run("ba lo mi").src_ids[1:]
    assert "This text is a single token" in refused(without, "ba")


def refused(*arguments, **named):
    with pytest.raises(QueryError) as error:
        score(*arguments, **named)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250
    return str(error.value)


def test_bad_references_are_refused_in_a_sentence(checkpoint, encoder):
    config = checkpoint.config
    assert refused(checkpoint, SOURCE) == f"There is no reference. Give the correct output for {checkpoint.name}."
    room = config.max_len - 1  # beside the start piece; the end mark is not read
    assert len(score(checkpoint, SOURCE, [5] * room)) == room + 1
    for reference, said in (
        ("  ", "is empty"),
        ([config.eos_id], "is empty"),
        ([5, config.tgt_vocab_size], f"ids go from 0 to {config.tgt_vocab_size - 1}"),
        ([5, True], "contains the id"),
        ([5, config.pad_id], "padding"),
        ("a" * 4_001, "the limit is 4,000"),
        ([5] * (room + 1), f"room for only {room} after"),
    ):
        assert said in refused(checkpoint, SOURCE, reference)
    assert "source is empty" in refused(checkpoint, " ", REFERENCE)
    assert "encoder alone" in refused(encoder, SOURCE, REFERENCE)
