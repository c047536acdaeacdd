"""A piece that is insisted on is written at its step by every way of decoding, and all else is chosen freely."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from glassformer.extensions.what_if.interventions import Insist
from transformer import Beam, Greedy, Sampling, run
from transformer.runs.interventions import ChangeError

SOURCE = "ba lo mi ta"
DECODINGS = [Greedy(), Beam(size=3), Sampling(seed=4), Sampling(seed=4, top_k=3, top_p=0.5)]


@pytest.mark.parametrize("insisted", [{0: 9}, {1: 20, 4: 5}, {3: 3}])
def test_the_others_are_chosen_as_ever(checkpoint, insisted):
    changes = tuple(Insist(step, piece) for step, piece in insisted.items())
    trace = run(checkpoint, checkpoint.query(SOURCE, interventions=changes, max_new=6))
    plain = run(checkpoint, checkpoint.query(SOURCE, forced=trace.tgt_ids, max_new=6))
    np.testing.assert_allclose(trace.log_probs, plain.log_probs, atol=1e-5)
    free = plain.log_probs[:, 1:].argmax(-1) + 1  # padding is never written
    assert trace.tgt_ids == tuple(insisted.get(step, int(piece)) for step, piece in enumerate(free))
    assert [trace.step(step).forced for step in range(trace.n_steps)] == [step in insisted for step in range(len(free))]
    assert trace.n_steps == (4 if insisted == {3: 3} else 6)  # the end that is insisted on ends it


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
def test_every_way_of_decoding_writes_it(checkpoint, decoding):
    query = checkpoint.query(SOURCE, decoding=decoding, max_new=7, interventions=(Insist(2, 11), Insist(4, 5)))
    trace = run(checkpoint, query)
    for ids in (trace.tgt_ids, *(hypothesis.ids for hypothesis in trace.hypotheses)):
        assert (ids[2], ids[4]) == (11, 5)
    # what the model itself found probable stays what it is; what the choice went by has nothing else
    scores = trace.scores_at(2)
    assert np.isfinite(scores).sum() == 1
    assert scores[11] == trace.log_probs[2][11]
    assert np.isfinite(trace.log_probs[2]).all()


def test_it_goes_with_a_forced_beginning_that_agrees(checkpoint):
    agreeing = checkpoint.query(SOURCE, forced=(9, 5), interventions=(Insist(1, 5), Insist(3, 8)), max_new=6)
    trace = run(checkpoint, agreeing)
    assert (trace.tgt_ids[:2], trace.tgt_ids[3]) == ((9, 5), 8)
    contrary = checkpoint.query(SOURCE, forced=(9, 5), interventions=(Insist(1, 6),), max_new=6)
    with pytest.raises(ChangeError, match=r"insist-2\.6 contradicts the forced beginning .* has token 5 at"):
        run(checkpoint, contrary)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Insist(5, 9), r"insist-6\.9 names step 6, but this run writes at most 5"),
        (Insist(0, 9_000), "its vocabulary has the ids 0 to"),
        (Insist(0, 0), "is never written: it is padding"),
    ],
)
def test_what_cannot_be_written_is_refused(checkpoint, change, said):
    with pytest.raises(ChangeError, match=said):
        run(checkpoint, checkpoint.query(SOURCE, interventions=(change,), max_new=5))


def test_rules_of_the_config_give_way(both):
    """A closed piece, an end that would come too early and a forced beginning: the change is nearer to the reader."""
    config = replace(both.config, forced_ids=(7, 8), min_new=4, no_repeat_ngram=1, forced_end_id=3)
    model = deepcopy(both.model)
    model.config = config
    strict = replace(both, config=config, model=model)
    plain = run(strict, strict.query(SOURCE, max_new=5))
    assert (plain.tgt_ids[:2], plain.tgt_ids[4]) == ((7, 8), 3)
    changes = (Insist(1, 7), Insist(2, 7), Insist(4, 9))
    for decoding in DECODINGS:
        trace = run(strict, strict.query(SOURCE, max_new=5, interventions=changes, decoding=decoding))
        assert (trace.tgt_ids[0], *trace.tgt_ids[1:3], trace.tgt_ids[4]) == (7, 7, 7, 9)
    ended = run(strict, strict.query(SOURCE, max_new=5, interventions=(Insist(2, 3),)))
    assert ended.n_steps == 3
