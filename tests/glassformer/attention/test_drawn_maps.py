"""The map that Attention draws is what numpy computes from the trace, also of a run that keeps no maps."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from glassformer.attention.drawn_maps import drawn_map, piece_map, pieces_at
from glassformer.attention.one_weight_pictures import opening
from glassformer.charts.grid import block_size, open_blocks, pooled
from glassformer.runs.viewed_run import VisibleTrace
from glassformer.state.view import Click, View
from transformer import load, run
from transformer.analysis.head_statistics import measure_by_layer
from transformer.analysis.rollout import cross_rollout, self_rollout
from transformer.runs.running import each_layer, run_together

ROOT = Path(__file__).parents[3] / "checkpoints"
KINDS = ("encoder", "decoder", "cross")
TOLERANCE = {"atol": 1e-6}


@pytest.fixture(scope="module")
def english():
    """English to French: an output of words with several pieces."""
    checkpoint = load(ROOT / "en-fr")
    return checkpoint, run(checkpoint, checkpoint.query("I like coffee."))


def draw(english, kind="cross", *, revealed=True, **view):
    checkpoint, trace = english
    return drawn_map(VisibleTrace(trace, replace(View(), **view), revealed), checkpoint, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_one_head_is_the_traces_own_map_and_mean_and_maximum_are_of_a_layer_or_of_all(english, kind):
    maps = english[1].maps(kind)
    drawn = draw(english, kind, layer=1, head=2)
    np.testing.assert_array_equal(drawn.weights, maps[1, 2])
    np.testing.assert_array_equal(drawn.allowed, english[1].mask(kind))
    assert (drawn.name, drawn.sums_to_one, drawn.notes) == ("layer 2, head 3", True, ())
    maps = maps.astype(np.float64)
    np.testing.assert_allclose(draw(english, kind, layer=1).weights, maps[1].mean(axis=0), **TOLERANCE)
    np.testing.assert_allclose(draw(english, kind).weights, maps.mean(axis=(0, 1)), **TOLERANCE)
    np.testing.assert_allclose(draw(english, kind, layer=1, aggregate="max").weights, maps[1].max(axis=0), **TOLERANCE)
    whole = draw(english, kind, aggregate="max")
    np.testing.assert_allclose(whole.weights, maps.max(axis=(0, 1)), **TOLERANCE)
    assert not whole.sums_to_one
    assert "each cell shows the largest weight, so rows do not sum to 1" in whole.notes


def test_a_rollout_is_of_the_layers_up_to_the_chosen_one(english):
    means = {kind: english[1].maps(kind).mean(axis=1, dtype=np.float64)[:, None] for kind in KINDS}
    encoder, decoder, cross = (means[kind] for kind in KINDS)
    whole = draw(english, "encoder", aggregate="rollout").weights
    np.testing.assert_allclose(whole, self_rollout(encoder), **TOLERANCE)
    two = draw(english, "decoder", layer=1, aggregate="rollout").weights
    np.testing.assert_allclose(two, self_rollout(decoder[:2]), **TOLERANCE)
    drawn = draw(english, "cross", layer=1, aggregate="rollout")
    np.testing.assert_allclose(drawn.weights, cross_rollout(encoder, decoder[:2], cross[:2]), **TOLERANCE)
    assert drawn.title == "Cross-attention: rollout through layers 1 to 2"


def test_a_maximum_of_words_is_no_sum_of_maxima_and_columns_of_the_decoder_are_words_that_it_reads(english):
    weights = english[1].encoder_self[2].astype(np.float64)
    merged = np.stack([weights[:, :, 0], weights[:, :, 1], weights[:, :, 2:4].sum(axis=2), weights[:, :, 4]], axis=2)
    drawn = draw(english, "encoder", layer=2, aggregate="max", words=True)
    np.testing.assert_allclose(drawn.weights[0], merged[:, 0].max(axis=0), **TOLERANCE)
    drawn = draw(english, "decoder", layer=0, head=0, words=True)
    assert drawn.keys == ["<s>", "J'aime", "le", "café."]
    # The rows that predict "J'aime" have read "J" and "'" of it when they predict "aime".
    expected = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    np.testing.assert_array_equal(drawn.allowed, np.array(expected, dtype=bool))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", [False, True])
def test_hidden_pieces_take_their_weight_with_them_and_the_map_says_how_much(english, kind, words):
    whole, drawn = draw(english, kind, words=words), draw(english, kind, words=words, hide_special=True)
    special = {"encoder": -1, "cross": -1, "decoder": 0}[kind]
    kept = np.delete(whole.weights, special, axis=1)[:-1]  # the last row predicts or reads the end piece
    np.testing.assert_allclose(drawn.weights, kept)
    hidden = whole.weights[: len(kept), special].mean()
    assert drawn.notes[-1] == f"special tokens are hidden; on average, they get {hidden:.2f} of a row's weight"
    assert not drawn.sums_to_one
    assert not [label for label in (*drawn.keys, *drawn.queries) if label.endswith("</s>")]


def test_the_row_of_each_step_and_the_chosen_cell_are_found_among_words(english):
    drawn = draw(english, words=True)
    assert drawn.queries == ["<s> → J'aime", "J'aime → le", "le → café.", "café. → </s>"]
    assert drawn.keys == ["I", "like", "coffee.", "</s>"]
    np.testing.assert_allclose(drawn.weights.sum(axis=1), 1, atol=1e-5)
    assert drawn.row_of_step() == [row for row, (first, end) in enumerate(drawn.rows) for _ in range(first, end)]
    assert draw(english, "encoder").row_of_step() == []
    hidden = draw(english, hide_special=True)
    assert hidden.row_of_step() == [*range(len(hidden.queries)), None]
    assert drawn.cell(View(query=1, key=3)) == (0, 2)
    assert [one.cell(View(query=1, key=key)) for one, key in ((drawn, None), (drawn, 99), (hidden, 4))] == [None] * 3


def test_a_click_on_a_word_finds_its_strongest_pieces(english):
    drawn = draw(english, layer=0, head=1, words=True)
    weights = piece_map(VisibleTrace(english[1], View(layer=0, head=1)), "cross")
    query, key = pieces_at(drawn, weights, Click(0, (0, 2), None)).values()
    assert query in range(3)
    assert key in (2, 3)
    assert weights[query, key] == weights[0:3, 2:4].max()
    hidden = draw(english, "decoder", hide_special=True)
    assert pieces_at(hidden, np.ones((7, 7)), Click(0, (1, 0), None)) == {"query": 1, "key": 1}


@pytest.mark.parametrize("hide_special", [False, True])
def test_in_guess_mode_nothing_tells_what_comes(english, hide_special):
    for step in range(english[1].n_steps):
        view = {"step": step, "guess": True, "words": True, "hide_special": hide_special, "revealed": False}
        for kind in ("decoder", "cross"):
            drawn = draw(english, kind, **view)
            assert drawn.rows[-1] == (step, step + 1)  # neither joined with its word nor hidden as special
            assert drawn.queries[-1].endswith("→ ?")
            seen = "".join(drawn.queries) + ("".join(drawn.keys) if kind == "decoder" else "")
            later = [piece.strip("▁") for piece in english[1].tgt_tokens[max(step, 3) : 6] if len(piece) > 1]
            assert not [piece for piece in later if piece in seen]


@pytest.fixture(scope="module")
def runs(reverse):
    """The run that keeps its maps, and the one that keeps none."""
    query = reverse.query("abcde fgh")
    return [next(run_together(reverse, [query], most_map_bytes=most)) for most in (None, 0)]


def visible(reverse, trace, **view):
    asked = []

    def by_layer(kind, work, *, key, layers):
        asked.append((kind, key, layers))
        return each_layer(reverse, trace, kind, work, layers=layers)

    return VisibleTrace(trace, replace(View(), **view), by_layer=by_layer), asked


VIEWS = ({"layer": 1, "head": 2}, {}, {"aggregate": "max", "words": True})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view", [*VIEWS, {"layer": 1, "aggregate": "rollout", "hide_special": True}], ids=str)
def test_one_map_is_the_same(reverse, runs, kind, view):
    (kept, none), (gone, asked) = (visible(reverse, trace, **view) for trace in runs)
    for draw in (lambda of: drawn_map(of, reverse, kind).weights, lambda of: piece_map(of, kind)):
        np.testing.assert_array_equal(draw(gone), draw(kept))
    assert asked
    assert not none  # what is there is not computed again
    whole = [layers for _, key, layers in asked if key == "heads"]
    assert whole == [(1,), (1,)] * ("layer" in view and view.get("aggregate") != "rollout")  # never all of them


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_look_and_all_measures_are_the_same(reverse, runs, kind):
    kept, bare = runs
    assert opening(visible(reverse, kept, kind=kind)[0]) == opening(visible(reverse, bare, kind=kind)[0])
    whole = measure_by_layer(reverse, kept, kind)
    parts = measure_by_layer(reverse, bare, kind)
    assert list(parts) == list(whole)
    for name, one in whole.items():
        np.testing.assert_array_equal(parts[name].values, one.values)
        np.testing.assert_array_equal(parts[name].rows, one.rows)


def test_tiles_of_one_layer_are_those_of_all(runs):
    kept, _ = runs
    maps, allowed = kept.decoder_self, kept.mask("decoder")
    size = block_size(maps.shape, maps.size // 8)
    assert size > 1
    whole = pooled(maps, allowed, size)
    for layer, tiles in enumerate(whole.weights):
        np.testing.assert_array_equal(pooled(maps[layer][None], allowed, size).weights[0], tiles)
    np.testing.assert_array_equal(np.broadcast_to(open_blocks(allowed, size), whole.allowed.shape), whole.allowed)
