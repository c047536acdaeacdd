"""A run as one file: what it holds is what the server would draw; text stays text; it is small."""

import base64
import gzip
import json
import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest

from tests.source_code import ROOT
from tests.ui.runs.test_frames import changed
from tests.ui.test_pictures import look, opened  # noqa: F401 (a fixture)
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from ui.components.assets import read_asset
from ui.components.plotly.plotly_view import figure_json
from ui.runs import loading, saved_run
from ui.runs.frames import Again
from ui.runs.open_run import seen
from ui.runs.saved_run import Kept
from ui.runs.seen import at_step
from ui.runs.stepper_run import stepper_run
from ui.shared.door import here
from ui.state.link import Link
from ui.teaching.declared import PAGES, PICTURES
from words import languages

HOSTILE = (
    "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "&lt;b&gt;", "${alert(1)}", "\u2028\u202e",
    "]]>", "<!--", "'\"`;", "javascript:alert(1)", ">RUN<",
)  # fmt: skip


def kept(opened, key="candidates", **fields):  # noqa: F811
    picture = PICTURES[key]
    run = look(picture, opened("reverse"), "reverse", **fields)
    return Kept(
        Again.of(run),
        picture.part.page,
        stepper_run(run.looking, run.checkpoint, "run"),
        "http://localhost/step?src=a",
    )


def unpacked(file, part):
    (text,) = re.findall(f'id="{part}">([^<]*)<', file.decode())
    return gzip.decompress(base64.b64decode(text)).decode()


def told(file):
    return [run for [run] in json.loads(unpacked(file, "run"))["languages"]]


@pytest.mark.parametrize("key", ["candidates", "head_map", "lens_table", "ffn_active", "matters_steps"])
def test_the_file_holds_each_picture_of_its_part_at_each_step(opened, key):  # noqa: F811
    one = kept(opened, key)
    run = one.again.run()
    english = told(saved_run.saved_run(one))[0]
    for picture in one.page.chosen(run.view).pictures.values():
        if picture.of(run) is None:
            continue
        (chart,) = [chart for chart in english["charts"] if chart["name"] == f"saved-{picture.key}"]
        frames = english["frames"].get(chart["follows"])
        for step in range(run.trace.n_steps):
            wanted = figure_json(here(picture.of(at_step(run, step)).spec, "en"))
            moment = changed(frames["first"], frames["changes"][step]) if frames else None
            assert (moment["figure"] if moment else json.loads(chart["figure"])) == json.loads(wanted)


def test_it_speaks_every_language_of_the_app(opened):  # noqa: F811
    found = told(saved_run.saved_run(kept(opened)))
    assert [said["tag"][:2] for said in found] == list(languages())
    assert [len(said["charts"]) for said in found] == [4, 4]
    assert found[1]["stepper"]["lang"] == "zh-CN"
    assert found[1]["stepper"]["words"]["Source"]
    assert found[0]["charts"][0]["alt"] != found[1]["charts"][0]["alt"]


def test_what_is_work_for_the_model_at_each_step_is_left_out(opened):  # noqa: F811
    (english, *_) = told(saved_run.saved_run(kept(opened, "matters_pieces")))
    assert not {"saved-matters_pieces", "saved-matters_parts"} & {chart["name"] for chart in english["charts"]}


def test_it_says_what_it_is_of_and_leads_back(opened):  # noqa: F811
    one = kept(opened)
    run = one.again.run()
    english = told(saved_run.saved_run(one))[0]
    about = dict(english["about"])
    assert (about["Sentence"], about["Output"]) == ("glass", "ssalg")
    assert about["Content hash"] == run.checkpoint.content_hash
    assert about["Licence"] == run.checkpoint.card.licence
    assert json.loads(english["query"]["json"]) == json.loads(run.trace.query.to_json())
    assert english["live"]["address"] == "http://localhost/step?src=a"


def test_a_file_of_thirty_pieces_with_all_maps_is_small():
    model = load(loading.SHIPPED / "zh-en")
    source = "我喜欢喝绿茶，但是他喜欢喝咖啡，我们都喜欢吃苹果，因为今天天气很好，我妹妹想在家里看书。"
    link = Link(model=model.name, source=source)
    run, _ = seen(model, link, loading.runner().trace(model, link.query(model.content_hash)))
    assert run.trace.n_steps == 30
    file = saved_run.saved_run(Kept(Again.of(run), PAGES["attention"], stepper_run(run.looking, model, "run"), ""))
    assert {f"saved-overview_{kind}" for kind in run.trace.kinds} <= {one["name"] for one in told(file)[0]["charts"]}
    assert len(file) < 2_500_000


def test_no_text_of_a_run_is_markup_in_the_file(opened, monkeypatch):  # noqa: F811
    plain = saved_run.saved_run(kept(opened))
    monkeypatch.setattr(saved_run, "_about", lambda run: {text: text for text in HOSTILE})
    file = saved_run.saved_run(kept(opened))
    assert dict(told(file)[0]["about"]) == {text: text for text in HOSTILE}
    outside = [re.sub('id="run">[^<]*<', "", one.decode()) for one in (plain, file)]
    assert outside[0] == outside[1]


def test_what_makes_it_later_holds_no_run(opened):  # noqa: F811
    one = kept(opened)
    run = one.again.run()
    held = [*vars(one).values(), *vars(one.again).values()]
    assert not [value for value in held if value is run or value is run.trace or value is run.checkpoint]
    assert told(saved_run.saved_run(one))[0]["charts"]


def test_a_run_whose_checkpoint_was_let_go_is_said_to_be_gone(opened):  # noqa: F811
    one = kept(opened)
    gone = replace(one, again=replace(one.again, checkpoint=lambda: None))
    with pytest.raises(QueryError, match="no longer open; reload the page"):
        saved_run.saved_run(gone)


def test_the_file_has_the_colours_of_the_app():
    config = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))["theme"]
    light, dark = re.findall(r":root[^{]*{([^}]*)}", read_asset("bundle/view.css"))
    names = {"backgroundColor": "background-color", "secondaryBackgroundColor": "secondary-background-color",
             "textColor": "text-color", "borderColor": "border-color"}  # fmt: skip
    for rules, theme in ((light, config["light"]), (dark, config["dark"])):
        assert all(f"--st-{name}: {theme[key]};" in rules for key, name in names.items())
    assert f"--st-base-radius: {config['baseRadius']};" in light


def test_numbers_of_a_map_are_those_of_the_run(opened):  # noqa: F811
    one = kept(opened, "cross_map", layer=1, head=2)
    trace = one.again.run().trace
    (chart,) = [chart for chart in told(saved_run.saved_run(one))[0]["charts"] if chart["name"] == "saved-cross_map"]
    sent = json.loads(chart["figure"])["data"][0]["z"]
    weights = np.frombuffer(base64.b64decode(sent["bdata"]), np.float32).reshape(trace.n_steps, -1)
    np.testing.assert_array_equal(weights, trace.maps("cross")[1, 2].astype(np.float32))
