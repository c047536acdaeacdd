"""What heads do, on the Attention page, without a browser: the numbers are recomputed from the model's own run."""

import csv
import io
import json
import math

import numpy as np
import pytest
import torch

from glassformer.attention import AttentionLook
from glassformer.attention.head_table import head_table_panel as head_table
from glassformer.attention.head_table import head_table_pictures
from glassformer.attention.head_table.head_table_panel import CSV, MEASURE, OPEN_BY_MEASURE
from glassformer.runs import loading
from glassformer.server.model_runner import BusyError, ModelRunner
from tests.pages.conftest import STEP, check
from tests.pages.reading import figure, go_to, numbers, opened, payload, sentences, view
from transformer.analysis.head_statistics import measure_by_layer
from transformer.model.taps import Recorder, tap_of

ATTENTION = STEP.parent / "attention.py"
SOURCE = "abcdef"
ENCODER, DECODER, CROSS = "encoder.{}.self_attn", "decoder.{}.self_attn", "decoder.{}.cross_attn"
SITES = {"encoder": ENCODER, "decoder": DECODER, "cross": CROSS}


@pytest.fixture
def table(open_page):
    """A function that opens the part of the page: `table(kind="decoder", layer=2)`."""
    return lambda **options: open_page(ATTENTION, **{"model": "reverse", "src": SOURCE, "panel": "table"} | options)


def checkpoint():
    return opened("reverse")


def recorded(kind, site):
    """[layer, head, query, ...] of a pass of its own over the finished output."""
    model = checkpoint().model
    trace = loading.runner().trace(checkpoint(), checkpoint().query(SOURCE))
    recorder = Recorder((f"*_attn.{site}",))
    with torch.inference_mode():
        model(torch.tensor([trace.src_ids]), torch.tensor([trace.read_ids]), tap=tap_of(recorder))
    return np.stack([recorder.values[f"{SITES[kind].format(layer)}.{site}"][0].double().numpy() for layer in range(2)])


def shown(test):
    (element,) = test.dataframe
    return element.value


