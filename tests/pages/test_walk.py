"""How one weight came to be, without a browser: what is drawn, against the checkpoint's own parameters."""

import math
import re
from functools import partial

import numpy as np
import pytest
import torch

from glassformer.attention.one_weight import one_weight_panel as one_weight
from glassformer.shared.controls import NONE
from glassformer.state.click import Click, place_of
from tests.pages.conftest import ATTENTION, ROOT, check
from tests.pages.reading import address, figure, go_to, numbers, told, view
from tests.transformer.made_up_changes import made_up_changes as made_up_changes
from transformer.analysis.default_cell import worth_seeing
from transformer.checkpoint.load import load
from transformer.model.taps import Recorder, tap_of
from transformer.runs import replay as replay_module
from transformer.runs.running import run

text = partial(told, kinds=("markdown",))

VECTORS = ("walk_all_q", "walk_all_k", "walk_all_v")


@pytest.fixture
def walking(open_page):
    """A function that opens the walk: `walking(kind="encoder", layer=1, head=2)`."""

    def open_one(**parameters):
        return open_page(ATTENTION, **({"model": "reverse", "src": "glass", "panel": "walk"} | parameters))

    return open_one


@pytest.fixture(scope="module")
def reverse():
    return load(ROOT / "checkpoints" / "reverse")


def by_hand(checkpoint, *, kind, layer, head, query):
    """One row, from the stream that enters the sub-layer and the parameters of the file."""
    trace = run(checkpoint, checkpoint.query("glass"))
    stack = "encoder" if kind == "encoder" else "decoder"
    attention = "cross_attn" if kind == "cross" else "self_attn"
    recorder = Recorder(["*.norm", "encoder.output"])
    checkpoint.model(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]), tap=tap_of(recorder))
    x = recorder.values[f"{stack}.{layer}.{attention}.norm"][0].double()
    context = recorder.values["encoder.output"][0].double() if kind == "cross" else x
    state, name = checkpoint.model.state_dict(), f"{stack}.layers.{layer}.{attention}"
    weights, biases = ([state[f"{name}.{part}_proj.{kind}"].double() for part in "qkv"] for kind in ("weight", "bias"))
    size = checkpoint.config.d_model // checkpoint.config.n_heads
    mine = slice(head * size, (head + 1) * size)
    q, k, v = (
        (stream @ w[mine].T + b[mine]).numpy()
        for stream, w, b in zip((x[query], context, context), weights, biases, strict=True)
    )
    allowed = trace.mask(kind)[query]
    scores = k @ q / math.sqrt(size)
    exps = np.where(allowed, np.exp(scores), 0)
    row = exps / exps.sum()
    share = state[f"{name}.out_proj.weight"].double().numpy()[:, mine] @ (row @ v)
    return {"q": q, "k": k, "v": v, "scores": scores, "weights": row, "out": row @ v, "share": share,
            "allowed": allowed}  # fmt: skip


def bars(test, key, place):
    return numbers(figure(test, key)["data"][place]["y"])


@pytest.mark.parametrize(
    ("kind", "query", "key"), [("encoder", 4, 1), ("decoder", 2, 0), ("decoder", 2, 5), ("cross", 5, 3)]
)
def test_every_chart_has_the_numbers_of_the_parameters(walking, reverse, kind, query, key):
    test = walking(kind=kind, layer=2, head=3, query=query + 1, key=key + 1)
    found = by_hand(reverse, kind=kind, layer=1, head=2, query=query)
    allowed = found["allowed"]
    strips, products = figure(test, "walk_products")["data"]
    assert np.allclose(numbers(strips["z"]), [found["q"], found["k"][key]], atol=1e-5)
    assert np.allclose(numbers(products["y"]), found["q"] * found["k"][key], atol=1e-5)
    assert np.allclose(bars(test, "walk_scores", 0), found["scores"] * math.sqrt(16), atol=1e-5)
    assert np.allclose(bars(test, "walk_scores", 1), found["scores"], atol=1e-5)
    for chart, values in (("walk_masked", found["scores"]), ("walk_weights", found["weights"])):
        drawn = bars(test, chart, 0)
        assert np.array_equal(np.isnan(drawn), ~allowed)
        assert np.allclose(drawn[allowed], values[allowed], atol=1e-5)
    weighted = numbers(figure(test, "walk_values")["data"][0]["z"])  # six keys, and their sum
    expected = np.where(allowed[:, None], found["weights"][:, None] * found["v"], np.nan)
    assert np.allclose(weighted[-1], found["out"], atol=1e-5)
    assert np.allclose(weighted[:-1], expected, atol=1e-5, equal_nan=True)
    share = numbers(figure(test, "walk_share")["data"][0]["z"])
    assert np.allclose(share[0], found["share"], atol=1e-5)
    assert np.allclose(share[:3].sum(axis=0), share[3])
    assert math.isclose(bars(test, "walk_norms", 0)[2], np.linalg.norm(found["share"]), rel_tol=1e-5)


