"""Teacher forcing of a changed model: a place sees what the step sees that writes it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.transformer.conftest import checkpoint as checkpoint
from tests.transformer.runs.test_teacher_forcing import SOURCE
from tests.transformer.runs.test_teacher_forcing import decoder as decoder
from transformer import run
from transformer.runs.interventions import parse
from transformer.runs.teacher_forcing import judge

CHANGES = [
    "causal-off", "causal-peek", "causal-inverted", "twice-all.0", "padding-all.off", "scale-all.off.1", "heads-2",
    "noresidual-all.all.all", "swap-1.2_zero-cross.1.1", "unplaced-decoder", "shuffle-3_noffn-decoder.1",
]  # fmt: skip


@pytest.mark.parametrize("text", CHANGES)
def test_whatever_is_changed_a_place_sees_what_the_step_sees_that_writes_it(checkpoint, text):
    query = checkpoint.query(SOURCE, interventions=parse(text))
    found = judge(checkpoint, query, "the fox")
    trace = run(checkpoint, replace(query, forced=found.ids))
    assert np.abs(found.losses - judge(checkpoint, checkpoint.query(SOURCE), "the fox").losses).max() > 1e-3 or (
        text == "padding-all.off"  # there is no padding in one sentence
    )
    np.testing.assert_allclose(-found.losses, trace.log_probs[range(len(found)), list(found.ids)], atol=1e-5)
    own = [int(trace.scores_at(step).argmax()) for step in range(trace.n_steps)]
    assert found.own_ids.tolist() == own


def test_a_piece_that_is_insisted_on_is_what_the_model_would_write_there(checkpoint):
    insisting = judge(checkpoint, checkpoint.query(SOURCE, interventions=parse("insist-3.9")), "the fox")
    plain = judge(checkpoint, checkpoint.query(SOURCE), "the fox")
    assert insisting.own_ids[2] == 9 != plain.own_ids[2]
    np.testing.assert_array_equal(insisting.losses, plain.losses)
