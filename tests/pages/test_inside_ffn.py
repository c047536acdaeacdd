"""The feed-forward part of the Inside page draws the activations of the chosen token, layer and neuron."""

import json

import numpy as np
import pytest

from glassformer.inside.ffn import ffn_panel, ffn_pictures
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import address, charts_of, figure, go_to, numbers, opened, step, told
from transformer.runs.replay import replay

STACKS = {"source": "encoder", "target": "decoder"}


@pytest.fixture
def page(open_page):
    """A function that opens the part: `page(model="reverse", side="target")`."""
    return lambda **parameters: open_page(INSIDE, inside="ffn", **parameters)


def activations(name, side, layer, source=None):
    """Of all tokens of a run [token, neuron]."""
    checkpoint = opened(name)
    trace = loading.runner().trace(checkpoint, checkpoint.query(source or checkpoint.card.examples[0]))
    site = f"{STACKS[side]}.{layer}.ffn.activation"
    return replay(checkpoint, trace, [site])[site][: len(trace.src_ids) if side == "source" else trace.n_steps]


@pytest.mark.parametrize(("name", "side", "layer", "token"), [("en-fr", "target", 2, 3), ("reverse", "source", 1, 2)])
def test_what_is_drawn_is_of_the_layer_and_the_token_that_are_chosen(page, name, side, layer, token):
    test = page(model=name, side=side, layer=layer + 1, **{"key" if side == "source" else "step": token + 1})
    found = activations(name, side, layer)
    shares = figure(test, "ffn_shares")
    np.testing.assert_allclose(numbers(shares["data"][0]["z"])[layer], (found == 0).mean(1), atol=2e-3)
    frame = shares["layout"]["shapes"][0]
    assert (frame["x0"] + 0.5, frame["y0"] + 0.5) == (token, layer)
    active = figure(test, "ffn_active")["data"][0]
    order = np.argsort(-found[token])[: ffn_pictures.MOST_LISTED]
    assert active["customdata"] == order.tolist()
    np.testing.assert_allclose(numbers(active["x"]), found[token, order], atol=1e-4)
    np.testing.assert_allclose(numbers(figure(test, "ffn_tokens")["data"][0]["y"]), found[:, order[0]], atol=1e-4)
    shown = figure(test, "ffn_map")
    columns = [int(label) - 1 for label in shown["layout"]["meta"]["ticks"]["xaxis"]["labels"]]
    np.testing.assert_allclose(numbers(shown["data"][0]["z"]), found[:, columns], atol=1e-4)
    assert len(shown["layout"]["shapes"]) == 2  # the row of the token, the cell of the neuron


def test_side_layer_token_and_neuron_stay_in_the_address(page):
    test = page(model="reverse", src="abcdef")
    check(test.number_input(key=ffn_panel.NEURON).set_value(9).run())
    assert address(test)["neuron"] == "9"
    assert "neuron 9 of layer 1" in figure(test, "ffn_tokens")["layout"]["title"]["text"]
    check(test.selectbox(key=ffn_panel.TOKEN).set_value(3).run())
    assert (address(test)["key"], address(test)["neuron"]) == ("4", "9")
    check(test.selectbox(key=ffn_panel.LAYER).set_value(1).run())
    assert address(test)["layer"] == "2"
    assert "neuron" not in address(test)  # of another layer it is another neuron
    check(next(c for c in test.segmented_control if c.key == "side").set_value("target").run())
    assert address(test)["side"] == "target"
    check(test.selectbox(key=ffn_panel.TOKEN).set_value(2).run())
    assert step(test) == 3
    assert "e → d" in figure(test, "ffn_active")["layout"]["title"]["text"]


def test_guessing_hides_what_is_still_to_come(page):
    test = go_to(page(model="reverse", src="abcdef", side="target", guess=1), 3)
    labels = [label.split(" → ") for label in figure(test, "ffn_tokens")["layout"]["meta"]["ticks"]["xaxis"]["labels"]]
    assert [read for read, _ in labels] == ["&#60;s&#62;", "f", "e"]
    assert labels[-1][1] == "?"
    assert numbers(figure(test, "ffn_shares")["data"][0]["z"]).shape == (2, 3)
    assert numbers(figure(test, "ffn_map")["data"][0]["z"]).shape[0] == 3
    seen = activations("reverse", "target", 0, "abcdef")[:3]
    assert f"{(seen == 0).mean():.1%} of this layer's activations" in told(test)
    assert "ffn_effect" not in charts_of(test)
    check(test.button(key=ffn_panel.REVEAL).click().run())
    assert "ffn_effect" in charts_of(test)
    assert numbers(figure(test, "ffn_map")["data"][0]["z"]).shape[0] == 3


def test_a_long_sentence_with_markup_stays_small_and_text(page):
    test = page(model="zh-en", src="<b>$x$</b>我喜欢喝咖啡" * 5)
    assert sum(len(e.proto.json) for e in test.get("bidi_component") if e.key != session.STEPPER) < 150_000
    assert "<b>" not in json.dumps(figure(test, "ffn_map")["layout"]["meta"]["ticks"])
    assert "<b>$" not in figure(test, "ffn_active")["layout"]["title"]["text"]