def test_the_map_to_pick_from_is_the_heads_own(walking, reverse):
    test = walking(kind="decoder", layer=1, head=4, step=3)
    trace = run(reverse, reverse.query("glass"))
    drawn = numbers(figure(test, "walk_map")["data"][0]["z"])
    assert np.allclose(drawn[trace.decoder_mask], trace.decoder_self[0, 3][trace.decoder_mask])
    assert np.isnan(drawn[~trace.decoder_mask]).all()


def chosen(test):
    return tuple(test.selectbox(key=key).value for key in (one_weight.QUERY_CHOICE, one_weight.KEY_CHOICE))


def test_without_a_choice_it_follows_the_step_and_the_strongest_key(walking, reverse):
    test = walking(kind="cross", layer=1, head=1)
    trace = run(reverse, reverse.query("glass"))
    for step in (0, 3):
        check(go_to(test, step + 1))
        strongest = int(trace.cross[0, 0, step].argmax())
        assert chosen(test) == (NONE, NONE)
        assert f"the key **{trace.src_pieces[strongest]}**" in text(test)
        assert f"the query **{trace.row_label(step)}**" in text(test).replace("\u2060", "")
        assert "query" not in address(test)


def test_menus_choose_and_can_be_given_back(walking):
    test = walking(kind="cross", layer=1, head=1)
    check(test.selectbox(key=one_weight.QUERY_CHOICE).set_value(3).run())
    check(test.selectbox(key=one_weight.KEY_CHOICE).set_value(1).run())
    assert (address(test)["query"], address(test)["key"]) == ("4", "2")
    check(go_to(test, 2))
    assert chosen(test) == (3, 1)  # it does not follow any more
    for widget in (one_weight.QUERY_CHOICE, one_weight.KEY_CHOICE):
        check(test.selectbox(key=widget).set_value(NONE).run())
    assert chosen(test) == (NONE, NONE)
    assert not {"query", "key"} & address(test).keys()


def test_the_encoder_begins_with_its_first_row(walking):
    test = walking(kind="encoder", layer=1, head=1, step=4)
    assert chosen(test) == (0, NONE)
    assert "the query **g**" in text(test)


def test_an_address_beyond_the_map_falls_back(walking):
    assert chosen(walking(kind="cross", layer=1, head=1, query=77, key=88)) == (NONE, NONE)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
@pytest.mark.parametrize("layer", [None, 2])
def test_it_opens_on_a_weight_worth_seeing_and_the_address_says_nothing_of_it(walking, reverse, kind, layer):
    test = walking(kind=kind, **({"layer": layer} if layer else {}))
    cell = worth_seeing(run(reverse, reverse.query("glass")), kind, layer=None if layer is None else layer - 1)
    assert layer is None or cell.layer == layer - 1
    said = text(test)
    assert f"In layer {cell.layer + 1}, head {cell.head + 1}, the query" in said
    assert figure(test, "walk_map")["layout"]["shapes"][-1]["x0"] == cell.key - 0.5
    assert figure(test, "walk_map")["layout"]["shapes"][-1]["y0"] == cell.query - 0.5
    assert not {"head", "query", "key", "step"} & address(test).keys()
    assert any("so here is one to start with" in caption.value for caption in test.caption)
    assert (test.selectbox(key="one_layer").value, test.selectbox(key="one_head").value) == (cell.layer, cell.head)


