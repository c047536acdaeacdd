"""What the browser gets of a page is plain, small and exact, scripts packed and kept; its reports are checked."""

import asyncio
import gzip
import json
import re
from dataclasses import replace
from functools import partial
from unittest.mock import AsyncMock

import numpy as np
import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from glassformer import charts
from glassformer.charts.heatmap import shortened
from glassformer.components import custom_component
from glassformer.components.custom_component import Element, StaticScriptsMiddleware
from glassformer.components.flow_component import flow_view
from glassformer.components.flow_data import Flow
from glassformer.components.packing import FINE_LEVELS
from glassformer.components.plotly_component import figure_json, last_click
from glassformer.components.stepper_view import SourceChip, StepperRun, TargetChip, rest, rest_key, settled_step
from glassformer.frame.sentence_stepper import sentence
from glassformer.glossary import glossary_page
from glassformer.runs import loading
from glassformer.runs.open_run import OpenRun, seen
from glassformer.shared.drawing import chart
from glassformer.state.link import Link
from glassformer.state.view import Click
from tests.glassformer.unpacking import numbers_of
from tests.pages.reading import numbers

RUN = StepperRun(
    run_id="a",
    source=(SourceChip("▁x", 1), SourceChip("</s>", 2, special=True)),
    target=(TargetChip("▁a", 3, 0.5), TargetChip("</s>", 4, 1.0000001, special=True)),
    start_piece="<s>",
    texts=("a", "a"),
    shading=np.array([[0.25, 0.75], [float("nan"), -1e-9]]),
)


def test_our_script_is_named_by_its_text_asks_no_other_machine_and_each_component_has_a_short_loader(monkeypatch):
    for name, text in custom_component.modules().items():  # that they write no markup, eslint sees
        assert not re.search("https?:", text.replace("http://www.w3.org/2000/svg", "")), name  # a name, no address
    before = custom_component.script_file()
    for name in custom_component.COMPONENTS:
        loader = custom_component.loader(name)
        assert loader.count(f"app/static/{before}") == 2
        assert f"script.{name}(component)" in loader
        assert not {"SCRIPT", "NAME"} & set(re.findall(r"\w+", loader))
        assert "//" not in loader
        assert len(loader) < 800  # it is sent with every element
    ours, plotly = custom_component.link().split(", ")  # pages fetch both ahead
    assert ours == f"<app/static/{before}>; rel=modulepreload; fetchpriority=low"
    assert plotly == f"<app/static/{custom_component.PLOTLY_FILE}>; rel=preload; as=script; fetchpriority=low"
    monkeypatch.setattr(custom_component, "script", lambda: "// another")
    custom_component.script_file.cache_clear()
    assert custom_component.script_file() != before
    custom_component.script_file.cache_clear()


def ignore(*_):
    pass


FLOW = Flow(
    "s", "Kind", "layer 1", ("a",), ("b",), "Q", "K", "target", "source", np.ones((1, 1, 1)), np.ones((1, 1)) > 0
)
DRAWN = {
    "PlotlyPayload": partial(chart, {"data": [], "layout": {"height": 1}}, alt="a", how_to_read=""),
    "RestPayload": partial(rest, addresses=("", "step=2"), on_step_change=ignore),
    "FlowPayload": partial(flow_view, FLOW, alt="a", caption="c"),
    "GlossaryMarksPayload": lambda key: glossary_page.underline(),
}
OF_A_RUN = {
    "GlossaryListPayload": lambda run: glossary_page.draw(run.checkpoint),
    "StepperPayload": lambda run: sentence(run),
}
TYPES = custom_component.read_asset("components/common/payloads.d.ts")


def typed(interface):
    body = re.search(rf"interface {interface} (?:extends Spoken )?{{\n(.*?)\n}}", TYPES, flags=re.DOTALL)[1]
    return set(re.findall(r"^  (\w+)\??:", body, flags=re.MULTILINE))


def sends_what_its_type_names(monkeypatch, interface, draw):
    """Check the fields of a component's payload."""
    sent = []
    monkeypatch.setattr(Element, "draw", lambda _, payload, **__: sent.append(payload) or {})
    draw(key="k")
    assert [set(payload) for payload in sent] == [typed(interface)]
    json.dumps(sent)


def test_the_types_of_payloads_and_of_a_run_name_what_python_sends(monkeypatch, reverse):
    for interface, draw in DRAWN.items():
        sends_what_its_type_names(monkeypatch, interface, draw=draw)
    monkeypatch.setattr(glossary_page, "publish", ignore)
    trace = reverse.run("glass")
    run, _ = seen(reverse, Link(source="glass"), trace)
    opened = OpenRun(run.visible, reverse, run.link, loading, RUN)
    for interface, draw_run in OF_A_RUN.items():
        sends_what_its_type_names(monkeypatch, interface, draw=lambda key, draw=draw_run: draw(opened))
    assert set(RUN.plain) == typed("SentRun")
    assert {name for chip in RUN.plain["target"] for name in chip} <= typed("TargetChip")
    assert set(RUN.plain["shading"]) == typed("Packed")


