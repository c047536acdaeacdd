"""The tree of a search gives each partial output a place of its own, and its marks say what became of it."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from glassformer import charts
from glassformer.charts.graphs import Growing, Leaf, Twig, lanes


def twig(place, parent, step, piece="x", kind="open", **more):
    return Twig(place, parent, step, piece, kind, ["a number"], **more)


TWIGS = [
    twig(0, None, 0, "<b>a</b>", result=0),
    twig(1, None, 0, "b"),
    twig(2, None, 0, "c", "dropped"),
    twig(3, 0, 1, "%{x}", "ended", result=0),
    twig(4, 0, 1, "e", "ended", result=1),
    twig(5, 1, 1, "f", "closed"),
]
LEAVES = [Leaf(3, "<i>one</i> " * 9, "score -1.000"), Leaf(4, "two", "score -2.000")]


@st.composite
def growths(draw):
    """Any tree of a few beams over a few steps, some of its ends kept to the edge."""
    nodes, before = [], [None]
    for step in range(draw(st.integers(1, 6))):
        here = []
        for _ in range(draw(st.integers(1, 4))):
            place = len(nodes)
            nodes.append((place, draw(st.sampled_from(before)), step))
            here.append(place)
        before = here
    parents = {parent for _, parent, _ in nodes}
    ends = [place for place, _, _ in nodes if place not in parents]
    kept = set(draw(st.lists(st.sampled_from(ends), unique=True)))
    orders = {place: n for n, place in enumerate(sorted(kept))}
    return [Growing(p, parent, step, orders.get(p, 1000 + p), p in kept) for p, parent, step in nodes]


@given(growths())
def test_no_two_beginnings_of_a_step_share_a_lane_and_what_stays_to_the_edge_is_in_its_order(nodes):
    found = lanes(nodes)
    assert found.keys() == {node.place for node in nodes}
    assert min(found.values()) == 0
    for one, other in itertools.permutations(nodes, 2):
        if one.step == other.step or (one.stays and other.step > one.step):
            assert found[one.place] != found[other.place]
    kept = sorted((node for node in nodes if node.stays), key=lambda node: node.order)  # to be written at the edge
    assert [found[node.place] for node in kept] == sorted(found[node.place] for node in kept)


def drawn(**more):
    return charts.search_tree(TWIGS, LEAVES, title="T", start="<s>", n_steps=2, **more)


def test_each_beginning_is_one_mark_that_carries_its_place_no_markup_and_its_name_away_from_what_was_kept():
    figure = drawn(step=1, shown=0)
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    assert sorted(place for trace in marks for place in trace.customdata) == [0, 1, 2, 3, 4, 5]
    symbols = {place: trace.marker.symbol for trace in marks for place in trace.customdata}
    assert symbols[0] == symbols[1] == "circle"
    assert len({symbols[0], symbols[2], symbols[3], symbols[5]}) == 4  # a shape says what became of it
    results = next(trace for trace in figure.data if trace.mode == "markers+text" and trace.customdata is not None)
    assert list(results.customdata) == [3, 4]
    assert figure.layout.shapes[0].x0 == 1.5
    text = str(drawn(step=0).to_dict())
    assert not [markup for markup in ("<b>a</b>", "<i>one", "%{x}") if markup in text]
    spec = charts.search_tree_spec(TWIGS, LEAVES, title="T", start="<s>", n_steps=2)
    start = next(trace for trace in spec["data"] if trace.get("text") and trace["x"] == [0.0])
    assert start["textposition"] == "middle left"  # lines lead to the right
    assert len(charts.search_tree([], [], title="T", start="<s>", n_steps=1).data) == 1  # that nothing survived
    twigs = [*TWIGS[:2], *(twig(9 + n, None, 0, "dropped token", "dropped", named=True) for n in range(4))]
    spec = charts.search_tree_spec(twigs, [], title="T", start="<s>", n_steps=2, step=0)
    (names,) = [trace for trace in spec["data"] if trace.get("text") and "dropped token" in trace["text"][0]]
    assert names["textposition"] == "middle left"
    assert all(text.endswith("\u00a0") for text in names["text"]), "the name hides the left half of its mark"
    assert max(names["x"]) < 1
