"""A run saved as a file holds what the server would draw, says what it lacks, is small, and no text is markup."""

import base64
import gzip
import json
import re
import tomllib
from dataclasses import replace

import pytest

from glassformer.attention.map_pictures import drawn_flow
from glassformer.components import embedding
from glassformer.components.custom_component import read_asset
from glassformer.components.flow_data import Choice, flow_payload
from glassformer.components.plotly_component import figure_json
from glassformer.extensions.saving import saved_run
from glassformer.extensions.saving.saved_run import SavedRunRequest
from glassformer.runs import loading
from glassformer.runs.open_run import seen, stepper_run
from glassformer.runs.picture import PAGES, PICTURES, declare_all
from glassformer.runs.step_frames import RunRef
from glassformer.runs.viewed_run import at_step
from glassformer.shared.i18n import here
from glassformer.state.link import Link
from tests.extensions.saving.hostile_run import TEXTS, Elements, hostile
from tests.glassformer.conftest import look
from tests.glassformer.runs.test_step_frames import changed
from tests.source_code import ROOT
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.i18n import languages
from transformer.runs.interventions import parse

declare_all()


def kept(opened, key="candidates", **fields):
    picture = PICTURES[key]
    run = look(picture, opened("reverse"), "reverse", **fields)
    stepper = stepper_run(run.visible, run.checkpoint, "run")
    return SavedRunRequest(RunRef.of(run), picture.part.page, stepper, "http://localhost/step?src=a")


def english(request, **how):
    """What the file tells in English."""
    return told(saved_run.saved_run(request, **how))[0]


def unpacked(file, part):
    (text,) = re.findall(f'id="{part}">([^<>&]*)<', file.decode())
    return gzip.decompress(base64.b85decode(text.translate(str.maketrans(",.:", "<>&")))).decode()


def whole(value, parts):
    if isinstance(value, list):
        return [whole(one, parts) for one in value]
    if not isinstance(value, dict):
        return value
    return whole(parts[value["="]], parts) if "=" in value else {key: whole(one, parts) for key, one in value.items()}


def told(file):
    return [run for [run] in whole(**json.loads(unpacked(file, "run")))["languages"]]


def shown(said):
    """What components of all pages are given, by their names."""
    return {one["name"].removeprefix("saved-"): one for page in said["pages"] for one in page["shows"]}


@pytest.mark.parametrize("key", ["candidates", "head_map"])
def test_the_file_holds_each_picture_of_its_part_at_each_step(opened, key):
    one = kept(opened, key)
    run, said = one.again.run(), english(one)
    for picture in one.page.chosen(run.view).pictures.values():
        if picture.of(run) is None:
            continue
        chart = shown(said)[picture.key]
        frames = said["frames"].get(chart["follows"])
        for step in range(run.trace.n_steps):
            wanted = figure_json(here(picture.of(at_step(run, step)).spec, "en"))
            moment = changed(frames["first"], frames["changes"][step]) if frames else None
            assert (moment["figure"] if moment else json.loads(chart["figure"])) == json.loads(wanted)


def test_it_speaks_every_language_of_the_app_says_what_it_is_of_and_leads_back(opened):
    one = kept(opened)
    run, found = one.again.run(), told(saved_run.saved_run(one))
    assert [said["tag"][:2] for said in found] == list(languages())
    assert [len(shown(said)) for said in found] == [3, 3]
    assert found[1]["stepper"]["lang"] == "zh-CN"
    assert found[1]["stepper"]["words"]["Source"]
    assert shown(found[0])["candidates"]["alt"] != shown(found[1])["candidates"]["alt"]
    about = dict(found[0]["about"])
    assert (about["Sentence"], about["Output"]) == ("glass", "ssalg")
    assert about["Content hash"] == run.checkpoint.content_hash
    assert about["Licence"] == run.checkpoint.card.licence
    assert json.loads(found[0]["query"]["json"]) == json.loads(run.trace.query.to_json())
    assert found[0]["pages"][0]["address"] == "http://localhost/step?src=a"


def missing(said):
    """What the file says that it has not, by page."""
    return {page["path"]: page["missing"] for page in said["pages"]}


def without(titles):
    return f"This file leaves out some content that Glassformer shows: {', '.join(titles)}."


def test_what_is_work_for_the_model_at_each_step_is_left_out_by_name(opened):
    said = english(kept(opened, "matters_parts"))
    assert not {"matters_parts", "matters_bars"} & set(shown(said))
    titles = [picture.title for picture in PAGES["matters"].parts["logit"].pictures.values()]
    parts = [part.title for name, part in PAGES["matters"].parts.items() if name in ("pieces", "paths", "depth")]
    assert missing(said) == {"matters": without([*titles, *parts])}


def test_what_is_too_large_is_left_out_by_name(opened, monkeypatch):
    one = kept(opened)
    assert missing(english(one)) == {"step": ""}
    monkeypatch.setattr(saved_run, "MOST_BYTES", 20_000)
    said = english(one)
    titles = {key: picture.title for key, picture in PAGES["step"].parts[""].pictures.items()}
    assert 0 < len(shown(said)) < len(titles)
    assert missing(said) == {"step": without(title for key, title in titles.items() if key not in shown(said))}


def test_all_pages_that_step_are_there_if_asked_for(opened, monkeypatch):
    monkeypatch.setattr(saved_run, "languages", lambda: ("en",))
    alone, said = (english(kept(opened), more=more) for more in (False, True))
    moving = {picture.part.page.path for picture in PICTURES.values() if picture.follows == "frames"}
    assert alone["pages"] == said["pages"][:1]
    assert {page["path"]: page["address"] for page in said["pages"]} == {
        path: f"http://localhost/{path}?src=a" for path in moving - {"compare"}
    }
    assert {"flow", "lens_table", "walk_map", "search_tree", "overview_cross"} <= set(shown(said))
    assert len(shown(said)) == sum(len(page["shows"]) for page in said["pages"])  # each has a name of its own