def test_cell_labels_are_not_sent_for_every_cell_other_figures_keep_theirs_and_what_none_can_hold_is_refused():
    pieces = [f"▁piece{place}" for place in range(40)]
    figure = charts.heatmap_spec(np.eye(40, dtype=np.float32), queries=pieces, keys=pieces, allowed=None, title="A map")
    text = figure_json(figure)
    assert len(text) < 20_000
    sent = json.loads(text)
    assert "customdata" not in sent["data"][0]
    assert sent["layout"]["meta"]["cells"]["rows"][3] == "4: <b>▁piece3</b>"
    bars = {"data": [{"type": "bar", "x": [1], "y": [2], "customdata": [7]}], "layout": {}}
    assert json.loads(figure_json(bars))["data"][0]["customdata"] == [7]
    with pytest.raises(TypeError, match="ndarray"):
        figure_json({"data": [{"y": np.array(["a"])}], "layout": {}})


def sent_as(**trace):
    return json.loads(figure_json({"data": [trace], "layout": {}}))["data"][0]


def test_numbers_arrive_exactly_in_kinds_that_plotly_has():
    kinds = {"int64": "i4", "uint64": "u4", "uint8": "u1", "float16": "f4", "float32": "f4", "float64": "f8"}
    for given, dtype in kinds.items():
        sent = sent_as(type="bar", y=np.array([1, 2], dtype=given))["y"]
        assert (sent["dtype"], numbers(sent).tolist()) == (dtype, [1, 2])


@pytest.mark.parametrize(
    "raw",
    [None, [], {"curve": 0}, {"curve": "0", "index": [1]}, {"curve": 0, "index": "1"}, {"curve": -1, "index": [1]},
     {"curve": 0, "index": [1.5]}, {"curve": True, "index": [1]}, {"curve": 0, "index": [-1]}, {"index": [1]}],
)  # fmt: skip
def test_a_click_is_read_and_what_is_none_is_none(raw, monkeypatch):
    good = {"curve": 0, "index": [2, 3], "customdata": 17, "count": 1}
    monkeypatch.setattr("streamlit.session_state", {"a": {"click": raw}, "b": {"click": good}})
    assert last_click("a") is None
    assert last_click("b") == Click(0, (2, 3), 17)


def test_a_large_map_is_sent_as_the_numbers_it_has():
    """Beyond 64 x 64 cells closed ones take a bit each, and a map of one number takes one."""
    random = np.random.default_rng(0).random((80, 70))
    causal = np.tri(80, 70, dtype=bool)
    halves = np.where(causal, random, np.nan).astype(np.float16)
    short = np.where(causal, shortened(random.astype(np.float32))[0], np.nan).astype(np.float32)
    for cells in (random, halves, short, random * np.nan, causal.astype(np.int8), np.zeros((80, 70), np.int8)):
        sent = sent_as(z=cells)["z"]
        np.testing.assert_array_equal(numbers(sent), cells)
        assert (sent["dtype"] == "f3") == (cells is short)
    allowed = np.tri(300, dtype=bool)
    spec = charts.heatmap_spec(np.zeros((300, 300)), queries=["q"] * 300, keys=["k"] * 300, title="t", allowed=allowed)
    sent = json.loads(figure_json(spec))["data"]
    assert [len(trace["z"]["bdata"]) for trace in sent[:2]] == [4, 4]  # a zero in half precision, a zero in three bytes
    np.testing.assert_array_equal(np.isfinite(numbers(sent[1]["z"])), ~allowed)


@pytest.fixture
def answer(monkeypatch):
    """Where the reader rests, when the browser has reported that."""

    def rest(report, step=0):
        monkeypatch.setattr("streamlit.session_state", {} if report is None else {"s": {"step": report}})
        return settled_step(RUN, key="s", step=step)

    return rest


def test_a_report_about_this_run_and_revision_counts_and_else_python_says_where_to_stand(answer):
    assert [answer(None, step=step) for step in (1, 99, -3)] == [1, 1, 0]
    good = {"run_id": "a", "step_revision": 0, "step": 1}
    assert [answer(good | {"step": step}) for step in (1, 99)] == [1, 1]
    assert settled_step(RUN, key="nobody", step=1) == 1
    for wrong in ({"run_id": "b"}, {"step_revision": 7}, {"step": "1"}, {"step": True}, {"step": None}):
        assert answer(good | wrong) == answer("1") == 0


