"""The feed-forward part of the Inside page without a browser: its numbers are made again with plain numpy."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from glassformer.inside.ffn import ffn_panel as ffn_panels
from glassformer.inside.ffn import ffn_pictures
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import INSIDE, ROOT, check
from tests.pages.reading import address, charts_of, everything, figure, go_to, numbers, opened, payload, step, told
from transformer.checkpoint.save import CheckpointContents, save
from transformer.model.transformer import Transformer
from transformer.runs.replay import replay

STACKS = {"source": "encoder", "target": "decoder"}


@pytest.fixture
def page(open_page):
    """A function that opens the part: `page(model="reverse", side="target")`."""
    return lambda **parameters: open_page(INSIDE, inside="ffn", **parameters)


def run_of(name, source=None):
    checkpoint = opened(name)
    return checkpoint, loading.runner().trace(checkpoint, checkpoint.query(source or checkpoint.card.examples[0]))


def by_hand(checkpoint, trace, side, layer):
    """Pre-activations, activations and parameters of a layer: from what the sub-layer read, in float64."""
    stack = STACKS[side]
    read = replay(checkpoint, trace, [f"{stack}.{layer}.ffn.norm"])[f"{stack}.{layer}.ffn.norm"].astype(float)
    ffn = getattr(checkpoint.model, stack).layers[layer].ffn
    up, bias, down = (
        p.detach().numpy().astype(float) for p in (ffn.up_proj.weight, ffn.up_proj.bias, ffn.down_proj.weight)
    )
    before = read @ up.T + bias
    return before, np.where(before > 0, before, 0), down


@pytest.mark.parametrize(
    ("name", "side", "layer", "token"),
    [("zh-en", "source", 0, 1), ("en-fr", "target", 2, 3), ("reverse", "source", 1, 2), ("reverse", "target", 0, 4)],
)
def test_all_numbers_are_those_of_the_parameters(page, name, side, layer, token):
    place = {"key": token + 1} if side == "source" else {"step": token + 1}
    test = page(model=name, side=side, layer=layer + 1, **place)
    checkpoint, trace = run_of(name)
    n_tokens = len(trace.src_ids) if side == "source" else trace.n_steps
    before, after, down = by_hand(checkpoint, trace, side, layer)
    n_layers = len(getattr(checkpoint.model, STACKS[side]).layers)
    shares = [(by_hand(checkpoint, trace, side, at)[1] == 0).mean(1) for at in range(n_layers)]
    drawn = figure(test, "ffn_shares")
    np.testing.assert_allclose(numbers(drawn["data"][0]["z"]), shares, atol=2e-3)
    written = [note["text"] for note in drawn["layout"].get("annotations", ())]
    assert len(written) == (n_layers * n_tokens if n_tokens <= ffn_pictures.MOST_WRITTEN else 0)
    frame = drawn["layout"]["shapes"][0]
    assert (frame["x0"] + 0.5, frame["y0"] + 0.5) == (token, layer)
    assert f"{np.mean(shares[layer]):.1%} of this layer's activations are exactly 0" in told(test)

    bars, own = figure(test, "ffn_histogram")["data"][:2]
    edges = numbers(bars["x"]) - numbers(bars["width"]) / 2
    edges = np.append(edges, edges[-1] + numbers(bars["width"])[-1])
    expected = np.histogram(before, edges)[0] / before.size
    np.testing.assert_allclose(numbers(bars["y"]), expected, atol=2e-3)
    expected = np.histogram(before[token], edges)[0] / before.shape[1]
    np.testing.assert_allclose(numbers(own["y"]), expected, atol=5e-3)

    active = figure(test, "ffn_active")["data"][0]
    order = np.argsort(-after[token])[: ffn_pictures.MOST_LISTED]
    assert active["customdata"] == order.tolist()
    np.testing.assert_allclose(numbers(active["x"]), after[token, order], atol=1e-4)
    lengths = np.sqrt((down**2).sum(0))
    rows = figure(test, "ffn_active")["layout"]["meta"]["table"]["rows"]
    np.testing.assert_allclose([row[3] for row in rows], after[token, order] * lengths[order], atol=1e-4)
    first = figure(test, "ffn_active")["layout"]["annotations"][0]["text"]
    assert first == f"{after[token, order[0]]:#.3g} ({after[token, order[0]] * lengths[order[0]]:#.3g})"

    neuron = order[0]
    np.testing.assert_allclose(numbers(figure(test, "ffn_tokens")["data"][0]["y"]), after[:, neuron], atol=1e-4)
    assert f"adds its column of W_down to the stream: a vector of length {lengths[neuron]:.3f}" in told(test)
    shown = figure(test, "ffn_map")
    columns = [int(label) - 1 for label in shown["layout"]["meta"]["ticks"]["xaxis"]["labels"]]
    assert set(columns) == set(np.argsort(-after.max(0))[: ffn_pictures.MOST_MAPPED].tolist())
    peaks = after[:, columns].argmax(0)
    assert (np.diff(peaks) >= 0).all()
    np.testing.assert_allclose(numbers(shown["data"][0]["z"]), after[:, columns], atol=1e-4)
    assert len(shown["layout"]["shapes"]) == 2  # the row of the token, the cell of the neuron
    assert numbers(shown["data"][0]["z"]).shape == (n_tokens, len(columns))


@pytest.mark.parametrize(("name", "layer"), [("zh-en", 2), ("reverse", 0)])
def test_the_direct_effect_goes_through_the_final_norm_and_the_output(page, name, layer):
    test = page(model=name, side="target", layer=layer + 1, step=2, neuron=6)
    checkpoint, trace = run_of(name)
    model, last = checkpoint.model, checkpoint.config.n_decoder_layers - 1
    _, after, down = by_hand(checkpoint, trace, "target", layer)
    stream = replay(checkpoint, trace, [f"decoder.{last}.output"])[f"decoder.{last}.output"][1].astype(float)
    norm, table = model.decoder.final_norm, model.target_table.detach().numpy().astype(float)
    vector = (down[:, 5] - down[:, 5].mean()) * norm.weight.detach().numpy() / np.sqrt(stream.var() + norm.eps)
    effect = table @ vector
    effect -= effect.mean()
    order = np.argsort(-effect)
    ids = [*order[:8], *order[-8:]]
    rows = figure(test, "ffn_effect")["layout"]["meta"]["table"]["rows"]
    assert [row[2] for row in rows] == ids
    assert [row[0] for row in rows] == [trace.vocabulary[i] for i in ids]
    np.testing.assert_allclose([row[1] for row in rows], effect[ids], rtol=1e-3, atol=1e-6)
    change = effect[trace.tgt_ids[1]] * after[1, 5]
    found = float(
        payload(test, "ffn_effect")["said"]["below"].rpartition(" = ")[2].split()[0].rstrip(".").replace("−", "-")
    )
    assert found == pytest.approx(change, abs=6e-4)


def test_side_layer_token_and_neuron_stay_in_the_address(page):
    test = page(model="reverse", src="abcdef")
    check(test.number_input(key=ffn_panels.NEURON).set_value(9).run())
    assert address(test)["neuron"] == "9"
    assert "neuron 9 of layer 1" in figure(test, "ffn_tokens")["layout"]["title"]["text"]
    check(test.selectbox(key=ffn_panels.TOKEN).set_value(3).run())
    assert (address(test)["key"], address(test)["neuron"]) == ("4", "9")
    check(test.selectbox(key=ffn_panels.LAYER).set_value(1).run())
    assert address(test)["layer"] == "2"
    assert "neuron" not in address(test)  # of another layer it is another neuron
    check(next(c for c in test.segmented_control if c.key == "side").set_value("target").run())
    assert address(test)["side"] == "target"
    check(test.selectbox(key=ffn_panels.TOKEN).set_value(2).run())
    assert step(test) == 3
    assert "c → b" not in figure(test, "ffn_active")["layout"]["title"]["text"]
    assert "e → d" in figure(test, "ffn_active")["layout"]["title"]["text"]


def test_guessing_hides_what_is_still_to_come(page):
    test = page(model="reverse", src="abcdef", side="target", guess=1)
    go_to(test, 3)
    labels = [label.split(" → ") for label in figure(test, "ffn_tokens")["layout"]["meta"]["ticks"]["xaxis"]["labels"]]
    assert [read for read, _ in labels] == ["&#60;s&#62;", "f", "e"]
    assert labels[-1][1] == "?"
    assert numbers(figure(test, "ffn_shares")["data"][0]["z"]).shape == (2, 3)
    assert numbers(figure(test, "ffn_map")["data"][0]["z"]).shape[0] == 3
    checkpoint, trace = run_of("reverse", "abcdef")
    before, after, _ = by_hand(checkpoint, trace, "target", 0)
    assert f"{(after[:3] == 0).mean():.1%} of this layer's activations" in told(test)
    bars = figure(test, "ffn_histogram")["data"][0]
    edges = np.append(
        numbers(bars["x"]) - numbers(bars["width"]) / 2, numbers(bars["x"])[-1] + numbers(bars["width"])[-1]
    )
    seen, all_of_it = (np.histogram(values, edges)[0] / values.size for values in (before[:3], before))
    np.testing.assert_allclose(numbers(bars["y"]), seen, atol=2e-3)
    assert np.abs(all_of_it - seen).max() > 4e-3
    assert "ffn_effect" not in charts_of(test)
    check(test.button(key=ffn_panels.REVEAL).click().run())
    assert "ffn_effect" in charts_of(test)
    assert numbers(figure(test, "ffn_map")["data"][0]["z"]).shape[0] == 3


def test_a_long_sentence_with_markup_stays_small_and_text(page):
    test = page(model="zh-en", src="<b>$x$</b>我喜欢喝咖啡" * 5)
    assert sum(len(e.proto.json) for e in test.get("bidi_component") if e.key != session.STEPPER) < 150_000
    assert "<b>" not in json.dumps(figure(test, "ffn_map")["layout"]["meta"]["ticks"])
    assert "<b>$" not in figure(test, "ffn_active")["layout"]["title"]["text"]
    assert everything(test)


@pytest.fixture
def post_norm(tmp_path, monkeypatch):
    """A checkpoint beside the shipped ones: post-norm, GELU, more encoder layers, an output table of its own."""
    config = replace(
        run_of("reverse")[0].config, norm="post", final_norm=False, activation="gelu", tie_output=False,
        n_encoder_layers=3,
    )  # fmt: skip
    torch.manual_seed(3)
    pieces = (ROOT / "checkpoints" / "reverse" / "pieces.model").read_bytes()
    card = {"title": "Untrained", "description": "It writes nonsense.", "examples": ["abc"]}
    save(CheckpointContents(config, Transformer(config).state_dict(), (pieces,), card), tmp_path / "untrained")
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    return "untrained"


def test_a_gelu_is_hardly_ever_0_and_post_norms_are_all_passed(page, post_norm):
    test = page(model=post_norm, side="target", layer=1, step=2, neuron=4)
    checkpoint, trace = run_of(post_norm)
    sites = ["decoder.0.cross_attn.norm", "decoder.0.ffn.residual", *(
        f"decoder.1.{part}.residual" for part in ("self_attn", "cross_attn", "ffn"))]  # fmt: skip
    found = replay(checkpoint, trace, sites)
    read, *streams = (found[site].astype(float) for site in sites)
    layers = checkpoint.model.decoder.layers
    ffn = layers[0].ffn
    before = read @ ffn.up_proj.weight.detach().numpy().T.astype(float) + ffn.up_proj.bias.detach().numpy()
    after = before * 0.5 * (1 + np.vectorize(math.erf)(before / math.sqrt(2)))
    assert f"{(np.abs(after) < 0.01).mean():.1%} of this layer's activations are within 0.01 of 0" in told(test)
    np.testing.assert_allclose(
        numbers(figure(test, "ffn_shares")["data"][0]["z"])[0], (np.abs(after) < 0.01).mean(1), atol=1e-6
    )
    np.testing.assert_allclose(numbers(figure(test, "ffn_tokens")["data"][0]["y"]), after[:, 3], atol=1e-5)
    assert "GELU" in figure(test, "ffn_histogram")["layout"]["title"]["text"]
    vector = ffn.down_proj.weight.detach().numpy()[:, 3].astype(float)
    norms = [layers[0].ffn_residual.norm, *(
        getattr(layers[1], f"{part}_residual").norm for part in ("self_attn", "cross_attn", "ffn"))]  # fmt: skip
    for norm, stream in zip(norms, streams, strict=True):
        vector = norm.weight.detach().numpy() * (vector - vector.mean()) / np.sqrt(stream[1].var() + norm.eps)
    effect = checkpoint.model.output_table.detach().numpy().astype(float) @ vector
    effect -= effect.mean()
    rows = figure(test, "ffn_effect")["layout"]["meta"]["table"]["rows"]
    np.testing.assert_allclose([row[1] for row in rows], effect[[row[2] for row in rows]], rtol=1e-3, atol=1e-5)
    assert rows[0][1] == pytest.approx(effect.max(), rel=1e-3)
    assert page(model=post_norm, layer=2).session_state[ffn_panels.LAYER] == 1
