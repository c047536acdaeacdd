"""A notebook shows runs, and a command writes pictures, as the app draws them; what cannot be drawn is said."""

import ast
import asyncio
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import nbformat
import numpy as np
import pytest

import transformer
from glassformer.components import embedding
from glassformer.components.plotly_component import figure_json
from glassformer.extensions.saving import notebook, saved_run
from glassformer.runs.picture import PAGES, PICTURES, declare_all
from glassformer.runs.viewed_run import at_step
from glassformer.shared.i18n import here
from glassformer.state.view import View, all_fields
from tests.extensions.saving.hostile_run import TEXTS, Elements, hostile
from tests.extensions.saving.test_saved_run import told, unpacked, whole
from tests.glassformer.conftest import look
from tests.source_code import ROOT
from tests.transformer.devices import refused_without_cuda as refused_without_cuda
from tools.browser import find_browser
from transformer.__main__ import main
from transformer.errors import GlassformerError, QueryError

declare_all()

REVERSE = ROOT / "checkpoints" / "reverse"


def charts(said):
    """What components are given."""
    return [one for page in said["pages"] for one in page["shows"]]


def framed(html):
    """What the file in the frame tells."""
    return told(Elements(html).only("iframe")["srcdoc"].encode())


def test_a_trace_shows_itself_with_its_steps_and_without_scripts(reverse, no_images):
    trace = reverse.run("stone")
    shown = Elements(trace._repr_html_())
    english = framed(trace._repr_html_())[0]
    step = [key for part in PAGES["step"].parts.values() for key in part.pictures]
    assert [chart["name"] for chart in charts(english)] == [f"saved-{key}" for key in step]
    assert ["Output", trace.output_text] in english["about"]
    text = "".join(shown.between)
    assert not [part for part in (*trace.tgt_tokens, *trace.texts) if part not in text]
    assert "Candidates for the next token" in text
    assert not [tag for tag, _ in shown.found if tag in ("script", "img")]


def test_two_runs_stand_beside_each_other(reverse, no_images):
    left, right = reverse.run("stone"), reverse.run("glass")
    html = transformer.compare(left, right, "step.candidates")._repr_html_()
    (sides, *_) = whole(**json.loads(unpacked(Elements(html).only("iframe")["srcdoc"].encode(), "run")))["languages"]
    assert [dict(side["about"])["Output"] for side in sides] == [left.output_text, right.output_text]
    names = [chart["name"] for side in sides for chart in charts(side)]
    assert names == ["saved-candidates", "beside-candidates"]
    assert not {*sides[0]["frames"]} & {*sides[1]["frames"]}


def test_a_picture_is_shown_by_its_name_as_the_app_draws_it(reverse, no_images):
    shown = reverse.run("stone").show("head_map", layer=1, head=2, step=3)
    [chart] = charts(framed(shown._repr_html_())[0])
    run = shown.runs[0].run
    assert (run.view.layer, run.view.head, run.view.step) == (1, 2, 3)
    assert chart["figure"] == figure_json(here(PICTURES["head_map"].of(at_step(run, 3)).spec, "en"))


def test_a_part_and_a_page_have_all_their_pictures_and_every_field_of_the_view_can_be_given():
    assert [one.key for one in notebook.pictures_named("masks.checks")] == list(PAGES["masks"].parts["checks"].pictures)
    assert {one.part.page.path for one in notebook.pictures_named("attention")} == {"attention"}
    for key, picture in PICTURES.items():
        assert notebook.pictures_named(f"{picture.part.page.path}.{key}") == [picture]
    plain = View()
    for name in all_fields():
        assert notebook.looked_at({name: plain.get(name)}) == plain


@pytest.mark.parametrize(
    ("name", "view", "says"),
    [
        ("attention.heat_map", {}, "attention.head_map"),
        ("nothing", {}, "name: there is no 'nothing'; choose from"),
        ("step", {"layers": 2}, "view: there is no 'layers'; choose from layer"),
        ("step", {"layer": "2"}, "layer cannot be '2'"),
        ("step", {"kind": "crossed"}, "kind cannot be 'crossed'"),
        ("positions.rotary_circle", {}, "rotary_circle has nothing to show for reverse"),
    ],
)
def test_what_cannot_be_shown_is_said(reverse, name, view, says):
    with pytest.raises(QueryError, match=says.replace(".", r"\.")):
        reverse.run("stone").show(name, **view)


