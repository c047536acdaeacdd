"""The logit lens of the Inside page without a browser: its numbers are made again from the parameters."""

import numpy as np
import pytest

from glassformer.inside.lens import lens_pictures
from glassformer.runs import loading
from glassformer.state import session
from tests.pages.conftest import INSIDE, check
from tests.pages.reading import (
    address,
    charts_of,
    everything,
    figure,
    go_to,
    numbers,
    opened,
    payload,
    sentences,
    step,
    told,
    type_source,
)
from transformer.runs.replay import replay


@pytest.fixture
def page(open_page):
    """A function that opens the lens: `page(model="reverse", step=2)`."""
    return lambda **parameters: open_page(INSIDE, inside="lens", **parameters)


def trace_of(test):
    name = test.session_state[session.MODEL] or loading.DEFAULT_NAME
    checkpoint = opened(name)
    source = test.text_input(key=session.SOURCE).value
    return checkpoint, loading.runner().trace(checkpoint, checkpoint.query(source))


def predictions(test, *, every=3):
    """Probabilities [depth, step, piece], from the streams and the parameters alone, in float64."""
    checkpoint, trace = trace_of(test)
    sublayers = [(layer, part) for layer in range(checkpoint.config.n_decoder_layers)
                 for part in ("self_attn", "cross_attn", "ffn")]  # fmt: skip
    sites = [f"decoder.{layer}.{part}.residual" for layer, part in sublayers][every - 1 :: every]
    found = replay(checkpoint, trace, ["decoder.embedding.output", *sites])
    x = np.stack([found[site][: trace.n_steps] for site in ("decoder.embedding.output", *sites)]).astype(float)
    state = {name: value.double().numpy() for name, value in checkpoint.model.state_dict().items()}
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + checkpoint.config.norm_eps)
    x = x * state["decoder.final_norm.weight"] + state["decoder.final_norm.bias"]
    exps = np.exp(x @ state["src_table" if checkpoint.config.shared_vocab else "tgt_table"].T)
    return trace, exps / exps.sum(-1, keepdims=True)


def choose(test, key, value):
    return check(next(c for c in test.segmented_control if c.key == key).set_value(value).run())