def test_a_head_that_is_chosen_then_keeps_the_row_that_was_seen(walking, reverse):
    test = walking(kind="cross")
    cell = worth_seeing(run(reverse, reverse.query("glass")), "cross")
    other = (cell.head + 1) % 4
    check(test.selectbox(key="one_head").set_value(other).run())
    assert (view(test).layer, view(test).head, view(test).query) == (cell.layer, other, cell.query)
    assert not any("so here is one to start with" in caption.value for caption in test.caption)


def test_after_a_step_the_row_is_that_of_the_step(walking, reverse):
    test = check(go_to(walking(kind="cross"), 3))
    cell = worth_seeing(run(reverse, reverse.query("glass")), "cross")
    assert f"In layer {cell.layer + 1}, head {cell.head + 1}" in text(test)
    assert f"the query **{run(reverse, reverse.query('glass')).row_label(2)}**" in text(test).replace("\u2060", "")


def test_nothing_that_comes_later_is_seen_while_guessing(walking):
    test = walking(kind="decoder", layer=1, head=1, step=3, guess=1, query=6, key=6)
    assert chosen(test) == (NONE, NONE)
    assert len(test.selectbox(key=one_weight.QUERY_CHOICE).options) == 1 + 3
    assert test.selectbox(key=one_weight.QUERY_CHOICE).options[-1] == "3: s → ?"
    for key in ("walk_scores", "walk_masked", "walk_weights"):
        assert len(bars(test, key, 0)) == 3
    assert numbers(figure(test, "walk_map")["data"][0]["z"]).shape == (3, 3)


def test_the_softmax_key_by_key_is_written_as_the_formulas_are(walking):
    table = walking(kind="decoder", layer=2, head=2, query=3, key=5).table[0].value
    assert list(table["Key"])[-1] == "Sum"
    assert table["Score"][4] == "**−∞**"
    written = [cell for name in table for cell in table[name]]
    assert any("−" in cell and "∞" not in cell for cell in written)
    assert not [cell for cell in written if "-" in cell or re.search(r"\de", cell)]  # as the formulas have it


def test_one_replay_serves_a_layer(walking, monkeypatch):
    test = walking(kind="cross", layer=2, head=1, src="lass")
    monkeypatch.setattr(replay_module, "replay", lambda *_: pytest.fail("the model runs again"))
    for place in (0, 2, 4):
        check(test.selectbox(key=one_weight.KEY_CHOICE).set_value(place).run())
    check(go_to(test, 4))


def test_vectors_of_all_tokens_are_drawn_when_they_are_asked_for(walking, reverse):
    test = walking(kind="cross", layer=1, head=1)
    assert not [element for element in test.get("bidi_component") if element.key in VECTORS]
    test.session_state[one_weight.VECTORS] = True
    check(test.run())
    for row, (key, name) in enumerate(zip(VECTORS, "qkv", strict=True)):
        drawn = numbers(figure(test, key)["data"][0]["z"])
        assert drawn.shape == (6, 16)
        for query in (0, 4):
            found = by_hand(reverse, kind="cross", layer=0, head=0, query=query)[name]
            assert np.allclose(drawn[query] if row == 0 else drawn, found, atol=1e-5)


@pytest.mark.parametrize(("said", "key"), [(3, 3), (0, 0), (-1, None), ("3", None), ({"key": 3}, None), (None, None)])
def test_a_click_names_a_key_or_nothing(said, key):
    assert place_of(Click(curve=0, index=(0,), customdata=said)) == key


@pytest.mark.usefixtures("made_up_changes")
def test_a_change_within_the_steps_is_said_and_one_elsewhere_is_not(walking):
    within = walking(kind="cross", layer=1, head=2, do="silent-cross.1.2")
    assert "something inside this attention sub-layer was changed" in within.warning[0].value
    assert not walking(kind="cross", layer=1, head=2, do="silent-cross.2.1").warning
