"""Pages on models whose positions and attentions are not the paper's are drawn, and say what differs."""

import base64
import json
from functools import partial

import numpy as np
import pytest

from glassformer.positions import PositionsLook, position_controls
from glassformer.runs import loading
from glassformer.state import session
from glassformer.step import step_pictures
from tests.pages.conftest import ATTENTION, CHECKPOINTS, FORCING, INSIDE, MASKS, POSITIONS, STEP, check
from tests.pages.reading import figure, numbers, opened, payload, told, told_or_noted, view
from tests.pages.test_pseudo_language import complaints, data_of_models
from tests.pseudo_language import words_of
from tests.transformer.featured import FEATURED, featured
from transformer.analysis.positions import distance_bias, turnings
from transformer.runs.running import replay

text = partial(told, kinds=("markdown", "caption", "info", "warning", "latex"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("featured")
    for name in FEATURED:
        featured(name, made)
    return made


@pytest.fixture
def open_model(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return lambda name, page, **parameters: open_page(page, model=name, src="ba lo mi", **parameters)


PARTS = [
    (STEP, {}),
    (CHECKPOINTS, {}),
    (FORCING, {"ref": "the fox"}),
    *((ATTENTION, {"panel": panel}) for panel in ("overview", "head", "flow", "walk", "table")),
    *((MASKS, {"masks": panel}) for panel in ("masks", "one_row", "checks")),
    *((INSIDE, {"inside": panel}) for panel in ("model", "stream", "ffn")),
    *((POSITIONS, {"positions": panel}) for panel in ("table", "similarity", "shift", "sentence")),
    *((POSITIONS, {"positions": panel}) for panel in ("rotations", "pair", "distance")),
]


DAILY = ("relative", "alibi", "windows")


@pytest.mark.parametrize(
    "name", [one if one in DAILY else pytest.param(one, marks=pytest.mark.deep) for one in FEATURED]
)
def test_every_part_of_every_page_is_drawn(open_model, name):
    for page, parameters in PARTS:
        test = open_model(name, page, **parameters)
        assert not test.error, (page, parameters, test.error)


CAPPED = "2. The score", r"cdot 0.3", "tanh", "after normalisation or rotation by position"
MADE_SO = "RMS norm", "multiplied by 0.3", "capped at ±5", "a decoder query can see, layer by layer: 3, ∞, 2"


@pytest.mark.parametrize(
    ("name", "page", "view", "said"),
    [
        ("rotary", POSITIONS, {}, ["has rotary positions", "In each head, 4 of the 4 dimensions rotate"]),
        ("relative", POSITIONS, {}, ["has relative positions"]),
        ("no positions", POSITIONS, {}, ["has no positional encoding: it does not see the order of its tokens"]),
        ("relative", ATTENTION, {"kind": "encoder"}, ["q·k is not divided by √d_head"]),
        ("windows", ATTENTION, {}, MADE_SO),
        ("windows", ATTENTION, {"panel": "head"}, ["every layer closes it"]),
        ("windows", ATTENTION, {"panel": "walk", "layer": 1, "head": 1, "query": 3, "key": 1}, CAPPED),
        ("alibi", ATTENTION, {"panel": "walk", "layer": 1, "head": 1}, ["replaces all other scores with −1 × 10⁹"]),
        ("windows", MASKS, {}, ["have windows"]),
        ("alibi", MASKS, {}, ["replaces the scores of closed keys with −1 × 10⁹"]),
    ],
)
def test_a_page_says_what_is_not_as_in_the_paper(open_model, name, page, view, said):
    found = text(open_model(name, page, **view))
    assert [one for one in said if one not in found] == []


@pytest.mark.parametrize("name", ["halves", "fairseq"])
def test_sinusoids_of_another_layout_are_drawn_in_turns(open_model, name):
    test = open_model(name, POSITIONS, apart=0)
    table = opened(name).model.encoder.embedding.positions.table.numpy()
    drawn = numbers(figure(test, "position_table")["data"][0]["z"])
    assert np.array_equal(drawn[:, 0::2], table[:, :6])
    assert np.array_equal(drawn[:, 1::2], table[:, 6:])
    other = "also sinusoids, but from a different formula"
    assert (other in text(test)) == ("the table follows the formula" not in text(test)) == (name == "fairseq")


# ---------------------------------------------------------------- groups of heads, windows, a prompt before the output


GRID = "overview_decoder"


@pytest.fixture
def windows(open_model):
    return lambda page=ATTENTION, **parameters: open_model("windows", page, **({"max": 4} | parameters))


def run():
    checkpoint = opened("windows")
    return checkpoint.run(checkpoint.query("ba lo mi", max_new=4))


def dotted(drawn):
    return [shape for shape in drawn["layout"]["shapes"] if shape["line"].get("dash") == "dot"]


def test_all_heads_have_their_layers_masks_groups_and_the_end_of_the_prompt(windows):
    drawn, trace = figure(windows(), GRID), run()
    assert trace.masks["decoder"].ndim == 3  # windows: each layer has its own
    packed = drawn["layout"]["meta"]["grid"]
    n = len(packed["queries"])
    codes = np.frombuffer(base64.b64decode(packed["codes"]), np.uint8).reshape(3 * n, 3 * n)
    for layer in range(3):
        assert np.array_equal(codes[layer * n : layer * n + n, :n] != 255, trace.mask("decoder", layer))
    assert [note["text"] for note in drawn["layout"]["annotations"]] == ["K, V 1"]
    assert dotted(drawn)[0]["y0"] == trace.first_row - 0.5
    caption = payload(windows(), GRID)["caption"]
    assert "Heads under one bracket share" in caption
    assert "separate the prompt from the output" in caption


def test_one_map_says_with_whom_its_head_shares_and_where_the_prompt_ends(windows):
    drawn = figure(windows(panel="head", layer=1, head=2), "head_map")
    assert drawn["layout"]["title"]["subtitle"]["text"] == "All 3 heads share one key-value head"
    first = run().first_row
    assert [shape["y0"] for shape in dotted(drawn)] == [first - 0.5, 0]
    assert dotted(drawn)[1]["x0"] == first + 0.5
    words = figure(windows(panel="head", layer=1, head=2, words=1), "head_map")
    assert 0 < dotted(words)[0]["y0"] <= first - 0.5  # rows are words there


def test_the_step_parts_prompt_and_output_too_and_says_that_it_was_cut(windows):
    test = windows(STEP)
    assert dotted(figure(test, step_pictures.cross_map.key))[0]["y0"] == run().first_row - 0.5
    sent = payload(test, session.STEPPER)["run"]
    assert (sent["cut"], sent["stop_reason"]) == (True, "The output was cut off at the limit of 4 tokens.")
    assert "cut" not in told_or_noted(test)


@pytest.mark.parametrize("part", ["overview", "head"])
def test_what_is_said_of_groups_and_windows_is_said_whole(windows, part):
    test = windows(panel=part, layer=1, lang="qps", **({"head": 2} if part == "head" else {}))
    pieces = opened("windows").src_tokenizer.pieces
    assert complaints(test, words_of("windows", "ba lo mi", *pieces) | data_of_models()) == []
    assert json.dumps(payload(test, session.STEPPER))


# ---------------------------------------------------------------- positions inside attention


@pytest.fixture
def positions(open_model):
    def open_one(name, part="", **parameters):
        return open_model(name, POSITIONS, **({"positions": part} if part else {}), **parameters)

    return open_one


def test_rotary_positions_are_drawn_as_rotations(positions):
    test = positions("rotary")
    (one,) = turnings(opened("rotary").config, "decoder")
    drawn = figure(test, "rotary_rotations")
    np.testing.assert_allclose(numbers(drawn["data"][0]["z"]), np.cos(one.angles(24)), atol=1e-6)
    waves = figure(test, "rotary_waves")["data"]
    np.testing.assert_allclose(numbers(waves[0]["y"]), one.wavelengths, rtol=1e-6)
    assert numbers(waves[-1]["y"]).tolist() == [24, 24]  # the longest text, not before any scaling
    assert "makes one full turn in 6.283 positions" in told_or_noted(test)
    check(test.selectbox(key=position_controls.COUNT).set_value(16).run())
    assert numbers(figure(test, "rotary_rotations")["data"][0]["z"]).shape == (16, 2)


def test_layers_with_other_bases_are_chosen_and_the_one_that_does_not_turn_says_so(positions):
    test = positions("windows")
    assert "Without scaling for longer texts, pair i turns by 10,000^(−i/" in told_or_noted(test)
    assert list(test.selectbox(key=position_controls.LAYERS).options) == [
        "Layers 1, 3: window, base 10,000",
        "Layer 2: no rotation",
    ]
    check(test.selectbox(key=position_controls.LAYERS).set_value(1).run())
    assert "Layer 2 ignores positions" in told_or_noted(test)
    assert view(test).layer == 1


@pytest.mark.parametrize("name", ["rotary", "windows"])
def test_the_score_of_the_sentence_stands_on_its_curve(positions, name):
    test = positions(name, "sentence", layer=3, head=2, query=3, key=2)
    checkpoint = opened(name)
    trace = checkpoint.run("ba lo mi")
    site = "decoder.2.self_attn.scores"
    own = float(replay(checkpoint, trace, [site])[site][1, 2, 1])
    curve, ring = figure(test, "rotary_scores")["data"]
    place = numbers(curve["x"]).tolist().index(-1)
    cap = checkpoint.config.score_cap
    before = own if cap is None else cap * np.arctanh(own / cap)
    assert numbers(curve["y"])[place] == pytest.approx(before, abs=1e-4)
    assert numbers(ring["y"])[0] == pytest.approx(before, abs=1e-4)
    assert ("soft cap" in told_or_noted(test)) == (cap is not None)


@pytest.mark.parametrize(("name", "side", "stack"), [("alibi", "target", "decoder"), ("relative", "source", "encoder")])
def test_a_bias_is_drawn_by_distance(positions, name, side, stack):
    test = positions(name, side=side, head=2, layer=1)
    found = distance_bias(opened(name).model, stack, most=23)
    drawn = figure(test, "bias_map")
    np.testing.assert_allclose(numbers(drawn["data"][0]["z"]), found.bias, atol=1e-6)
    front = figure(test, "bias_curves")["data"][-1]  # what is looked at comes last, on top
    assert front["name"] == "head 2"
    np.testing.assert_allclose(numbers(front["y"]), found.bias[1], atol=1e-6)
    assert ("bucket" in drawn["layout"]["meta"]["cells"]["columns"][0]) == (name == "relative")
    assert ("Cross-attention does not use positions" in told_or_noted(test)) == (name == "relative")


@pytest.mark.parametrize(
    ("name", "part", "why"), [("rotary", "similarity", "no part “Similarity”"), ("alibi", "pair", "no part “One pair”")]
)
def test_a_part_without_meaning_says_why(positions, name, part, why):
    test = positions(name, part)
    assert why in told_or_noted(test)
    assert view(test).of(PositionsLook).positions_panel == "table"