@pytest.mark.parametrize("name", ["zh-en", "en-fr", "reverse"])
@pytest.mark.parametrize("depths", ["layer", "sublayer"])
def test_the_table_the_curves_and_the_map_are_the_models_own_numbers(page, name, depths):
    test = page(model=name, step=2)
    if depths == "sublayer":
        test = choose(test, "depths", depths)
    trace, probs = predictions(test, every=3 if depths == "layer" else 1)
    chosen, steps = trace.tgt_ids[1], np.arange(trace.n_steps)
    table = figure(test, lens_pictures.table.key)
    best = -np.sort(-probs[:, 1])[:, :5]
    np.testing.assert_allclose(numbers(table["data"][0]["z"]), best, rtol=1e-3, atol=1e-7)
    for depth, place, piece, probability, is_chosen in table["layout"]["meta"]["table"]["rows"]:
        assert piece in trace.vocabulary, (depth, place)
        assert is_chosen == (piece == trace.tgt_pieces[1])
        assert probability in best.astype(np.float32) or np.isclose(best, probability, rtol=1e-3).any()
    probability, rank, entropy, divergence = (
        numbers(line["y"]) for line in figure(test, lens_pictures.curves.key)["data"]
    )
    np.testing.assert_allclose(probability, probs[:, 1, chosen], rtol=1e-3, atol=1e-9)
    places = (probs > probs[:, steps, trace.tgt_ids][:, :, None]).sum(-1) + 1
    assert rank.tolist() == places[:, 1].tolist()
    np.testing.assert_allclose(entropy, -(probs[:, 1] * np.log2(probs[:, 1])).sum(-1), atol=1e-3)
    expected = (probs[-1, 1] * np.log2(probs[-1, 1] / probs[:, 1])).sum(-1)
    np.testing.assert_allclose(divergence, expected, rtol=1e-3, atol=1e-3)
    shown = figure(test, lens_pictures.lens_map.key)
    np.testing.assert_allclose(numbers(shown["data"][0]["z"]), probs[:, steps, trace.tgt_ids], rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(
        numbers(shown["data"][0]["z"])[-1], np.exp(trace.log_probs[steps, trace.tgt_ids]), rtol=1e-4
    )
    settled = [max(d for d in range(len(probs)) if (places[d:, t] == 1).all() and (d == 0 or places[d - 1, t] > 1))
               for t in steps if places[-1, t] == 1]  # fmt: skip
    dots = shown["data"][-1]
    assert numbers(dots["y"]).tolist() == settled
    assert [len(label) > 0 for label in shown["layout"]["meta"]["ticks"]["yaxis"]["labels"]] == [True] * len(probs)


def test_places_may_be_coloured_instead(page):
    test = choose(page(model="reverse", src="abcdef"), "lens_colour", "rank")
    trace, probs = predictions(test)
    own = probs[:, np.arange(trace.n_steps), trace.tgt_ids]
    assert (
        numbers(figure(test, lens_pictures.lens_map.key)["data"][0]["z"]).tolist()
        == ((probs > own[:, :, None]).sum(-1) + 1).tolist()
    )


def test_words_say_where_the_piece_came_to_the_top(page):
    test = page(model="zh-en")
    trace, probs = predictions(test)
    for number, piece in enumerate(trace.tgt_pieces, start=1):
        check(go_to(test, number))
        tops = probs[:, number - 1].argmax(-1) == trace.tgt_ids[number - 1]
        stays = next(depth for depth in range(len(tops)) if tops[depth:].all())
        assert f"Step {number}: “{piece}” " in told(test)
        if not tops[:stays].any() and stays:
            prob = probs[stays, number - 1, trace.tgt_ids[number - 1]]
            assert f"top candidate after layer {stays}, with a probability of {prob:.2f}" in told(test)


def test_the_map_takes_clicks_and_frames_the_step(page):
    test = page(model="reverse", src="abcdef", step=4)
    assert payload(test, lens_pictures.lens_map.key)["clickable"]
    frame = figure(test, lens_pictures.lens_map.key)["layout"]["shapes"][0]
    assert (frame["x0"], frame["x1"]) == (2.5, 3.5)


def test_guessing_hides_this_step_until_it_is_revealed_and_all_later_ones(page):
    test = page(model="reverse", src="abcdef", guess=1, step=3)
    assert charts_of(test) == {lens_pictures.lens_map.key}
    shown = figure(test, lens_pictures.lens_map.key)
    assert np.shape(numbers(shown["data"][0]["z"]))[1] == 2
    columns = shown["layout"]["meta"]["cells"]["columns"]
    assert [column.partition(": ")[0] for column in columns] == ["step 1", "step 2"]
    for later in ("→ d", "→ c", "→ ▁d", "→ ▁c", "How d came"):
        assert later not in everything(test) + told(test)
    assert "Depth from which each step's piece stays the top candidate, for these 2 steps" in told(test)
    check(test.button(key="lens_reveal").click().run())
    assert charts_of(test) == {lens_pictures.lens_map.key, lens_pictures.table.key, lens_pictures.curves.key}
    shown = figure(test, lens_pictures.lens_map.key)
    assert numbers(shown["data"][0]["z"]).shape[1] == 3
    assert len(shown["layout"]["meta"]["cells"]["columns"]) == 3
    check(go_to(test, 4))
    assert charts_of(test) == {lens_pictures.lens_map.key}


def test_the_first_covered_step_shows_nothing(page):
    test = page(model="reverse", src="abcdef", guess=1)
    assert charts_of(test) == set()
    assert "What comes next?" in sentences(test)


def test_a_long_sentence_stays_small(page):
    long = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里" * 3
    test = choose(page(model="zh-en", src=long, step=9), "depths", "sublayer")
    assert step(test) == 9
    assert sum(len(element.proto.json) for element in test.get("bidi_component")) < 250_000


def test_markup_in_pieces_stays_text(page):
    test = page(model="zh-en", src="<b>$x$</b>")
    assert "<b>$" not in figure(test, lens_pictures.table.key)["layout"]["title"]["text"]
    assert address(test)["inside"] == "lens"


def test_without_a_sentence_there_is_nothing(page):
    assert not charts_of(type_source(page(model="reverse"), ""))
