"""Two outputs are aligned with the fewest differences, and read by another model as if it had to write them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.what_if.two_runs import (
    aligned,
    crossed,
    first_difference,
    kl_divergences,
    own_log_probs,
    read_output,
)
from tests.transformer.analysis.test_teacher_forced_pass import tiny as tiny
from tests.transformer.one_stack import alone
from transformer.errors import QueryError
from transformer.runs.apply_interventions import tap_for
from transformer.runs.interventions import parse
from transformer.runs.query import Sampling
from transformer.runs.running import run

OUTPUTS = st.lists(st.sampled_from("abc"), max_size=9)
LOGITS = st.integers(0, 2**32 - 1)


@cache
def edits(left, right):
    """The Levenshtein distance, by its recursive definition."""
    if not left or not right:
        return len(left) + len(right)
    if left[-1] == right[-1]:
        return edits(left[:-1], right[:-1])
    return 1 + min(edits(left[:-1], right), edits(left, right[:-1]), edits(left[:-1], right[:-1]))


@given(OUTPUTS, OUTPUTS)
def test_outputs_are_aligned_in_order_with_the_fewest_differences_after_what_both_begin_with(left, right):
    first, rows = first_difference(left, right), aligned(left, right)
    assert [row.left for row in rows if row.left is not None] == list(range(len(left)))
    assert [row.right for row in rows if row.right is not None] == list(range(len(right)))
    for row in rows:
        assert row.left is not None or row.right is not None
        assert row.same == (row.left is not None and row.right is not None and left[row.left] == right[row.right])
    assert sum(not row.same for row in rows) == edits(tuple(left), tuple(right))
    assert (first is None) == (left == right)
    if first is not None:
        assert left[:first] == right[:first]
        assert left[first : first + 1] != right[first : first + 1]
        assert [(row.left, row.right) for row in rows[:first]] == [(place, place) for place in range(first)]


@given(LOGITS)
def test_a_divergence_is_what_its_definition_says(seed):
    generator = np.random.default_rng(seed)
    p, q = (one / one.sum(-1, keepdims=True) for one in generator.uniform(0.01, 1, (2, 4, 7)))
    found = kl_divergences(np.log(p), np.log(q))
    expected = [sum(p[t, i] * np.log(p[t, i] / q[t, i]) for i in range(7)) for t in range(4)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found >= 0).all()
    assert kl_divergences(np.log(p), np.log(p)).tolist() == [0.0] * 4
    with np.errstate(divide="ignore"):
        sure, open_ = np.log(np.array([[1.0, 0.0]])), np.log(np.array([[0.5, 0.5]]))
    assert kl_divergences(sure, open_) == pytest.approx([np.log(2)])
    assert kl_divergences(open_, sure) == [np.inf]


def test_a_model_reads_its_own_output_as_it_wrote_it(tiny):
    trace = run(tiny, replace(tiny.query("ba lo mi ta"), decoding=Sampling(temperature=3.0, seed=1), max_new=9))
    again = read_output(tiny, trace.query, trace.tgt_ids)
    np.testing.assert_allclose(again.log_probs, trace.log_probs, atol=1e-5)
    for kind in trace.kinds:
        np.testing.assert_allclose(again.maps(kind), trace.maps(kind), atol=1e-5)
    assert own_log_probs(trace).sum() == pytest.approx(trace.log_prob, abs=1e-4)
    assert again.row_labels() == trace.row_labels()


@pytest.mark.parametrize("text", ["zero-cross.1.2_zero-encoder.2.3", "causal-off"])
def test_reading_an_output_is_a_run_that_is_forced_to_write_it(tiny, text):
    """Step by step, if a change mixes tokens."""
    control = run(tiny, replace(tiny.query("ba lo mi ta"), max_new=7))
    query = replace(control.query, source="su mi ke", interventions=parse(text))
    assert tap_for(query.interventions, tiny).causal == (text != "causal-off")
    read = read_output(tiny, query, control.tgt_ids)
    forced = run(tiny, replace(query, forced=control.tgt_ids, max_new=len(control.tgt_ids)))
    assert read.query == forced.query
    assert (read.tgt_ids, read.texts, read.stop_reason) == (forced.tgt_ids, forced.texts, forced.stop_reason)
    np.testing.assert_allclose(read.log_probs, forced.log_probs, atol=1e-5)
    for kind in read.kinds:
        np.testing.assert_allclose(read.maps(kind), forced.maps(kind), atol=1e-5)


def test_an_output_under_both_models(tiny):
    control = run(tiny, replace(tiny.query("ba lo mi ta"), max_new=7))
    changed = replace(control.query, interventions=parse("zero-cross.2.1"))
    both = crossed(control, read := read_output(tiny, changed, control.tgt_ids))
    assert both.own.sum() == pytest.approx(control.log_prob, abs=1e-4)
    assert both.other.sum() == pytest.approx(read.log_prob, abs=1e-4)
    np.testing.assert_allclose(both.divergences, kl_divergences(control.log_probs, read.log_probs))
    assert both.divergences.max() > 0
    assert crossed(control, control).divergences.tolist() == [0.0] * control.n_steps
    other = read_output(tiny, changed, control.tgt_ids[:2])
    with pytest.raises(ValueError, match="of different outputs"):
        crossed(control, other)


def test_a_decoder_alone_reads_an_output_behind_its_own_prompt(tmp_path):
    model = alone("decoder", tmp_path)
    trace = run(model, replace(model.query("ba lo mi"), max_new=5))
    read = read_output(model, replace(trace.query, source="ta ba"), trace.tgt_ids)
    assert read.first_row == len(read.src_ids) - 1
    np.testing.assert_allclose(read.log_probs, run(model, read.query).log_probs, atol=1e-5)


def test_what_cannot_be_read_is_refused(tiny, tmp_path):
    query = tiny.query("ba lo")
    with pytest.raises(QueryError, match="no output to read"):
        read_output(tiny, query, ())
    with pytest.raises(QueryError, match="outside the vocabulary"):
        read_output(tiny, query, (9_999,))
    encoder = alone("encoder", tmp_path)
    with pytest.raises(QueryError, match="encoder-only model and generates no output"):
        read_output(encoder, encoder.query("ba lo"), (5,))