def test_a_layer_that_is_not_there_is_warned_of(reverse, no_images, tmp_path, capsys):
    said = "Layer 10 was requested, but the last layer of this model is layer 2"
    with pytest.warns(UserWarning, match=said):
        reverse.run("stone").show("step", layer=9)
    out = tmp_path / "map.html"
    assert main(["picture", str(REVERSE), "stone", "layer=10", "--panel", "step.candidates", "--out", str(out)]) == 0
    assert f"note: {said}" in capsys.readouterr().err
    (chart,) = charts(told(out.read_bytes())[0])
    assert chart["name"] == "saved-candidates"


def test_text_is_never_markup(opened, no_images, monkeypatch):
    monkeypatch.setattr(embedding, "plotly_packed", bytes)
    monkeypatch.setattr(saved_run, "script", str)
    picture = PICTURES["candidates"]
    run = look(picture, opened("reverse"), "reverse")

    def tags(*texts):
        kept, there = hostile(run, picture.part.page, *texts)
        shown = saved_run.SavedRunContent(there, kept.stepper, kept.page, [picture])
        return [tag for tag, _ in Elements(notebook.InNotebook([shown])._repr_html_()).found]

    plain = tags("a")
    texts = [text for text in TEXTS if text.isprintable()]  # others are in no table of pandas, and no vocabulary
    for start in range(0, len(texts), 6):  # as many as a run of this model has pieces
        some = texts[start : start + 6]
        assert tags(*some) == plain, some


def test_without_the_app_the_library_says_what_is_missing(reverse, monkeypatch):
    monkeypatch.setitem(sys.modules, "glassformer.extensions.saving.notebook", None)
    with pytest.raises(GlassformerError, match=r"drawn by the app, but its module glassformer\S+notebook is missing"):
        reverse.run("stone").show()


def test_a_plain_rendering_has_pictures_where_they_can_be_drawn(reverse, monkeypatch):
    monkeypatch.setattr(notebook, "images", lambda specs, *_, **how: [b"drawn"] * len(specs))
    shown = Elements(reverse.run("stone").show("attention.head_map", layer=1, head=0)._repr_html_())
    assert shown.only("img")["src"] == "data:image/png;base64,ZHJhd24="
    assert "layer 2, head 1" in shown.only("img")["alt"]


@pytest.mark.deep
def test_a_notebook_runs_and_keeps_a_plain_rendering_with_pictures(tmp_path):
    cells = [
        f"import transformer\ncheckpoint = transformer.load({str(REVERSE)!r})",
        "trace = checkpoint.run('stone')\ntrace",
        "trace.show('attention.head_map', layer=1, head=0)",
        "transformer.compare(trace, checkpoint.run('glass'), 'step.candidates')",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbformat.write(book, tmp_path / "runs.ipynb")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "BROWSER_PATH": find_browser() or ""}
    run = [sys.executable, "-m", "nbconvert", "--execute", "--to", "notebook", "--output", "done", "runs.ipynb"]
    found = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    done = nbformat.read(tmp_path / "done.ipynb", 4)
    outputs = [cell.outputs[-1].data["text/html"] for cell in done.cells[1:]]
    assert [len(Elements(html).found) > 0 for html in outputs] == [True] * 3
    images = [attributes["src"] for html in outputs for tag, attributes in Elements(html).found if tag == "img"]
    assert len(images) == 3 + 1 + 2
    assert all(image.startswith("data:image/png;base64,iVBOR") for image in images)
    assert "stone" in done.cells[1].outputs[-1].data["text/plain"]


