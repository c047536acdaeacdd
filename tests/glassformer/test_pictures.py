"""Every declared picture for every kind of model, in guess mode, in both slots: generated from the declarations."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType

import plotly.graph_objects as go
import pytest

from glassformer.charts.theme import SCALES, figure_in
from glassformer.runs import loading
from glassformer.runs.open_run import seen
from glassformer.runs.picture_registry import PAGES, PICTURES
from glassformer.state.click import Click
from glassformer.state.link import Link
from glassformer.state.view import MAIN, SECOND, View, all_fields
from tests.source_code import ROOT
from tests.transformer.featured import FEATURED, featured
from tests.transformer.grown import NAME, write_grown
from tests.transformer.one_stack import ALONE, alone
from transformer.checkpoint.load import load
from transformer.extensions import imported
from transformer.i18n import Sentence, languages, said

MARKUP = "<b>&amp;<i onclick=x>"
STEP = 2  # that is guessed
ONE_HEAD = {key: {"layer": 0, "head": 0} for key in ("matters_steps", "matters_map")}  # nothing else has these
KINDS = ("reverse", *ALONE, "rotary", "alibi", "grown")
SENTENCES = {"reverse": "glass", "grown": "glass", "decoder": "ba lo mi", "encoder": "ba lo mi"}


@pytest.fixture(scope="session")
def opened(tmp_path_factory):
    """A function that opens a kind of model once."""
    folder = tmp_path_factory.mktemp("kinds")

    @cache
    def one(kind):
        if kind in FEATURED:
            return featured(kind, folder)
        if kind == "grown":
            return load(write_grown(folder) / NAME)
        return alone(kind, folder) if kind in ALONE else load(loading.SHIPPED / kind)

    return one


def look(picture, checkpoint, kind, /, *, slot=MAIN, asked=MappingProxyType({}), **fields):
    """A run of a kind of model, with what else its link asks for, and what is looked at of it."""
    page, part = picture.part.page, picture.part.name
    fields |= {page.panel: part} if part else {}
    fields |= ONE_HEAD.get(picture.key, {})
    known = {"source": SENTENCES.get(kind, "ba lo mi"), "companions": (MARKUP,)}
    link = Link(model=checkpoint.name, view=View().but(**fields), **known | asked)
    trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    run, _ = seen(checkpoint, link, trace, kind=page.kind(link.view), slot=slot)
    return run


@pytest.mark.parametrize("page", [page for page in PAGES.values() if page.panel], ids=lambda page: page.path)
def test_a_page_lists_every_part_and_what_draws_it_is_there(page):
    assert [*page.listed()] == [*page.parts] == [*all_fields()[page.panel].words]
    assert all(callable(imported(one.draws)) for one in page.listed().values() if one.draws)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", PICTURES)
def test_a_picture_is_a_figure_with_words_and_a_table(opened, key, kind):
    picture = PICTURES[key]
    plot = picture.of(look(picture, opened(kind), kind))
    if plot is None:
        return
    figure = figure_in(plot.spec, "en")  # Plotly checks every attribute
    assert isinstance(figure, go.Figure)
    assert plot.spec["data"]
    assert plot.spec["layout"]["height"] > 0
    assert isinstance(plot.caption, Sentence)
    for language in languages():
        assert said(plot.alt, language).strip()
        assert said(plot.caption, language).strip()
        assert said(plot.spec["layout"]["title"]["text"], language).strip()
    assert len(json.dumps(figure.to_plotly_json(), default=str)) < 300_000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", PICTURES)
def test_what_is_said_next_to_a_picture_is_in_sentences_and_in_whole_rows(opened, key, kind):
    plot = PICTURES[key].of(look(PICTURES[key], opened(kind), kind))
    if plot is None or plot.said is None:
        return
    table = plot.said.table
    assert plot.said.above or plot.said.below or table
    names = [] if table is None else [*table.columns, *filter(None, (table.fold, table.note))]
    assert all(isinstance(one, Sentence) for one in (*filter(None, (plot.said.above, plot.said.below)), *names))
    assert table is None or (table.rows and {len(row) for row in table.rows} == {len(table.columns)})


@pytest.mark.parametrize("key", PICTURES)
def test_a_picture_of_some_kind_of_model_is_the_same_in_the_second_slot(opened, key):
    picture = PICTURES[key]
    pairs = ([picture.of(look(picture, opened(kind), kind, slot=slot)) for slot in (MAIN, SECOND)] for kind in KINDS)
    first, second = next(pair for pair in pairs if pair[0] is not None)
    assert repr((first.spec, first.words)) == repr((second.spec, second.words))


@pytest.mark.parametrize("key", PICTURES)
def test_a_guess_hides_what_comes_later(opened, key):
    """Two outputs that part at the piece to be guessed look the same until it is guessed."""
    picture = PICTURES[key]
    own = look(picture, opened("reverse"), "reverse").trace.tgt_ids
    ways = [own[: STEP + 1], (*own[:STEP], own[0] if own[0] != own[STEP] else own[1])]
    hidden = []
    for forced in ways:
        run = look(picture, opened("reverse"), "reverse", asked={"forced": forced}, step=STEP, guess=True)
        plot = picture.of(replace(run, visible=replace(run.visible, revealed=False)))
        hidden.append(None if plot is None else repr((plot.spec, plot.words)))
    assert hidden[0] == hidden[1]


@pytest.mark.parametrize("key", PICTURES)
def test_a_map_names_its_axes_as_its_hover_does(opened, key):
    """What hover says of a row stands at the vertical axis, and of a column at the horizontal one."""
    picture = PICTURES[key]
    plot = picture.of(look(picture, opened("reverse"), "reverse"))
    for trace in plot.spec["data"] if plot else ():
        if trace.get("meta") != "cells" or not trace.get("hovertemplate"):
            continue
        for place, axis in enumerate((trace.get("yaxis", "y"), trace.get("xaxis", "x"))):
            title = plot.spec["layout"][f"{axis[0]}axis{axis[1:]}"]["title"]["text"]
            line = next(part for part in trace["hovertemplate"].split("<br>") if f"customdata[{place}]" in part)
            assert line.partition("%{")[0].strip() in title


@pytest.mark.parametrize("key", PICTURES)
def test_cells_without_a_number_have_a_colour_that_no_number_has(opened, key):
    picture = PICTURES[key]
    plot = picture.of(look(picture, opened("decoder"), "decoder"))
    closed = [trace for trace in plot.spec["data"] if is_closed(trace)] if plot else []
    numbers = {colour for scale in SCALES.values() for _, colour in scale}
    for trace in closed:
        colours = {colour for _, colour in trace["colorscale"]}
        assert len(colours) == 1
        assert not colours & numbers


def is_closed(trace):
    """Whether a map's hover says why there is no number."""
    return trace["type"] == "heatmap" and re.search(r"<i>[^<%]*</i>", trace.get("hovertemplate", "")) is not None


