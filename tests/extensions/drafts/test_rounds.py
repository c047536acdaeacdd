"""Drafts and checks change how many passes an output takes, and never the output."""

import pytest
import torch

from glassformer.extensions.drafts import rounds
from glassformer.extensions.drafts.rounds import How, draft_and_check, layers_there, timing, with_few_bits
from glassformer.extensions.what_if.interventions import RoundWeights
from tests.transformer.featured import featured
from tests.transformer.one_stack import alone
from tests.transformer.runs.test_wrapping import changed
from transformer import Beam, Sampling, ZeroHead, load, run
from transformer.errors import QueryError
from transformer.runs.array_records import whole
from transformer.runs.interventions import parse

TEXTS = ("ba lo mi ta", "mi mi")
HOWS = [
    How("bits", 8), How("bits", 2, ahead=2), How("layers", 1), How("layers", 1, ahead=3),
    How("source"), How("source", ahead=1), How("jacobi"), How("jacobi", ahead=3),
]  # fmt: skip
CASES = [  # rules of decoding, and what a run may ask for
    ({"repetition_penalty": 1.7}, {}), ({"no_repeat_ngram": 2}, {}), ({"min_new": 6}, {}),
    ({"forced_ids": (9, 7)}, {}), ({"forced_end_id": 3}, {}), ({"banned_ids": (5, 8, 12)}, {}),
    ({}, {"forced": (7, 5)}), ({}, {"forced": (7, 3)}), ({}, {"interventions": (ZeroHead("decoder", 0, 0),)}),
    ({}, {"interventions": parse("insist-3.7")}), ({}, {"max_new": 1}),
]  # fmt: skip
DRAFTS = [How("bits", 2), How("layers", 1), How("source"), How("jacobi")]


def in_turn(rows):
    """Each row with the draft that is next in turn whenever tests run, and with the others in a deep run."""
    return [
        pytest.param(how, row, marks=() if n % len(DRAFTS) == place else pytest.mark.deep)
        for n, row in enumerate(rows)
        for place, how in enumerate(DRAFTS)
    ]


@pytest.fixture(scope="module", params=["pair", "decoder"])
def model(request, checkpoint_folder, tmp_path_factory):
    return load(checkpoint_folder) if request.param == "pair" else alone("decoder", tmp_path_factory.mktemp("alone"))


def check_rounds(found):
    """What each round says of itself must fit its neighbours and the output."""
    place = found.n_forced
    for one in found.rounds:
        assert one.start == place
        written = found.ids[place : place + len(one.written)]
        assert one.written == written
        for i, there in enumerate(one.places[: one.accepted]):
            assert there.proposed == there.chosen == written[i]
        if one.added is not None:
            assert one.places[one.accepted].chosen == one.added != one.places[one.accepted].proposed
        place += len(one.written)
    assert place == len(found.ids)


@pytest.mark.parametrize("how", HOWS, ids=str)
def test_whatever_the_draft_the_output_is_that_of_a_run(model, how):
    for text in TEXTS:
        query = model.query(text, max_new=9)
        found = draft_and_check(model, query, how)
        assert found.ids == run(model, query).tgt_ids
        assert found.alone == len(found.ids)
        assert found.passes == len(found.rounds) + sum(one.steps for one in found.rounds)
        assert len(found.rounds) <= len(found.ids)  # each writes at least one piece
        check_rounds(found)


@pytest.mark.parametrize(("how", "case"), in_turn(CASES), ids=str)
def test_rules_of_decoding_forced_pieces_changes_and_short_limits_hold(model, how, case):
    rules, asked = case
    ruled = changed(model, **rules)
    query = ruled.query(TEXTS[0], **{"max_new": 9, **asked})
    found = draft_and_check(ruled, query, how)
    assert found.ids == run(ruled, query).tgt_ids
    assert asked or found.n_forced == len(rules.get("forced_ids", ()))
    check_rounds(found)


def test_the_output_itself_as_a_draft_takes_one_pass_and_a_wrong_one_as_many_as_pieces(model, monkeypatch):
    """Counted in the model, not in what is reported."""
    query = model.query(TEXTS[0], max_new=9)
    own, passes = run(model, query).tgt_ids, []
    wrong, read = tuple(5 if i != 5 else 6 for i in own), rounds._Reader.read
    monkeypatch.setattr(rounds._Reader, "read", lambda *args: passes.append(1) or read(*args))
    for draft, accepted, n_passes in ((own, len(own), 1), (own * 2, len(own), 1), (wrong, 0, len(own))):
        passes.clear()
        monkeypatch.setattr(rounds, "_drafter", lambda *_, draft=draft: lambda ids, last: (draft[len(ids) :], 0))
        found = draft_and_check(model, query, How())
        assert (found.ids, found.passes, len(passes)) == (own, n_passes, n_passes)
        assert sum(one.accepted for one in found.rounds) == accepted