def test_two_runs_are_compared_in_the_file_only_if_there_are_two(opened):
    run = kept(opened).again.run()
    changed = [replace(run.link, beside="step=2"), replace(run.link, interventions=parse("causal-off"))]
    found = [
        [page.path for page in saved_run.others(PAGES["step"], replace(run, link=link))]
        for link in (run.link, *changed)
    ]
    assert ["compare" in paths for paths in found] == [False, True, True]


def test_it_opens_where_the_reader_has_come_to_rest(opened):
    here, there = english(replace(kept(opened), step=3)), english(kept(opened, step=3))
    assert here["stepper"]["step"] == shown(here)["candidates"]["step"] == 3
    assert shown(here)["candidates"]["figure"] == shown(there)["candidates"]["figure"]


def test_the_flow_view_has_the_lines_that_the_page_has_and_no_table_of_rounded_numbers(opened):
    one = kept(opened, "head_map", layer=1, follow=True, heads=(0,))
    flow = drawn_flow(one.again.run(), "saved-flow").flow
    found, own = shown(english(one)), dict.fromkeys(("name", "file", "table", "alt", "caption"), "")
    page = json.loads(json.dumps(flow_payload(flow, Choice((0,), following=True), **own)))
    assert found["flow"] | page == found["flow"] | {key: page[key] for key in own}
    assert (found["overview_cross"]["table"], found["head_map"]["table"], found["flow"]["table"]) == ("none", "", "")


def test_a_file_of_thirty_pieces_with_all_maps_is_small(opened):
    assert len(saved_run.saved_run(kept(opened))) < 800_000
    model = load(loading.SHIPPED / "zh-en")
    source = "我喜欢喝绿茶，但是他喜欢喝咖啡，我们都喜欢吃苹果，因为今天天气很好，我妹妹想在家里看书。"
    link = Link(model=model.name, source=source)
    run, _ = seen(model, link, loading.runner().trace(model, link.query(model.content_hash)))
    assert run.trace.n_steps >= 30
    stepper = stepper_run(run.visible, model, "run")
    file = saved_run.saved_run(SavedRunRequest(RunRef.of(run), PAGES["attention"], stepper, ""))
    assert {"flow", *(f"overview_{kind}" for kind in run.trace.kinds)} <= set(shown(told(file)[0]))
    assert len(file) < 900_000


def test_what_makes_it_later_holds_no_run_and_says_so_if_its_checkpoint_was_let_go(opened):
    one = kept(opened)
    run = one.again.run()
    held = [*vars(one).values(), *vars(one.again).values()]
    assert not [value for value in held if value is run or value is run.trace or value is run.checkpoint]
    gone = replace(one, again=replace(one.again, checkpoint=lambda: None))
    with pytest.raises(QueryError, match="no longer open; reload the page"):
        saved_run.saved_run(gone)


def test_the_file_has_the_colours_of_the_app():
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))["theme"]
    light, dark = re.findall(r":root[^{]*{([^}]*)}", read_asset("extensions/saving/components/bundle/view.css"))
    names = {"backgroundColor": "background-color", "secondaryBackgroundColor": "secondary-background-color",
             "textColor": "text-color", "borderColor": "border-color"}  # fmt: skip
    for rules, theme in ((light, config["light"]), (dark, config["dark"])):
        assert all(f"--st-{name}: {theme[key]};" in rules for key, name in names.items())
    assert f"--st-base-radius: {config['baseRadius']};" in light


MARKUP = ("<script", "<img", "<svg", "<iframe", "<style", "<base", "<meta", "<form", "<template", "<a href='java")


@pytest.fixture
def small(monkeypatch):
    """Files without the scripts, which are the same in all."""
    monkeypatch.setattr(embedding, "plotly_packed", bytes)
    monkeypatch.setattr(saved_run, "script", str)


def texts_of(value):
    """Every text in a figure that Plotly is given: neither its tables nor what keeps a zoom are drawn."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        within = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in within:
            yield from () if key in ("uirevision", "table") else texts_of(one)


TOGETHER = [TEXTS[start::8] for start in range(8)]


@pytest.mark.parametrize(
    "texts", [*TOGETHER, *(pytest.param((text,), marks=pytest.mark.deep) for text in TEXTS)], ids=lambda one: len(one)
)
def test_a_hostile_text_is_text(opened, small, texts):
    plain, page = kept(opened), kept(opened).page
    one, run = hostile(plain.again.run(), page, *texts)
    file = saved_run.saved_run(one)
    languages_told, found = told(file), Elements(file.decode())
    page = read_asset("extensions/saving/components/bundle/page.html")
    expected = Elements(page.replace("EMBEDDED", embedding.embedded("")))
    assert (found.found, found.marks) == (expected.found, expected.marks)
    assert len(found.between) == len(expected.between)
    whole = [text.encode("utf-8", "replace").decode() for text in texts]
    for said in languages_told:
        about = [value for _, value in said["about"]]
        assert sum(map(about.count, whole)) >= 3  # the model, its data and the licence
        assert {chip["piece"] for chip in said["stepper"]["run"]["source"]} == {*whole}
        assert whole[0][:1000] in said["title"]
        assert json.loads(said["query"]["json"])["source"] == run.trace.query.source
        for chart in shown(said).values():
            figure = json.loads(chart["figure"])
            assert not [mark for value in texts_of(figure) for mark in MARKUP if mark in value]
    assert len(languages_told) == len(languages())
