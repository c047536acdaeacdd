"""A whole output read at once by a changed model: rows that see all of it, and what is not finite."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.transformer.analysis.test_at_once import plain_losses
from tests.transformer.analysis.test_at_once import tiny as tiny
from transformer.analysis.teacher_forced_pass import read_at_once
from transformer.errors import NotFiniteError
from transformer.runs.interventions import parse


def test_without_the_causal_mask_each_row_sees_the_whole_output(tiny):
    trace = tiny.run("ba lo mi")
    query = replace(trace.query, interventions=parse("causal-off"))
    read = read_at_once(tiny, query, trace.tgt_ids, ["decoder.*.self_attn.mask"])
    n = len(trace.read_ids)
    assert read.losses == pytest.approx(plain_losses(tiny, trace, torch.ones(1, 1, n, n, dtype=torch.bool)), abs=1e-5)
    assert read.values["decoder.0.self_attn.mask"].all()
    assert np.abs(read.losses - plain_losses(tiny, trace)).max() > 1e-4


def test_what_is_not_finite_is_refused_or_given_as_it_is(tiny):
    trace = tiny.run("ba lo mi")
    query = replace(trace.query, interventions=parse("causal-hidden_unguarded-decoder"))
    with pytest.raises(NotFiniteError, match=r"decoder\.0\.self_attn\.weights"):
        read_at_once(tiny, query, trace.tgt_ids)
    read = read_at_once(tiny, query, trace.tgt_ids, ["decoder.0.self_attn.weights"], finite=False)
    assert np.isnan(read.values["decoder.0.self_attn.weights"][:, 0]).all()
    assert np.isfinite(read.values["decoder.0.self_attn.weights"][:, 1:]).all()
    assert np.isnan(read.losses).all()
