"""The Positions page without a browser: its numbers are made again from the checkpoint's parameters."""

import json
import math

import numpy as np
import pytest

from glassformer.positions import position_controls
from glassformer.positions.positions_page import MOST_CELLS, PAGE, spread
from glassformer.positions.sentence import sentence_panel
from glassformer.positions.table import table_pictures
from glassformer.positions.table.table_pictures import spread_shifts
from glassformer.runs import loading
from tests.pages.conftest import POSITIONS, check
from tests.pages.reading import (
    address,
    charts_of,
    everything,
    figure,
    go_to,
    keys_of,
    numbers,
    opened,
    sentences,
    told,
    type_source,
)
from transformer.i18n.sentence import digits, short


@pytest.fixture
def page(open_page):
    """A function that opens the page: `page("shift", model="reverse")`."""
    return lambda part="table", **parameters: open_page(
        POSITIONS, **({"positions": part} if part != "table" else {}), **parameters
    )


def model(name):
    return opened(name).model


def table_of(name, side="source"):
    stack = model(name).encoder if side == "source" else model(name).decoder
    return stack.embedding.positions.table.detach().numpy()


def paper(n, d):
    return np.array(
        [[(math.cos if j % 2 else math.sin)(p / 10_000 ** (2 * (j // 2) / d)) for j in range(d)] for p in range(n)]
    )


def z_of(test, key):
    return numbers(figure(test, key)["data"][0]["z"])


# ------------------------------------------------------------------------------------------------ the table


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_learned_table_is_drawn_and_compared_with_the_formula(page, side):
    test, table = page(model="reverse", side=side), table_of("reverse", side)
    np.testing.assert_array_equal(z_of(test, "position_table"), table)
    assert f"differ from the formula by up to {np.abs(table - paper(13, 64)).max():.4g}" in told(test)
    curves = figure(test, "position_curves")["data"]
    for place, dim in enumerate(spread(64)):
        np.testing.assert_array_equal(numbers(curves[2 * place]["y"]), table[:, dim])
        np.testing.assert_allclose(numbers(curves[2 * place + 1]["y"]), paper(13, 64)[:, dim], atol=1e-6)


def test_sinusoids_are_the_formula(page):
    test = page(model="en-fr", apart="0")
    np.testing.assert_allclose(z_of(test, "position_table"), paper(64, 256), atol=1e-5)
    waves = numbers(figure(test, "position_waves")["data"][0]["y"])
    np.testing.assert_allclose(waves, [2 * math.pi * 10_000 ** (2 * (j // 2) / 256) for j in range(256)], rtol=1e-6)


def test_waves_are_those_of_a_fourier_transform(page):
    trace = figure(page(model="reverse"), "position_waves")["data"][2]
    for dim, column in enumerate(table_of("reverse").T.astype(float)):
        power = [
            abs(sum(x * np.exp(-2j * math.pi * wave * p / 13) for p, x in enumerate(column))) ** 2
            for wave in range(1, 7)
        ]
        assert numbers(trace["y"])[dim] == pytest.approx(13 / (1 + int(np.argmax(power))))
        assert trace["hovertext"][dim] == f"{max(power) / sum(power):.0%} of the variance"


def test_more_positions_are_drawn_when_asked_for(page):
    test = page(model="zh-en", apart="0")
    assert "first 64 of 128 positions" in figure(test, "position_table")["layout"]["title"]["subtitle"]["text"]
    check(test.selectbox(key=position_controls.COUNT).set_value(128).run())
    np.testing.assert_allclose(z_of(test, "position_table"), table_of("zh-en"), rtol=2e-5)  # five digits are sent
    assert "subtitle" not in figure(test, "position_table")["layout"]["title"]


def test_dimensions_are_chosen_and_stay_in_the_address(page):
    test = page(model="reverse", dims="4.64")
    names = [note["text"] for note in figure(test, "position_curves")["layout"]["annotations"]]
    assert [name.split(";")[0] for name in names] == ["Dimension 3", "Dimension 63"]
    check(test.multiselect(key="dims").set_value([5]).run())
    assert address(test)["dims"] == "6"


@pytest.mark.parametrize(("n", "d"), [(64, 256), (128, 256), (512, 512), (512, 15), (16, 16_384), (512, 1)])
def test_a_map_never_has_more_cells_than_it_says(n, d):
    dims = table_pictures.drawn_dims(n, d)
    assert n * len(dims) <= MOST_CELLS + 2 * n
    assert (n * d <= MOST_CELLS) == (len(dims) == d)
    assert all(dim + 1 in dims or dim + 1 == d for dim in dims[dims % 2 == 0])  # whole pairs


def test_payloads_stay_small(page):
    test = page(model="zh-en")
    assert sum(len(element.proto.json) for element in test.get("bidi_component")) < 250_000


# ------------------------------------------------------------------------------------------------ similarity


def test_similarity_is_the_dot_product_and_falls_with_distance(page):
    test, table = page("similarity", model="zh-en"), paper(64, 256)
    np.testing.assert_allclose(z_of(test, "position_similarity"), table @ table.T, rtol=1e-5)
    low, high, mean = (numbers(trace["y"]) for trace in figure(test, "position_distance")["data"])
    expected = [sum(math.cos(gap / 10_000 ** (2 * i / 256)) for i in range(128)) for gap in range(64)]
    for line in (low, high, mean):
        np.testing.assert_allclose(line, expected, rtol=1e-5)


def test_the_cosine_of_a_learned_table_is_chosen(page):
    test, table = page("similarity", model="reverse", side="target"), table_of("reverse", "target").astype(float)
    check(next(c for c in test.segmented_control if c.key == "cosine").set_value(True).run())
    lengths = np.sqrt((table**2).sum(1))
    cosine = table @ table.T / np.outer(lengths, lengths)
    np.testing.assert_allclose(z_of(test, "position_similarity"), cosine, atol=1e-6)
    low, high, mean = (numbers(trace["y"]) for trace in figure(test, "position_distance")["data"])
    pairs = {gap: [cosine[p, p + gap] for p in range(13 - gap)] for gap in range(13)}
    np.testing.assert_allclose(low, [min(pairs[gap]) for gap in range(13)], atol=1e-6)
    np.testing.assert_allclose(high, [max(pairs[gap]) for gap in range(13)], atol=1e-6)
    np.testing.assert_allclose(mean, [np.mean(pairs[gap]) for gap in range(13)], atol=1e-6)


# ------------------------------------------------------------------------------------------------ the shift


def test_a_shift_turns_sinusoids(page):
    test, table = page("shift", model="zh-en", shift=7, dims="11.12"), table_of("zh-en")
    _, rings, crosses = figure(test, "position_points")["data"]
    angle = 7 / 10_000 ** (10 / 256)
    assert f"k·wᵢ = {angle:.4g} rad" in told(test)
    for p in range(64):
        s, c = map(float, table[p, 10:12])
        turned = (math.cos(angle) * s + math.sin(angle) * c, math.cos(angle) * c - math.sin(angle) * s)
        assert (numbers(crosses["x"])[p], numbers(crosses["y"])[p]) == pytest.approx(turned, abs=1e-6)
        assert (numbers(rings["x"])[p], numbers(rings["y"])[p]) == tuple(table[p + 7, 10:12])
    errors = numbers(figure(test, "position_errors")["data"][0]["y"])
    assert len(errors) >= 64
    assert errors.max() < 1e-6


def test_a_shift_of_a_learned_table_is_judged_where_it_was_not_fitted(page):
    test, table = page("shift", model="reverse", shift=2), table_of("reverse").astype(float)
    inputs, outputs = table[:-2], table[2:]
    matrix = np.linalg.pinv(inputs[::2]) @ outputs[::2]
    rest = np.linalg.norm(outputs[1::2])
    held_out = np.linalg.norm((inputs @ matrix - outputs)[1::2]) / rest
    constant = np.linalg.norm(outputs[::2].mean(0) - outputs[1::2]) / rest
    assert f"On the held-out positions ({len(outputs[1::2])} in all), its error is {held_out:.0%}" in told(test)
    assert f"mean vector of the fitted positions gives an error of {constant:.0%}" in told(test)
    lines = {trace["name"]: numbers(trace["y"]) for trace in figure(test, "position_errors")["data"]}
    assert lines["held-out positions"][1] == pytest.approx(held_out)
    assert lines["fitted positions"].max() < 1e-9
    assert lines["held-out positions, sinusoid table"][1] < 0.1 < held_out
    points = figure(test, "position_points")["data"]
    np.testing.assert_allclose(numbers(points[2]["x"]), (inputs @ matrix)[1::2, 0], atol=1e-5)


def test_another_pair_is_followed_and_stays_in_the_address(page):
    test = page("shift", model="reverse")
    check(test.selectbox(key=position_controls.PAIR).set_value(5).run())
    assert figure(test, "position_points")["layout"]["xaxis"]["title"]["text"] == "Dimension 10"
    assert address(test)["dims"] == "11.12"


def test_the_slider_shifts_and_stays_in_the_address(page):
    test = page("shift", model="reverse")
    check(test.slider(key="shift").set_value(4).run())
    assert "shifted by 4" in figure(test, "position_points")["layout"]["title"]["text"]
    assert figure(test, "position_errors")["layout"]["shapes"][0]["x0"] == 4
    assert address(test)["shift"] == "4"


# ------------------------------------------------------------------------------------------------ the sentence


@pytest.mark.parametrize(("name", "side"), [("zh-en", "source"), ("zh-en", "target"), ("reverse", "target")])
def test_a_sentence_starts_from_embedding_and_position(page, name, side):
    test = page("sentence", model=name, side=side)
    own = model(name)
    checkpoint = opened(name)
    trace = loading.runner().trace(checkpoint, checkpoint.query(checkpoint.card.examples[0]))
    ids = trace.src_ids if side == "source" else trace.read_ids
    rows = (own.src_table if side == "source" else own.target_table).detach().numpy()[list(ids)]
    positions = table_of(name, side)[: len(ids)]
    root = math.sqrt(rows.shape[1])
    expected = [rows, rows * root, positions, rows * root + positions]
    bars = figure(test, "embedding_strengths")["data"]
    for trace_, vectors in zip(bars, expected, strict=True):
        np.testing.assert_allclose(numbers(trace_["y"]), np.sqrt((vectors**2).mean(1)), rtol=1e-5)
    np.testing.assert_allclose(z_of(test, "embedding_rows"), [vectors[0] for vectors in expected], rtol=1e-4, atol=1e-6)
    means = [np.sqrt((vectors**2).mean(1)).mean() for vectors in expected]
    assert f"tokens: {means[0]:.3f} for the embedding" in told(test)
    assert f", {means[2]:.3f} for the position vector and {means[3]:.3f} for their sum" in told(test)


def test_another_token_is_chosen_and_stays_in_the_address(page):
    test = page("sentence", model="reverse", src="abcdef")
    check(test.selectbox(key=sentence_panel.TOKEN).set_value(3).run())
    assert "Initial vector of token 4, d" in figure(test, "embedding_rows")["layout"]["title"]["text"]
    own = model("reverse")
    place = opened("reverse").src_tokenizer.id_of("d")
    np.testing.assert_allclose(z_of(test, "embedding_rows")[0], own.src_table.detach()[place], rtol=1e-5)
    assert address(test)["key"] == "4"


def test_guessing_hides_what_is_still_to_come(page):
    test = page("sentence", model="reverse", src="abcdef", side="target", guess=1, query=6)
    go_to(test, 3)
    labels = figure(test, "embedding_strengths")["layout"]["meta"]["ticks"]["xaxis"]["labels"]
    assert [label.removeprefix("▁") for label in labels][1:] == ["f", "e"]
    assert len(test.selectbox(key=sentence_panel.TOKEN).options) == 3
    assert "Initial vector of token 3," in figure(test, "embedding_rows")["layout"]["title"]["text"]
    check(next(c for c in test.segmented_control if c.key == "side").set_value("source").run())
    assert len(test.selectbox(key=sentence_panel.TOKEN).options) == 7


# ------------------------------------------------------------------------------------------------ all parts


def test_one_part_is_drawn_at_a_time_and_named_in_the_address(page):
    test = page(model="reverse")
    of_no_table = {"rotary_scores", "bias_spreads"}
    for part in position_controls.TABLE_PARTS:
        check(next(c for c in test.segmented_control if c.key == "positions_panel").set_value(part).run())
        assert charts_of(test) == {*PAGE.parts[part].pictures} - of_no_table
        assert address(test).get("positions", "table") == part


@pytest.mark.parametrize("part", ["table", "similarity", "shift"])
def test_the_table_needs_no_sentence(page, part):
    test = type_source(page(part, model="reverse"), "")
    assert charts_of(test)
    assert "Type" in sentences(test)
    refused = type_source(test, "abcdefghijklmnop")
    assert "Shorten" in sentences(refused)
    assert charts_of(refused)


def test_the_sentence_part_says_what_to_do_without_one(page):
    test = type_source(page("sentence", model="reverse"), "")
    assert "Type" in sentences(test)
    assert not keys_of(test)


def test_markup_in_pieces_stays_text(page):
    test = page("sentence", model="zh-en", src="<b>$x$</b>")
    drawn = json.dumps(figure(test, "embedding_strengths")["layout"]["meta"])
    assert "<b>" not in drawn
    assert "<b>" not in figure(test, "embedding_rows")["layout"]["title"]["text"]
    assert everything(test)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (2.98e-8, "2.98 × 10⁻⁸"), (1.81737, "1.817"), (1e-12, "1.00 × 10⁻¹²")]
)
def test_numbers_are_short(number, text):
    assert digits(number) == text
    assert (short(2 * math.pi), short(58470.5)) == ("6.283", "58,470")


@pytest.mark.parametrize(("d_model", "dims"), [(256, (0, 1, 32, 64, 255)), (1, (0,)), (2, (0, 1)), (7, (0, 1, 6))])
def test_a_few_dimensions_are_chosen(d_model, dims):
    assert spread(d_model) == dims


def test_shifts_are_spread_and_hold_the_chosen_one():
    assert spread_shifts(5, 2, most=24) == (1, 2, 3, 4, 5)
    many = spread_shifts(500, 77, most=24)
    assert {1, 77, 500} <= set(many)
    assert len(many) <= 25