@pytest.mark.parametrize("key", PICTURES)
def test_a_click_on_a_cell_means_its_row_as_query_and_its_column_as_key(opened, key):
    picture = PICTURES[key]
    plot = picture.of(look(picture, opened("reverse"), "reverse"))
    meant = plot.clicked(Click(0, (2, 1), None)) if plot and plot.clicked else None
    if isinstance(meant, Mapping) and {"query", "key"} <= set(meant):
        assert (meant["query"], meant["key"]) == (2, 1)


@pytest.mark.parametrize("key", PICTURES)
def test_text_of_a_sentence_is_never_markup(opened, key):
    picture = PICTURES[key]
    plot = picture.of(look(picture, opened("reverse"), "reverse"))
    assert plot is None or "<i onclick" not in repr(plot.spec)


def test_declarations_need_no_streamlit():
    """What a notebook or a command draws them with."""
    modules = sorted({picture.plot.__module__ for picture in PICTURES.values()})
    program = f"import sys; sys.modules['streamlit'] = None; import {', '.join(modules)}"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("path", [path for path, page in PAGES.items() if page.panel])
def test_an_address_names_each_part_of_a_page(path):
    page = PAGES[path]
    assert set(page.parts) <= set(all_fields()[page.panel].words)  # of which extensions may draw some
