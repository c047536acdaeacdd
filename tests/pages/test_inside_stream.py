"""The residual stream of the Inside page is drawn of the chosen token, side and norm, and nothing still to come."""

import numpy as np
import pytest

from glassformer.inside.stream import stream_pictures
from glassformer.runs import loading
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import address, charts_of, figure, go_to, numbers, opened, payload, step
from transformer.analysis.stream import measure, sites
from transformer.runs.replay import replay

LONG = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里" * 3


@pytest.fixture
def page(open_page):
    """A function that opens the part: `page(model="reverse", side="target")`."""
    return lambda **parameters: open_page(INSIDE, inside="stream", **parameters)


def title(test, picture):
    return figure(test, picture.key)["layout"]["title"]["text"]


@pytest.mark.parametrize(("side", "stack", "token"), [("source", "encoder", 1), ("target", "decoder", 2)])
def test_sizes_and_what_was_added_are_of_the_chosen_token(page, side, stack, token):
    test, checkpoint = page(model="zh-en", side=side, step=3, key=2), opened("zh-en")
    trace = loading.runner().trace(checkpoint, checkpoint.query(checkpoint.card.examples[0]))
    n_tokens = len(trace.src_ids) if side == "source" else trace.n_steps
    recorded = replay(checkpoint, trace, sites(checkpoint.config, stack))
    found = measure(recorded, checkpoint.config, stack, n_tokens=n_tokens)
    before, new = (numbers(bars["y"]) for bars in figure(test, stream_pictures.added.key)["data"])
    np.testing.assert_allclose(before, found.before[:, token], rtol=1e-4)
    np.testing.assert_allclose(new, found.added[:, token], rtol=1e-4)
    weak, strong = figure(test, stream_pictures.size.key)["data"]
    assert set(strong["customdata"]) == {token}
    assert set(weak["customdata"]) == {*range(n_tokens)} - {token}


def test_a_norm_is_shown_before_and_after(page):
    test, checkpoint = page(model="reverse", src="abcdef", key=3, norm=4), opened("reverse")
    trace = loading.runner().trace(checkpoint, checkpoint.query("abcdef"))
    norm, names = checkpoint.model.encoder.layers[1].ffn_residual.norm, ("1.self_attn.residual", "1.ffn.norm")
    found = replay(checkpoint, trace, [f"encoder.{name}" for name in names])
    read, after = (found[f"encoder.{name}"] for name in names)
    shown = [numbers(marks["y"]) for marks in figure(test, stream_pictures.norm.key)["data"]]
    for values, expected in zip(shown, [read.mean(-1), after.mean(-1), read.std(-1), after.std(-1)], strict=True):
        np.testing.assert_allclose(values, expected, atol=1e-4)
    rows = numbers(figure(test, stream_pictures.strip.key)["data"][0]["z"])
    np.testing.assert_allclose(rows[0], read[2], atol=1e-4)
    np.testing.assert_allclose(rows[1] * norm.weight.detach().numpy() + norm.bias.detach().numpy(), rows[2], atol=1e-4)
    np.testing.assert_allclose(rows[2], after[2], atol=1e-4)


def test_a_token_of_the_output_is_that_of_the_step_and_one_of_the_source_stays_in_the_address(page):
    test = page(model="reverse", src="abcdef", side="target")
    check(test.selectbox(key="stream_token").set_value(3).run())
    assert step(test) == 4
    check(go_to(test, 2))
    assert test.selectbox(key="stream_token").index == 0  # that of the step, which the browser may have left
    assert "stream of f → e" in title(test, stream_pictures.added)
    test = page(model="reverse", src="abcdef")
    check(test.selectbox(key="stream_token").set_value(2).run())
    assert (address(test)["key"], step(test)) == ("3", 1)
    assert "stream of c" in title(test, stream_pictures.added)


def test_a_side_without_that_norm_goes_back_to_the_first(page):
    test = page(model="reverse", src="abc", side="target")
    last = len(test.selectbox(key="norm").options) - 1
    check(test.selectbox(key="norm").select_index(last).run())
    check(next(c for c in test.segmented_control if c.key == "side").set_value("source").run())
    assert test.selectbox(key="norm").value == 0


def test_guessing_hides_the_tokens_still_to_come(page):
    test = page(model="reverse", src="abcdef", side="target", guess=1, step=3)
    options = test.selectbox(key="stream_token").options[1:]
    assert (len(options), options[-1].endswith("→ ?")) == (3, True)
    assert len(set(figure(test, stream_pictures.size.key)["data"][0]["customdata"])) == 2
    assert len(numbers(figure(test, stream_pictures.norm.key)["data"][0]["y"])) == 3
    assert not [key for key in charts_of(test) if "→ d" in str(payload(test, key))]


def test_a_long_sentence_stays_small(page):
    test = page(model="zh-en", src=LONG, side="target")
    assert charts_of(test) == set(stream_pictures.STREAM.pictures)
    assert sum(len(element.proto.json) for element in test.get("bidi_component")) < 270_000