def test_pieces_nearly_equal_are_decided_by_a_step(model, monkeypatch):
    query = model.query(TEXTS[0], max_new=9)
    calls = []
    step = rounds._Task.stepwise
    monkeypatch.setattr(rounds, "choices", lambda *args, **more: [None])
    monkeypatch.setattr(rounds._Task, "stepwise", lambda task, ids: calls.append(ids) or step(task, ids))
    found = draft_and_check(model, query, How("bits", 8))
    assert found.ids == run(model, query).tgt_ids
    assert [len(ids) for ids in calls] == list(range(len(found.ids)))
    assert found.passes == len(found.rounds) + len(found.ids)


def test_a_source_that_the_output_repeats_is_accepted(tmp_path):
    """A pair with one vocabulary that is made to write its own source's pieces."""
    pair = featured("halves", tmp_path)
    ids = pair.src_tokenizer.encode(TEXTS[0]).ids
    changes = parse("_".join(f"insist-{place}.{i}" for place, i in enumerate(ids, start=1)))
    query = pair.query(TEXTS[0], max_new=9, interventions=changes)
    found = draft_and_check(pair, query, How("source"))
    assert found.ids[: len(ids)] == ids
    assert found.rounds[0].accepted >= len(ids)
    slow = draft_and_check(pair, query, How("source", ahead=1))
    assert slow.rounds[0].written == ids[:2]


def test_probabilities_are_those_of_the_run(model):
    query = model.query(TEXTS[0], max_new=9)
    trace = run(model, query)
    for one in draft_and_check(model, query, How("bits", 3)).rounds:
        for i, place in enumerate(one.places[: one.accepted + (one.added is not None)]):
            probs = torch.tensor(trace.log_probs[one.start + i]).exp()
            assert place.chosen_prob == pytest.approx(float(probs[place.chosen]), abs=1e-5)
            if place.proposed is not None:
                assert place.proposed_prob == pytest.approx(float(probs[place.proposed]), abs=1e-5)


def test_what_cannot_be_drafted_is_refused(model, tmp_path):
    encoder, n = alone("encoder", tmp_path), len(model.model.decoder.layers)
    assert layers_there(model) == range(1, n)
    for of, asked, how, said in (
        (model, {"decoding": Beam()}, How(), "checked against greedy decoding"),
        (model, {"decoding": Sampling()}, How(), "checked against greedy decoding"),
        (model, {"interventions": parse("causal-off")}, How(), "lets a token see later ones"),
        (model, {}, How("layers", n), f"this model has {n}"),
        (encoder, {}, How(), "decoder"),
    ):
        with pytest.raises(QueryError, match=said):
            draft_and_check(of, of.query(TEXTS[0], **asked), how)


@pytest.mark.parametrize("how", [How("bits", 8, ahead=2), How("jacobi")], ids=str)
def test_times_are_of_the_same_output(model, how):
    found = whole(timing(model, model.query(TEXTS[0], max_new=9), how, turns=2))
    assert found.turns == 2
    assert found.quick == (how.kind == "bits" and how.amount == 8)
    assert found.check > 0 < found.alone
    assert found.draft > 0


def test_outputs_with_few_bits_are_those_of_runs(model):
    found = with_few_bits(model, model.query(TEXTS[0], max_new=9), bits=(8, 2))
    assert [one.bits for one in found] == [None, 8, 2]
    assert (found[0].changed, all(found[0].same)) == (0, True)
    for one in found:
        changes = () if one.bits is None else (RoundWeights(bits=str(one.bits)),)
        trace = run(model, model.query(TEXTS[0], max_new=9, interventions=changes))
        assert (one.ids, one.text) == (trace.tgt_ids, trace.output_text)
        gaps = [float(row[-1] - row[-2]) for row in map(sorted, trace.scores())]
        assert (one.margin, one.margin_at) == (pytest.approx(min(gaps), abs=1e-4), gaps.index(min(gaps)))
        assert (one.changed == 0) == (one.ids == found[0].ids)
        assert sum(not same for same in one.same) <= one.changed
