"""A recorded search is the search itself, and one that weighs every continuation afresh."""

import pytest
import torch

from tests.transformer.made_up_changes import SilentHead
from tests.transformer.runs.test_wrapping import changed
from transformer import Beam, Sampling, run
from transformer.analysis.search_tree import MOST_DROPPED, search_tree
from transformer.errors import QueryError
from transformer.runs.beam import length_penalty

CASES = [
    {"decoding": Beam(size=3)},
    {"decoding": Beam(size=5, length_penalty=0.0), "forced": (7, 5)},
    {"decoding": Beam(size=4, length_penalty=2.0), "interventions": (SilentHead("decoder", 0, 1),)},
    {"decoding": Beam(size=1)},
]


@pytest.fixture(scope="module", params=["pair", "decoder"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


def query(checkpoint, **settings):
    return checkpoint.query("ba lo mi ta", max_new=7, **settings)


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_results_are_those_of_the_run_and_what_is_dropped_is_worse_than_what_is_kept(checkpoint, settings):
    asked = query(checkpoint, **settings)
    tree, trace = search_tree(checkpoint, asked), run(checkpoint, asked)
    ids = [one.ids for one in trace.hypotheses]
    for places in (tree.results, tree.standing(len(tree.rounds) - 1)):
        assert [tree.ids(place) for place in places] == ids
    for rank, (place, one) in enumerate(zip(tree.results, trace.hypotheses, strict=True)):
        node = tree.nodes[place]
        assert (node.total, node.score, node.result) == (one.log_prob, one.score, rank)
        assert (tree.log_probs[rank], tree.scores[rank]) == (one.log_prob, one.score)
        assert (node.fate == "ended") == (one.stop_reason == "end of sentence")
    for step, one in enumerate(tree.rounds):
        nodes = [tree.nodes[place] for place in (*one.kept, *one.dropped)]
        compared = [node.compared for node in nodes]
        assert compared == sorted(compared, reverse=True)
        assert [node.rank for node in nodes] == list(range(1, len(nodes) + 1))
        for node in nodes[len(one.kept) :]:
            assert tree.short(node) == tree.last_kept(step).compared - node.compared > 0
        assert len(one.dropped) == min(one.n_dropped, MOST_DROPPED)
    for node in tree.nodes:
        before = 0.0 if node.parent is None else tree.nodes[node.parent].total
        assert node.total == pytest.approx(before + node.log_prob, abs=1e-12)
        assert node.score == pytest.approx(node.compared / length_penalty(node.step + 1, tree.how.length_penalty))


def test_each_round_keeps_the_best_of_all_continuations(checkpoint):
    """Weighed once more, without a cache: each beginning that is open by each piece of the vocabulary."""
    asked = query(checkpoint, decoding=Beam(size=3))
    tree, model, config = search_tree(checkpoint, asked), checkpoint.model, checkpoint.config
    source = torch.tensor([run(checkpoint, asked).src_ids])
    memory, mask = (model.encode(source), model.source_mask(source)) if model.anatomy.reads else (None, None)
    start = [config.decoder_start_id] if model.anatomy.reads else source[0].tolist()
    open_ones = {(): 0.0}
    for step, one in enumerate(tree.rounds):
        sums = {}
        for ids, before in open_ones.items():
            row = model.project(model.decode(torch.tensor([[*start, *ids]]), memory, mask))[0, -1].log_softmax(-1)
            sums |= {(*ids, i): before + float(p) for i, p in enumerate(row) if i not in config.never_written}
        ordered = sorted(sums, key=lambda ids: -sums[ids])
        nodes = [tree.nodes[place] for place in (*one.kept, *one.dropped)]
        assert [tree.ids(node.place) for node in nodes] == ordered[: len(nodes)]
        assert [node.compared for node in nodes] == pytest.approx([sums[i] for i in ordered[: len(nodes)]], abs=1e-4)
        assert one.n_dropped == len(sums) - len(one.kept)
        kept = [tree.nodes[place] for place in one.kept]
        open_ones = {tree.ids(node.place): node.total for node in kept if node.fate == "open"}
        if step == len(tree.rounds) - 1:
            assert not open_ones or tree.settled or len(tree.rounds) == 7


def test_a_rule_closes_what_would_have_been_kept_and_a_forced_piece_all_others(checkpoint):
    free = search_tree(checkpoint, query(checkpoint, decoding=Beam(size=2)))
    first = free.nodes[free.rounds[0].kept[0]]
    banned = changed(checkpoint, banned_ids=(first.piece,))
    tree = search_tree(banned, query(banned, decoding=Beam(size=2)))
    (closed,) = (tree.nodes[place] for place in tree.rounds[0].closed)
    assert (closed.piece, closed.fate, closed.rank) == (first.piece, "closed", 0)
    assert closed.log_prob == pytest.approx(first.log_prob, abs=1e-6)
    assert closed.compared >= tree.last_kept(0).compared
    assert first.piece not in {tree.nodes[place].piece for place in tree.rounds[0].kept}

    tree = search_tree(checkpoint, query(checkpoint, decoding=Beam(size=2), forced=(7,)))
    first = tree.rounds[0]
    assert (first.forced, first.n_dropped, len(first.kept), tree.rounds[1].forced) == (True, 0, 1, False)
    assert tree.nodes[first.kept[0]].piece == 7
    assert all(tree.nodes[place].log_prob >= tree.nodes[first.kept[0]].log_prob for place in first.closed)
    with pytest.raises(QueryError, match="but the decoding is Sampling"):
        search_tree(checkpoint, query(checkpoint, decoding=Sampling()))
