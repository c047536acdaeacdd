"""A changed model does the same in a run, a batch, a file of sentences, a replay and in teacher forcing."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from glassformer.extensions.sentences.line_runs import run_lines
from tests.transformer.featured import featured
from transformer import Beam, run, run_batch
from transformer.errors import QueryError
from transformer.runs.interventions import parse
from transformer.runs.running import each_layer, replay, run_together
from transformer.runs.sentence_files import SentenceLine
from transformer.runs.teacher_forcing import judge

TEXTS = ["ba lo mi ta", "mi", "ta ku ne so ri", "lo mi ba ta"]
CHANGES = [
    "mute-cross.2.all.all.1.1_temper-decoder.1.all.0_pads-2",
    "mean-decoder.1.2_uniform-cross.2.all_noffn-encoder.2_insist-2.11",
    "mean-encoder.2.3_uniform-encoder.1.2_blank-1_skip-decoder.2.cross",
    "copy-decoder.2.all.lo~20mi~20ba~20ta_pads-2_force-cross.1.all.3.2",
]


@pytest.fixture(params=CHANGES)
def changes(request):
    return parse(request.param)


def test_a_replay_and_maps_that_were_let_go_are_those_of_the_run(both, changes):
    query = both.query(TEXTS[0], interventions=changes, max_new=7)
    kept = run(both, query)
    (bare,) = run_together(both, [query], most_map_bytes=0)
    assert not bare.keeps_maps
    assert np.array_equal(bare.log_probs, kept.log_probs)
    again = replay(both, kept, ["*.weights", "logits"])
    logits = again["logits"] - again["logits"].max(-1, keepdims=True)
    np.testing.assert_allclose(logits - np.log(np.exp(logits).sum(-1, keepdims=True)), kept.log_probs, atol=1e-5)
    for one in both.model.anatomy.attentions:
        for layer, maps in enumerate(each_layer(both, bare, one.kind, lambda maps, _: maps.copy())):
            assert np.array_equal(maps, kept.maps(one.kind)[layer])
            np.testing.assert_allclose(again[one.site(layer, "weights")], kept.maps(one.kind)[layer], atol=1e-6)


@pytest.mark.parametrize("decoding", [None, Beam(size=2)], ids=str)
def test_a_batch_gives_each_sentence_what_it_gets_alone(both, changes, decoding):
    more = {} if decoding is None else {"decoding": decoding}
    queries = [both.query(text, interventions=changes, max_new=7, **more) for text in TEXTS]
    for query, found in zip(queries, run_batch(both, queries), strict=True):
        alone = run(both, query)
        assert found.tgt_ids == alone.tgt_ids
        np.testing.assert_allclose(found.log_probs, alone.log_probs, atol=1e-4)
        n, m = alone.cross.shape[-2:]
        np.testing.assert_allclose(found.cross[..., :n, :m], alone.cross, atol=1e-5)


def test_a_batch_shares_its_changes(both):
    with pytest.raises(QueryError, match="same interventions"):
        run_batch(both, [both.query("mi"), both.query("mi", interventions=parse("zero-cross.1.1"))])


@pytest.mark.parametrize(("kind", "last", "width"), [("encoder", 2, 4), ("cross", 1, 6)])
def test_each_stack_has_its_own_heads(tmp_path, kind, last, width):
    """A head that is silent is as a head whose columns of W_O are 0; one that only the other stack has is refused."""
    checkpoint = featured("own decoder", tmp_path)
    silent = run(checkpoint, checkpoint.query(TEXTS[0], interventions=parse(f"zero-{kind}.1.{last + 1}")))
    by_hand = deepcopy(checkpoint.model)
    by_hand.attentions(kind)[0].out_proj.weight[:, last * width : (last + 1) * width] = 0
    expected = run(replace(checkpoint, model=by_hand), checkpoint.query(TEXTS[0]))
    assert silent.tgt_ids == expected.tgt_ids
    assert np.allclose(silent.log_probs, expected.log_probs, atol=1e-5)
    assert silent.weights[kind].shape[1] == last + 1
    with pytest.raises(QueryError, match=f"names head {last + 2}, but this model has only heads 1 to {last + 1}"):
        checkpoint.run(checkpoint.query(TEXTS[0], interventions=parse(f"zero-{kind}.1.{last + 2}")))


def test_a_file_of_sentences_is_changed_line_by_line(both):
    """Each line has what it has alone; one that has not the place that is named says so, at no cost to others."""
    changes = parse("mute-cross.1.all.all.4.1_insist-2.9")
    how = both.query("any", interventions=changes, max_new=5)
    lines = [SentenceLine(number, text) for number, text in enumerate(TEXTS, 1)]
    found = {one.line.number: one for one in run_lines(both, lines, how)}
    assert "names token 4 of the source, but this source has only tokens 1 to 2" in str(found[2].problem)
    for number in (1, 3, 4):
        alone = run(both, both.query(TEXTS[number - 1], interventions=changes, max_new=5))
        assert (found[number].output, found[number].log_prob) == (alone.output_text, alone.log_prob)
        assert found[number].problem is None


@pytest.mark.parametrize("text", ["causal-peek", "twice-all.0", "heads-3", "swap-1.2_zero-cross.1.1", "shuffle-3"])
def test_in_teacher_forcing_a_place_sees_what_the_step_sees_that_writes_it(both, text):
    plain, query = both.query(TEXTS[0]), both.query(TEXTS[0], interventions=parse(text))
    found = judge(both, query, "the fox")
    trace = run(both, replace(query, forced=found.ids))
    assert (np.abs(found.losses - judge(both, plain, "the fox").losses).max() > 1e-3) == (text != "heads-3")
    np.testing.assert_allclose(-found.losses, trace.log_probs[range(len(found)), list(found.ids)], atol=1e-5)
    assert found.own_ids.tolist() == [int(trace.scores_at(step).argmax()) for step in range(trace.n_steps)]


def test_in_teacher_forcing_a_piece_that_is_insisted_on_is_what_the_model_would_write(both):
    insisting = judge(both, both.query(TEXTS[0], interventions=parse("insist-3.9")), "the fox")
    plain = judge(both, both.query(TEXTS[0]), "the fox")
    assert insisting.own_ids[2] == 9 != plain.own_ids[2]
    np.testing.assert_array_equal(insisting.losses, plain.losses)
