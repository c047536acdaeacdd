"""Each declared picture is drawn for each kind of model, hides what is to be guessed, and needs few libraries."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from glassformer.charts.theme import SCALES, figure_in
from glassformer.runs.picture import PAGES, PICTURES, declare_all
from glassformer.state.view import MAIN, SECOND, Click, all_fields
from tests.afresh import run_afresh, run_apart
from tests.glassformer.conftest import look
from tests.source_code import ROOT
from tests.transformer.one_stack import ALONE
from transformer.extensions import imported
from transformer.i18n import Sentence, languages, said

declare_all()

STEP = 2  # that is guessed
COLOURS = {colour for scale in SCALES.values() for _, colour in scale}
KINDS = ("reverse", *ALONE, "rotary", "alibi", "grown")


def test_a_page_lists_every_part_that_an_address_names_and_what_draws_it_is_there():
    for page in PAGES.values():
        if page.panel:
            assert [*page.listed()] == [*page.parts] == [*all_fields()[page.panel].words], page.path
            assert all(callable(imported(one.draws)) for one in page.listed().values() if one.draws)


# Positions and snapshots are features that pictures of other parts see nothing of.
OF_FEATURES = {"positions": ("rotary", "alibi"), "attention": ("rotary", "alibi"), "training": ("grown",)}
EACH = [
    pytest.param(key, kind, marks=[pytest.mark.deep] * (kind not in ("reverse", *ALONE, *there)))
    for key, picture in PICTURES.items()
    for there in (OF_FEATURES.get(picture.part.page.path, ()) + ("grown",) * (picture.part.name == "training"),)
    for kind in KINDS
]
CHECKED = set()
WORDS = {"anchor", "dash", "mode", "orientation", "side", "symbol", "type", "xanchor", "xref", "yanchor", "yref"}


def form(spec):
    """The attributes of a figure at all depths, with their words or the types of their values; of a list each once."""
    if isinstance(spec, Mapping):
        return tuple(
            (key, value if key in WORDS and isinstance(value, str) else form(value)) for key, value in spec.items()
        )
    if isinstance(spec, list | tuple):
        return frozenset(map(form, spec))
    return type(spec)


@pytest.mark.parametrize(("key", "kind"), EACH)
def test_a_picture_is_a_figure_with_words_and_whole_tables(opened, key, kind):
    plot = PICTURES[key].of(look(PICTURES[key], opened(kind), kind))
    if plot is None:
        return
    if (made := (key, form(plot.spec))) not in CHECKED:  # for Plotly a figure of the same form is the same again
        figure = figure_in(plot.spec, "en")  # Plotly checks every attribute
        assert isinstance(figure, go.Figure)
        assert len(json.dumps(figure.to_plotly_json(), default=str)) < 300_000
        CHECKED.add(made)
    assert plot.spec["data"]
    assert plot.spec["layout"]["height"] > 0
    assert isinstance(plot.caption, Sentence)
    told = (plot.alt, plot.caption, plot.spec["layout"]["title"]["text"])
    assert all(said(text, language).strip() for text in told for language in languages())
    for trace in filter(is_closed, plot.spec["data"]):
        assert len({colour for _, colour in trace["colorscale"]} - COLOURS) == 1  # no number has it
    if plot.said is not None:
        table = plot.said.table
        texts = [plot.said.above, plot.said.below, *(() if table is None else (*table.columns, table.fold, table.note))]
        assert any(texts)
        assert all(isinstance(one, Sentence) for one in texts if one)
        assert table is None or (table.rows and {len(row) for row in table.rows} == {len(table.columns)})


def shown(spec):
    """A figure without what is never shown by Plotly: what names a zoom, and the table."""
    if isinstance(spec, Mapping):
        return {key: shown(value) for key, value in spec.items() if key not in ("uirevision", "table")}
    return [*map(shown, spec)] if isinstance(spec, list | tuple) else spec


def is_closed(trace):
    """Whether a map's hover says why there is no number."""
    return trace["type"] == "heatmap" and re.search(r"<i>[^<%]*</i>", trace.get("hovertemplate", "")) is not None


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
def test_a_map_names_its_axes_as_its_hover_does_a_click_on_a_cell_means_it_and_text_is_never_markup(opened, key):
    """What hover says of a row stands at the vertical axis, and of a column at the horizontal one."""
    plot = PICTURES[key].of(look(PICTURES[key], opened("hostile"), "hostile"))
    if plot is None:
        return
    assert not re.search(r"<i onclick|<u>|%\{z\}", repr(shown(plot.spec)))
    meant = plot.clicked(Click(0, (2, 1), None)) if plot.clicked else None
    if isinstance(meant, Mapping) and {"query", "key"} <= set(meant):
        assert (meant["query"], meant["key"]) == (2, 1)
    for trace in plot.spec["data"]:
        if trace.get("meta") != "cells" or not trace.get("hovertemplate"):
            continue
        for place, axis in enumerate((trace.get("yaxis", "y"), trace.get("xaxis", "x"))):
            title = plot.spec["layout"][f"{axis[0]}axis{axis[1:]}"]["title"]["text"]
            line = next(part for part in trace["hovertemplate"].split("<br>") if f"customdata[{place}]" in part)
            assert line.partition("%{")[0].strip() in title


def test_declarations_need_no_streamlit():
    """What a notebook or a command draws them with."""
    modules = sorted({picture.plot.__module__ for picture in PICTURES.values()})
    program = f"import sys; sys.modules['streamlit'] = None; import {', '.join(modules)}"
    found = run_afresh(program)
    assert found.returncode == 0, found.stderr


DRAW = """
import sys
from streamlit.testing.v1 import AppTest
test = AppTest.from_file("main.py", default_timeout=120).run()
print(len(test.get("bidi_component")), [one.value for one in test.exception], {"pandas", "pyarrow"} & {*sys.modules})
"""


def test_it_is_drawn_without_tables():
    drawn, _, rest = run_apart(DRAW, folder=ROOT).stdout.strip().partition(" ")
    assert int(drawn) > 3
    assert rest == "[] set()"
