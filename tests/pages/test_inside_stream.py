"""The residual stream of the Inside page without a browser: its numbers are made again from what was recorded."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from glassformer.inside.stream import stream_pictures
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import address, charts_of, figure, go_to, numbers, opened, payload, step, told, type_source
from transformer.runs.replay import replay


@pytest.fixture
def page(open_page):
    """A function that opens the part: `page(model="reverse", side="target")`."""
    return lambda **parameters: open_page(INSIDE, inside="stream", **parameters)


def recorded(test):
    name = test.session_state[session.MODEL] or loading.DEFAULT_NAME
    checkpoint = opened(name)
    trace = loading.runner().trace(checkpoint, checkpoint.query(test.text_input(key=session.SOURCE).value))
    return checkpoint, trace, replay(checkpoint, trace, ["encoder.*", "decoder.*"])


def streams(checkpoint, found, stack):
    """The stream at each place: embedding, sums, and the final norm by torch; and what was added [place][T, D]."""
    parts = ("self_attn", "ffn") if stack == "encoder" else ("self_attn", "cross_attn", "ffn")
    layers = getattr(checkpoint.config, f"n_{stack}_layers")
    added = [found[f"{stack}.{layer}.{part}.output"] for layer in range(layers) for part in parts]
    here = [found[f"{stack}.embedding.output"]]
    for output in added:
        here.append(here[-1] + output)
    norm = getattr(checkpoint.model, stack).final_norm
    last = F.layer_norm(torch.tensor(here[-1]), here[-1].shape[-1:], norm.weight, norm.bias, norm.eps)
    return np.stack([*here, last.detach().numpy()]), np.stack(added)


def root_mean_square(vectors):
    return np.sqrt((vectors.astype(float) ** 2).mean(-1))


def by_token(test, key, chosen, n_tokens):
    """The lines of a chart as [place, token]."""
    weak, strong = figure(test, key)["data"]
    lines = dict(zip(sorted(set(weak["customdata"])), numbers(weak["y"]).reshape(n_tokens - 1, -1), strict=True))
    lines[strong["customdata"][0]] = numbers(strong["y"])
    assert strong["customdata"][0] == chosen
    return np.stack([lines[token] for token in range(n_tokens)])[:, :-1].T


@pytest.mark.parametrize(("name", "side"), [
    ("zh-en", "source"), ("zh-en", "target"), ("en-fr", "target"), ("reverse", "source"), ("reverse", "target"),
])  # fmt: skip
def test_sizes_cosines_and_what_was_added_are_the_models_own(page, name, side):
    test = page(model=name, side=side, step=3, key=2)
    checkpoint, trace, found = recorded(test)
    expected, added = streams(checkpoint, found, "encoder" if side == "source" else "decoder")
    chosen = 1 if side == "source" else 2
    n_tokens = expected.shape[1]
    sizes = by_token(test, stream_pictures.size.key, chosen, n_tokens)
    np.testing.assert_allclose(sizes, root_mean_square(expected), rtol=1e-4)
    start = expected[0] / np.linalg.norm(expected[0], axis=-1, keepdims=True)
    cosines = (expected * start).sum(-1) / np.linalg.norm(expected, axis=-1)
    np.testing.assert_allclose(by_token(test, stream_pictures.kept.key, chosen, n_tokens), cosines, atol=1e-4)
    before, new = (numbers(bars["y"]) for bars in figure(test, stream_pictures.added.key)["data"])
    np.testing.assert_allclose(before, root_mean_square(expected[:-2, chosen]), rtol=1e-4)
    np.testing.assert_allclose(new, root_mean_square(added[:, chosen]), rtol=1e-4)
    means = root_mean_square(expected).mean(-1)
    assert f"root mean square goes from {means[0]:.2f} to {means[-2]:.2f}" in told(test)
    assert f"final norm brings the root mean square to {means[-1]:.2f}" in told(test)
    assert trace.n_steps > 2


@pytest.mark.parametrize("place", [0, 3, -1])
def test_a_norm_is_shown_before_and_after(page, place):
    test = page(model="reverse", src="abcdef", key=3)
    checkpoint, _, found = recorded(test)
    expected, _ = streams(checkpoint, found, "encoder")
    options = test.selectbox(key="norm").options
    check(test.selectbox(key="norm").select_index(place % len(options)).run())
    layers = checkpoint.model.encoder.layers
    norms = [norm for layer in layers for norm in (layer.self_attn_residual.norm, layer.ffn_residual.norm)]
    norm, read = [*norms, checkpoint.model.encoder.final_norm][place], torch.tensor(expected[:-1][place])
    after = F.layer_norm(read, read.shape[-1:], norm.weight, norm.bias, norm.eps).detach()
    shown = [numbers(marks["y"]) for marks in figure(test, stream_pictures.norm.key)["data"]]
    wanted = [read.mean(-1), after.mean(-1), read.std(-1, correction=0), after.std(-1, correction=0)]
    for values, expectation in zip(shown, wanted, strict=True):
        np.testing.assert_allclose(values, expectation, atol=1e-4)
    rows = numbers(figure(test, stream_pictures.strip.key)["data"][0]["z"])
    np.testing.assert_allclose(rows[0], read[2], atol=1e-4)
    np.testing.assert_allclose(rows[1] * norm.weight.detach().numpy() + norm.bias.detach().numpy(), rows[2], atol=1e-4)
    np.testing.assert_allclose(rows[2], after[2], atol=1e-4)


def test_the_token_of_the_output_is_the_one_of_the_step(page):
    test = page(model="reverse", src="abcdef", side="target")
    check(test.selectbox(key="stream_token").set_value(3).run())
    assert step(test) == 4
    check(go_to(test, 2))
    assert test.selectbox(key="stream_token").index == 0  # that of the step, which the browser may have left
    assert "stream of f → e" in figure(test, stream_pictures.added.key)["layout"]["title"]["text"]


def test_a_source_token_is_chosen_and_stays_in_the_address(page):
    test = page(model="reverse", src="abcdef")
    check(test.selectbox(key="stream_token").set_value(2).run())
    assert address(test)["key"] == "3"
    assert "stream of c" in figure(test, stream_pictures.added.key)["layout"]["title"]["text"]
    assert step(test) == 1


def test_a_side_without_that_norm_goes_back_to_the_first(page):
    test = page(model="reverse", src="abc", side="target")
    last = len(test.selectbox(key="norm").options) - 1
    check(test.selectbox(key="norm").select_index(last).run())
    check(next(c for c in test.segmented_control if c.key == "side").set_value("source").run())
    assert test.selectbox(key="norm").value == 0


def test_guessing_hides_the_tokens_still_to_come(page):
    test = page(model="reverse", src="abcdef", side="target", guess=1, step=3)
    options = test.selectbox(key="stream_token").options[1:]
    assert len(options) == 3
    assert options[-1].endswith("→ ?")
    assert len(set(figure(test, stream_pictures.size.key)["data"][0]["customdata"])) == 2
    assert len(numbers(figure(test, stream_pictures.norm.key)["data"][0]["y"])) == 3
    for key in charts_of(test):
        assert "→ d" not in str(payload(test, key))


def test_a_long_sentence_stays_small(page):
    long = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里" * 3
    test = page(model="zh-en", src=long, side="target")
    assert charts_of(test) == set(stream_pictures.STREAM.pictures)
    assert sum(len(element.proto.json) for element in test.get("bidi_component")) < 270_000


def test_without_a_sentence_there_is_nothing(page):
    assert not charts_of(type_source(page(model="reverse"), ""))