def test_pictures_are_sized_for_print(tmp_path, monkeypatch):
    common = ["picture", str(REVERSE), "stone", "layer=2", "head=1", "--width", "100", "--dpi", "254", "--out"]
    monkeypatch.setenv("BROWSER_PATH", find_browser() or "")
    assert main([*common, str(tmp_path / "map.svg")]) == 0
    root = ElementTree.parse(tmp_path / "map.svg").getroot()
    assert root.get("width") == str(round(100 / 25.4 * 96))
    words = "".join(root.itertext())
    assert "layer 2, head 1" in words
    assert "(query)" in words
    assert "</s>" in words

    async def sized(_, figure, options):  # a second browser would only multiply
        return repr(options).encode()

    monkeypatch.setattr("kaleido.Kaleido.__aenter__", lambda self: asyncio.sleep(0, self))
    monkeypatch.setattr("kaleido.Kaleido.__aexit__", lambda self, *_: asyncio.sleep(0))
    monkeypatch.setattr("kaleido.Kaleido.calc_fig", sized)
    assert main([*common, str(tmp_path / "map.png")]) == 0
    options = ast.literal_eval((tmp_path / "map.png").read_text())
    assert options["format"] == "png"
    assert abs(options["width"] * options["scale"] - 1000) <= 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "map.gif"], "map.gif: a picture must be .svg, .pdf, .png, .html, .dot, .tex."),
        (["layer", "--out", "map.svg"], "'layer': write it as WORD=VALUE"),
        (["layr=1", "--out", "map.svg"], "parameters: there is no 'layr'; choose from layer"),
        (["--width", "9", "--out", "map.svg"], "9.0 mm is not a valid picture size; use 30 to 1000 mm."),
        (["--dpi", "9", "--out", "map.png"], "9.0 dpi is out of range; use 96 to 1200 dpi."),
        (["--language", "xx", "--out", "map.svg"], "language: there is no 'xx'; choose from en, zh."),
    ],
)
def test_a_command_that_cannot_be_done_says_why(tmp_path, monkeypatch, capsys, arguments, says):
    monkeypatch.chdir(tmp_path)
    assert main(["picture", str(REVERSE), "stone", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_every_picture_has_what_the_apps_scripts_would_add(reverse):
    run = reverse.run("stone").show().runs[0].run
    pictures = [picture for picture in PICTURES.values() if not picture.part.page.of_two]
    figures = [notebook.figure_of(plot.spec, "en") for picture in pictures if (plot := picture.of(run)) is not None]
    cells = [trace.z for figure in figures for trace in figure.data if trace.type == "heatmap"]
    assert len(cells) > 10
    assert all(one is not None for one in cells)


def test_without_kaleido_or_a_browser_the_remedy_is_said(no_images, reverse, monkeypatch):
    spec = notebook.plot_of(PICTURES["head_map"], reverse.run("stone").show().runs[0].run).spec
    with pytest.raises(GlassformerError, match=r"install it with `pip install 'glassformer\[pictures\]'`"):
        notebook.images([spec], "en", form="svg", width=100)
    monkeypatch.undo()
    monkeypatch.setenv("BROWSER_PATH", str(REVERSE / "no browser"))
    with pytest.raises(GlassformerError, match="the browser could not draw the picture"):
        notebook.images([spec], "en", form="svg", width=100)


def test_picture_has_the_option(refused_without_cuda):
    assert refused_without_cuda("picture", "x", "--out", "x.svg")


def test_maps_show_themselves():
    encoder, cross = (np.full((1, 2, n, 3), 1 / 3) for n in (3, 2))
    maps = transformer.given_maps(encoder=encoder, cross=cross, source=["a", "<b>", "c"], target=["x", "y"])
    page = Elements(maps._repr_html_()).only("iframe")["srcdoc"]
    assert page.count('class="chart"') == 2
    assert len(page) < 900_000
    assert "<b>" not in page.replace("\\u003cb\\u003e", "").replace("&lt;b&gt;", "")
    one = Elements(maps.show("attention.head", kind="cross", layer=0, head=1)._repr_html_()).only("iframe")["srcdoc"]
    assert "Cross-attention: layer 1, head 2" in one
    with pytest.raises(QueryError, match=r"there is no 'step'; choose from attention.overview, attention.head"):
        maps.show("step")
