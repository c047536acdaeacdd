"""A piece that is insisted on is written at its step by every way of decoding, and all else is chosen freely."""

import numpy as np
import pytest
import torch

from glassformer.extensions.what_if.interventions import Insist, Mute
from tests.extensions.what_if.interventions.reference import SOURCE, Reference, made
from transformer import Beam, Greedy, Sampling, run, run_batch
from transformer.runs.interventions import ChangeError
from transformer.runs.source import read_source

DECODINGS = [Greedy(), Beam(size=3), Sampling(seed=4), Sampling(seed=4, top_k=3, top_p=0.5)]


def freely(checkpoint, insisted, n):
    """Greedy decoding by the reference, with these pieces by hand at these steps."""
    src, found = read_source(checkpoint, checkpoint.query(SOURCE)).ids, []
    reference = Reference(checkpoint)
    for step in range(n):
        row = reference.log_probs(src, found)[-1]
        row[0] = -torch.inf  # padding is never written
        found.append(insisted.get(step, int(row.argmax())))
        if found[-1] == checkpoint.config.eos_id:
            break
    return tuple(found)


@pytest.mark.parametrize("insisted", [{0: 9}, {2: 11}, {1: 20, 4: 5}, {3: 3}])
def test_the_others_are_chosen_as_ever(checkpoint, insisted):
    changes = tuple(Insist(step, piece) for step, piece in insisted.items())
    trace = run(checkpoint, checkpoint.query(SOURCE, interventions=changes, max_new=6))
    assert trace.tgt_ids == freely(checkpoint, insisted, 6)
    forced = [trace.step(step).forced for step in range(trace.n_steps)]
    assert forced == [step in insisted for step in range(trace.n_steps)]


@pytest.mark.parametrize("decoding", DECODINGS, ids=str)
def test_every_way_of_decoding_writes_it(checkpoint, decoding):
    query = checkpoint.query(SOURCE, decoding=decoding, max_new=7, interventions=(Insist(2, 11), Insist(4, 5)))
    trace = run(checkpoint, query)
    assert (trace.tgt_ids[2], trace.tgt_ids[4]) == (11, 5)
    assert trace.step(2).forced
    assert not trace.step(3).forced
    for hypothesis in trace.hypotheses:
        assert (hypothesis.ids[2], hypothesis.ids[4]) == (11, 5)
    # what the model itself found probable stays what it is; what the choice went by has nothing else
    scores = trace.scores_at(2)
    assert np.isfinite(scores).sum() == 1
    assert scores[11] == trace.log_probs[2][11]
    assert np.isfinite(trace.log_probs[2]).all()


def test_it_goes_with_a_forced_beginning_that_agrees(checkpoint):
    agreeing = checkpoint.query(SOURCE, forced=(9, 5), interventions=(Insist(1, 5), Insist(3, 8)), max_new=6)
    trace = run(checkpoint, agreeing)
    assert trace.tgt_ids[:2] == (9, 5)
    assert trace.tgt_ids[3] == 8
    contrary = checkpoint.query(SOURCE, forced=(9, 5), interventions=(Insist(1, 6),), max_new=6)
    with pytest.raises(ChangeError, match=r"insist-2\.6 contradicts the forced beginning .* has piece 5 at"):
        run(checkpoint, contrary)


def test_a_batch_writes_it_in_every_row(checkpoint):
    changes = (Insist(1, 11), Mute("decoder", 0, key=1))
    queries = [checkpoint.query(text, interventions=changes, max_new=5, decoding=Beam(size=2)) for text in
               (SOURCE, "mi", "ta ku")]  # fmt: skip
    for query, found in zip(queries, run_batch(checkpoint, queries), strict=True):
        assert found.tgt_ids == run(checkpoint, query).tgt_ids
        assert found.tgt_ids[1] == 11


def test_an_output_that_ends_before_stays(checkpoint):
    changes = (Insist(1, checkpoint.config.eos_id), Insist(3, 8))
    trace = run(checkpoint, checkpoint.query(SOURCE, interventions=changes, max_new=6))
    assert trace.n_steps == 2
    assert trace.stop_reason == "end of sentence"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Insist(5, 9), r"insist-6\.9 names step 6, but this run writes at most 5"),
        (Insist(0, 9_000), "the output's pieces have the ids 0 to"),
        (Insist(0, 0), "is never written: it is padding"),
    ],
)
def test_what_cannot_be_written_is_refused(checkpoint, change, said):
    with pytest.raises(ChangeError, match=said):
        run(checkpoint, checkpoint.query(SOURCE, interventions=(change,), max_new=5))


def test_rules_of_the_config_give_way(tmp_path):
    """A closed piece, an end that would come too early and a forced beginning: the change is nearer to the reader."""
    from dataclasses import replace

    made_one = made(tmp_path)
    config = replace(made_one.config, forced_ids=(7, 8), min_new=4, no_repeat_ngram=1, forced_end_id=3)
    model = made_one.model
    model.config = config
    strict = replace(made_one, config=config, model=model)
    plain = run(strict, strict.query(SOURCE, max_new=5))
    assert plain.tgt_ids[:2] == (7, 8)
    assert plain.tgt_ids[4] == 3
    changes = (Insist(1, 7), Insist(2, 7), Insist(4, 9))
    for decoding in DECODINGS:
        trace = run(strict, strict.query(SOURCE, max_new=5, interventions=changes, decoding=decoding))
        assert (trace.tgt_ids[0], *trace.tgt_ids[1:3], trace.tgt_ids[4]) == (7, 7, 7, 9)
    ended = run(strict, strict.query(SOURCE, max_new=5, interventions=(Insist(2, 3),)))
    assert ended.n_steps == 3