@pytest.mark.parametrize("order", [1, -1])
def test_of_what_the_stepper_and_the_quiet_one_say_the_later_counts(monkeypatch, order):
    told = {"run_id": "a", "step_revision": 0}
    said = [{"step": told | {"step": step, "when": when}} for step, when in ((0, 5), (1, 9))]
    monkeypatch.setattr("streamlit.session_state", dict(zip(("s", rest_key("s")), said[::order], strict=True)))
    assert settled_step(RUN, key="s", step=0) == 1


def test_what_the_browser_gets_is_plain_inside_its_range_and_texts_are_changes_counted_as_javascript_counts():
    sent = json.loads(json.dumps(RUN.plain))
    assert sent["source"][1] == {"piece": "</s>", "id": 2, "special": True}
    assert sent["target"][1]["probability"] == 1.0
    np.testing.assert_allclose(numbers_of(sent["shading"]), [0.25, 0.75, 0, 0], atol=0.5 / FINE_LEVELS)
    assert sent["texts"] == [[0, "a"], [1, ""]]
    texts = ("🙂", "🙂 שלום", "🙃x", "")
    sent = replace(RUN, target=(TargetChip("p", 1, 0.5),) * 4, texts=texts, shading=None).plain
    assert (sent["texts"], sent["shading"]) == ([[0, "🙂"], [2, " שלום"], [0, "🙃x"], [0, ""]], None)


SCRIPT = custom_component.script_file()


def fetched(name, *, method="GET", base="", accepts="gzip, br", **headers):
    """What a client gets, where the app behind says that it was asked."""
    client = TestClient(StaticScriptsMiddleware(PlainTextResponse("behind")))
    return client.request(method, f"{base}/app/static/{name}", headers={"accept-encoding": accepts, **headers})


def test_a_script_is_served_packed_and_to_be_kept_and_whole_to_whoever_cannot_unpack_it():
    for name, base in ((SCRIPT, ""), (SCRIPT, "/below"), (custom_component.PLOTLY_FILE, "")):
        found = fetched(name, base=base)
        assert found.content == gzip.decompress(custom_component.served()[name])
        assert found.headers["content-type"].startswith("text/javascript")
        assert "immutable" in found.headers["cache-control"]
        assert found.headers["content-encoding"] == "gzip"
        assert int(found.headers["content-length"]) < len(found.content)
    for accepts in ("identity", "br"):
        found = fetched(SCRIPT, accepts=accepts)
        assert (found.text, "content-encoding" in found.headers) == (custom_component.script(), False)
    assert fetched(SCRIPT, range="bytes=0-9").text == custom_component.script()
    head = fetched(SCRIPT, method="HEAD", accepts="identity")
    assert (head.content, int(head.headers["content-length"])) == (b"", len(custom_component.script().encode()))


def streamlits(path, *, accepts="gzip", status=200, cache="public, immutable", times=1, **headers):
    """Answers for a file of Streamlit's, and how often Streamlit was asked for it."""
    asked = []

    async def behind(scope, receive, send):
        asked.append(scope["path"])
        answer = PlainTextResponse("let a;" * 100, status, headers={"cache-control": cache, "etag": "one"})
        await answer(scope, receive, send)

    client = TestClient(StaticScriptsMiddleware(behind))
    return [client.get(path, headers={"accept-encoding": accepts, **headers}) for _ in range(times)], len(asked)


def test_a_script_of_streamlits_is_packed_once_if_its_name_changes_with_its_content():
    answers, n_asked = streamlits("/below/static/js/index.a1.js", times=3)
    assert n_asked == 1
    for one in answers:
        assert one.text == "let a;" * 100
        assert int(one.headers["content-length"]) < 100
        assert (one.headers["content-encoding"], one.headers["cache-control"]) == ("gzip", "public, immutable")
    for options in ({"accepts": "br"}, {"cache": "no-cache"}, {"status": 304}, {"status": 404}):
        (one, other), n_asked = streamlits("/static/css/index.a1.css", times=2, **options)
        assert n_asked == 2
        assert one.status_code == other.status_code == options.get("status", 200)
        assert (one.headers.get("content-encoding"), one.headers["etag"]) == (None, "one")


def test_all_else_is_left_to_the_app_and_lets_the_server_start():
    for name, method in (("icon.svg", "GET"), (f"old{SCRIPT}", "GET"), (SCRIPT, "POST")):
        assert fetched(name, method=method).text == "behind"
    behind = AsyncMock()
    asyncio.run(StaticScriptsMiddleware(behind)({"type": "lifespan"}, None, None))
    behind.assert_awaited_once_with({"type": "lifespan"}, None, None)
