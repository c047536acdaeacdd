"""A recorded search is the search itself, and one that weighs every continuation afresh."""

import pytest
import torch

from tests.transformer.made_up_changes import SilentHead
from tests.transformer.runs.test_wrapping import changed
from transformer import Beam, Sampling, run
from transformer.analysis.search_tree import MOST_DROPPED, search_tree
from transformer.errors import QueryError
from transformer.runs.beam import length_penalty

TEXT = "ba lo mi ta"
CHANGED = SilentHead("decoder", 0, 1)
CASES = [
    {"decoding": Beam(size=3)},
    {"decoding": Beam(size=5, length_penalty=0.0), "forced": (7, 5)},
    {"decoding": Beam(size=4, length_penalty=2.0), "interventions": (CHANGED,)},
    {"decoding": Beam(size=1)},
]


@pytest.fixture(scope="module", params=["pair", "decoder"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


def query(checkpoint, **settings):
    return checkpoint.query(TEXT, max_new=7, **settings)


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_results_are_those_of_the_run(checkpoint, settings):
    asked = query(checkpoint, **settings)
    tree, trace = search_tree(checkpoint, asked), run(checkpoint, asked)
    assert [tree.ids(place) for place in tree.results] == [one.ids for one in trace.hypotheses]
    for rank, (place, one) in enumerate(zip(tree.results, trace.hypotheses, strict=True)):
        node = tree.nodes[place]
        assert (node.total, node.score, node.result) == (one.log_prob, one.score, rank)
        assert (tree.log_probs[rank], tree.scores[rank]) == (one.log_prob, one.score)
        assert (node.fate == "ended") == (one.stop_reason == "end of sentence")
    last = tree.standing(len(tree.rounds) - 1)
    assert [tree.ids(place) for place in last] == [one.ids for one in trace.hypotheses]


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_what_is_dropped_is_worse_than_what_is_kept_and_sums_add_up(checkpoint, settings):
    tree = search_tree(checkpoint, query(checkpoint, **settings))
    for step, one in enumerate(tree.rounds):
        places = (*one.kept, *one.dropped)
        compared = [tree.nodes[place].compared for place in places]
        assert compared == sorted(compared, reverse=True)
        assert [tree.nodes[place].rank for place in places] == list(range(1, len(places) + 1))
        for place in one.dropped:
            assert tree.short(tree.nodes[place]) == tree.last_kept(step).compared - tree.nodes[place].compared > 0
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
    memory = model.encode(source) if model.anatomy.reads else None
    start = [config.decoder_start_id] if model.anatomy.reads else source[0].tolist()
    open_ones: list[tuple[int, ...]] = [()]
    for step, one in enumerate(tree.rounds):
        sums = {}
        for ids in open_ones:
            read = torch.tensor([[*start, *ids]])
            row = model.project(model.decode(read, memory, None if memory is None else model.source_mask(source)))
            before = sum(_log_probs(tree, ids))
            sums |= {(*ids, i): before + float(p) for i, p in enumerate(row[0, -1].log_softmax(-1))}
        sums = {ids: value for ids, value in sums.items() if ids[-1] not in config.never_written}
        ordered = sorted(sums, key=lambda ids: -sums[ids])
        nodes = [tree.nodes[place] for place in (*one.kept, *one.dropped)]
        assert [tree.ids(node.place) for node in nodes] == ordered[: len(nodes)]
        assert [node.compared for node in nodes] == pytest.approx([sums[i] for i in ordered[: len(nodes)]], abs=1e-4)
        assert one.n_dropped == len(sums) - len(one.kept)
        open_ones = [tree.ids(place) for place in one.kept if tree.nodes[place].fate == "open"]
        if step == len(tree.rounds) - 1:
            assert not open_ones or tree.settled or len(tree.rounds) == 7


def _log_probs(tree, ids):
    """Of the pieces of a beginning that was kept."""
    parent = None
    for piece in ids:
        parent = next(n.place for n in tree.nodes if n.parent == parent and n.piece == piece and n.is_kept)
        yield tree.nodes[parent].log_prob


def test_a_rule_closes_what_would_have_been_kept(checkpoint):
    free = search_tree(checkpoint, query(checkpoint, decoding=Beam(size=2)))
    first = free.nodes[free.rounds[0].kept[0]]
    banned = changed(checkpoint, banned_ids=(first.piece,))
    tree = search_tree(banned, query(banned, decoding=Beam(size=2)))
    closed = [tree.nodes[place] for place in tree.rounds[0].closed]
    assert [(node.piece, node.fate, node.rank) for node in closed] == [(first.piece, "closed", 0)]
    assert closed[0].log_prob == pytest.approx(first.log_prob, abs=1e-6)
    assert closed[0].compared >= tree.last_kept(0).compared
    assert first.piece not in {tree.nodes[place].piece for place in tree.rounds[0].kept}


def test_a_forced_piece_closes_all_others(checkpoint):
    tree = search_tree(checkpoint, query(checkpoint, decoding=Beam(size=2), forced=(7,)))
    first = tree.rounds[0]
    assert (first.forced, first.n_dropped, len(first.kept)) == (True, 0, 1)
    assert tree.nodes[first.kept[0]].piece == 7
    assert all(tree.nodes[place].log_prob >= tree.nodes[first.kept[0]].log_prob for place in first.closed)
    assert not tree.rounds[1].forced
    with pytest.raises(QueryError, match="but the decoding is Sampling"):
        search_tree(checkpoint, query(checkpoint, decoding=Sampling()))