def entropy_by_hand(row):
    return -sum(w * math.log2(w) for w in row if w > 0)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_table_holds_what_the_weights_say(table, kind):
    found, weights = shown(table(kind=kind)), recorded(kind, "weights")
    assert found["open"].tolist() == [f"Layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3, 4)]
    rows = [head for layer in weights for head in layer]  # [query, key] each
    entropies = [np.mean([entropy_by_hand(row) for row in head]) for head in rows]
    np.testing.assert_allclose(found["entropy"], entropies, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found["largest"], [head.max(axis=1).mean() for head in rows], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found["first"], [head[:, 0].mean() for head in rows], rtol=0, atol=1e-4)
    if kind != "cross":
        own = [np.mean([head[q, q] for q in range(len(head))]) for head in rows]
        np.testing.assert_allclose(found["self"], own, rtol=0, atol=1e-4)
    if kind != "decoder":
        np.testing.assert_allclose(found["end"], [head[:, -1].mean() for head in rows], rtol=0, atol=1e-4)
    assert ("next" in found) == (kind == "encoder")


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_the_share_of_norm_comes_from_the_output_matrix(table, kind):
    found, heads = shown(table(kind=kind)), recorded(kind, "heads")  # [layer, head, query, d_head]
    state, expected = checkpoint().model.state_dict(), []
    for layer in range(2):
        where = SITES[kind].format(layer).replace("encoder.", "encoder.layers.").replace("decoder.", "decoder.layers.")
        matrix = state[f"{where}.out_proj.weight"].double().numpy()  # [d_model, head * d_head]
        d_head = heads.shape[-1]
        norms = np.array(
            [
                [np.linalg.norm(matrix[:, h * d_head : (h + 1) * d_head] @ vector) for vector in heads[layer, h]]
                for h in range(4)
            ]
        )
        expected += (norms / norms.sum(axis=0)).mean(axis=1).tolist()
    np.testing.assert_allclose(found["norm_share"], expected, rtol=0, atol=1e-4)


def test_the_charts_show_the_tables_numbers_of_the_chosen_measure(table):
    test = table(kind="cross", layer=2, head=3)
    check(test.selectbox(key=MEASURE).set_value("largest").run())
    weights = recorded("cross", "weights")
    drawn = figure(test, "head_table_map")
    np.testing.assert_allclose(numbers(drawn["data"][0]["z"]), weights.max(-1).mean(-1), rtol=0, atol=1e-6)
    assert "largest weight" in drawn["layout"]["title"]["text"]
    frame = drawn["layout"]["shapes"][0]
    assert (frame["y0"], frame["x0"]) == (0.5, 1.5)
    rows = figure(test, "head_table_rows")
    np.testing.assert_allclose(numbers(rows["data"][0]["y"]), weights[1, 2].max(-1), rtol=0, atol=1e-6)
    assert rows["layout"]["shapes"][0]["y0"] == pytest.approx(weights[1, 2].max(-1).mean(), abs=1e-6)
    assert "Layer 2, head 3" in rows["layout"]["title"]["text"]


def test_the_file_holds_the_same_heads_in_full_and_only_numbers(table, monkeypatch):
    given = {}

    def button(label, data, *, key, **options):
        if key == CSV:
            given.update(options, key=key, data=data)

    monkeypatch.setattr(head_table.st, "download_button", button)
    found = shown(table(kind="encoder", layer=1, head=2))
    first, *rows = csv.reader(io.StringIO(given["data"].decode("utf-8-sig")))
    assert given["key"] == CSV
    assert given["file_name"] == "reverse_abcdef_heads-of-encoder-self-attention.csv"
    about = ["checkpoint", "sentence", "chart"]
    assert first == [*about, "layer", "head", *(name for name in found.columns if name != "open")]
    assert {tuple(row[:3]) for row in rows} == {("reverse", SOURCE, "heads of Encoder self-attention")}
    rows = [row[3:] for row in rows]
    assert [row[:2] for row in rows] == [[str(layer), str(head)] for layer in (1, 2) for head in (1, 2, 3, 4)]
    np.testing.assert_allclose(np.array(rows, dtype=float)[:, 2:], found.drop(columns="open"), rtol=0, atol=1e-4)


# ---------------------------------------------------------------- what may be seen


def test_hidden_steps_do_not_count(table):
    test = check(go_to(table(kind="cross", guess=1, layer=2, head=1), 3))
    weights = recorded("cross", "weights")[:, :, :3]
    np.testing.assert_allclose(shown(test)["largest"], weights.max(-1).mean(-1).ravel(), rtol=0, atol=1e-4)
    rows = figure(test, "head_table_rows")
    assert len(numbers(rows["data"][0]["y"])) == 3
    assert rows["layout"]["xaxis"]["ticktext"][-1] == "e → ?"
    assert "3 visible rows" in " ".join(element.value for element in test.caption)


def test_the_first_step_has_only_the_measures_that_it_can_have(table):
    found = shown(table(kind="decoder", guess=1))
    assert not {"previous", "entropy_share", "next", "end"} & set(found.columns)
    assert (found["entropy"] == 0).all()
    assert (found["self"] == 1).all()


# ---------------------------------------------------------------- choosing


def test_the_chosen_head_is_marked_and_without_one_the_page_shows_the_most_telling(table):
    found = shown(table(kind="cross", layer=2, head=3))["open"].tolist()
    assert [name for name in found if name.startswith("●")] == ["● Layer 2, head 3"]
    test = table(kind="cross")
    found = shown(test)
    assert not any(name.startswith("●") for name in found["open"])
    apart = (found["entropy_share"] - found["entropy_share"].mean()).abs().idxmax()
    assert figure(test, "head_table_rows")["layout"]["title"]["text"].startswith(found["open"][apart])
    assert figure(test, "head_table_map")["layout"]["shapes"]
    assert payload(test, "head_table_rows")["caption"].startswith("You have not chosen a head yet")
    assert view(test).head is None  # the address says nothing of the page's own choice
    test = table(kind="cross", layer=1)
    assert figure(test, "head_table_rows")["layout"]["title"]["text"].startswith("Layer 1")


def test_the_menu_lists_the_heads_from_the_lowest_and_opens_one_again_and_again(table):
    test = table(kind="encoder")
    check(test.selectbox(key=MEASURE).set_value("self").run())
    means = shown(test)["self"]
    options = test.selectbox(key=OPEN_BY_MEASURE).options
    assert [float(option.split(": ")[1]) for option in options] == pytest.approx(sorted(means), abs=0.0051)
    for _ in range(2):
        check(test.selectbox(key=OPEN_BY_MEASURE).select_index(0).run())
        assert view(test).of(AttentionLook).panel == "head"
        place = f"Layer {view(test).layer + 1}, head {view(test).head + 1}"
        assert options[0].startswith(place)
        check(test.button_group(key="panel").set_value("table").run())
        assert test.selectbox(key=OPEN_BY_MEASURE).value is None


def test_a_measure_that_another_attention_does_not_have_gives_way(table):
    test = table(kind="encoder")
    check(test.selectbox(key=MEASURE).set_value("next").run())
    check(test.selectbox(key="kind").set_value("decoder").run())
    assert test.selectbox(key=MEASURE).value == "entropy_share"
    check(test.selectbox(key="kind").set_value("encoder").run())
    assert "alt" in payload(test, "head_table_map")
    assert test.selectbox(key=MEASURE).value == "next"  # it was only set aside


def test_a_measure_that_nothing_has_is_said_once(table):
    test = table(measure="<b>bogus</b>")
    assert "The link names the measure “<b>bogus</b>”, which does not exist" in sentences(test)
    assert test.selectbox(key=MEASURE).value == "entropy_share"
    assert "names the measure" not in sentences(check(test.run()))
    assert "names the measure" not in sentences(table(measure="next", kind="decoder"))  # another attention has it


def test_the_measures_are_computed_once_for_a_run_and_again_for_other_rows(table, monkeypatch):
    asked, fresh = [], ModelRunner()
    monkeypatch.setattr(
        head_table_pictures,
        "measure_by_layer",
        lambda *of, **how: asked.append(how["n_rows"]) or measure_by_layer(*of, **how),
    )
    monkeypatch.setattr(loading, "runner", lambda: fresh)
    test = table(kind="decoder")
    check(test.selectbox(key=MEASURE).set_value("largest").run())
    check(go_to(test, 3))
    assert asked == [None]
    test = table(kind="decoder", guess=1, step=3)
    check(go_to(test, 4))
    assert asked == [None, 3, 4]


def test_a_busy_model_is_said(table, monkeypatch):
    test = table()
    busy = BusyError("64 requests are waiting for the model.")
    real = loading.runner()

    class Busy:
        trace = real.trace

        def compute(self, *_, **__):
            raise busy

    monkeypatch.setattr(loading, "runner", Busy)
    check(test.run())
    assert [error.value for error in test.error][-1].startswith("64 requests are waiting")
    assert not test.info
    assert not test.dataframe


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_every_measure_is_in_sight_beside_the_sidebar_of_a_screen_of_1280_pixels(open_page, kind):
    test = open_page(ATTENTION, model="zh-en", panel="table", kind=kind)
    columns = json.loads(test.dataframe[0].proto.columns)
    widths = [column["width"] for name, column in columns.items() if name != "_index" and not column.get("hidden")]
    assert any(column.get("label") == "Norm" for column in columns.values())
    assert sum(widths) <= 903
