"""Every declared picture for every kind of model, in guess mode, in both slots: generated from the declarations."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import plotly.graph_objects as go
import pytest

import ui.masks.pictures  # noqa: F401  (declares what is tested)
from charts.theme import figure_in
from tests.source_code import ROOT
from tests.transformer.one_stack import ALONE, alone
from transformer.checkpoint.load import load
from transformer.lessons import lessons
from ui.runs import loading
from ui.runs.open_run import seen
from ui.runs.picture import PAGES, PICTURES
from ui.state.link import Link
from ui.state.view import MAIN, SECOND, View
from words import languages, said

MARKUP = "<b>&amp;<i onclick=x>"
STEP = 2  # that is guessed
KINDS = ("reverse", *ALONE)
SENTENCES = {"reverse": "glass", "decoder": "ba lo mi", "encoder": "ba lo mi"}


@pytest.fixture(scope="session")
def opened(tmp_path_factory):
    """A function that opens a kind of model once."""
    folder = tmp_path_factory.mktemp("kinds")

    @cache
    def one(kind):
        return alone(kind, folder) if kind in ALONE else load(loading.SHIPPED / kind)

    return one


def look(checkpoint, kind, *, slot=MAIN, forced=(), **fields):
    """A run of a kind of model, and what is looked at of it."""
    link = Link(
        model=checkpoint.name, source=SENTENCES[kind], view=View(**fields), forced=forced, companions=(MARKUP,)
    )
    trace = loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    run, _ = seen(checkpoint, link, trace, slot=slot)
    return run


def parts_of(picture):
    """The fields of the view that choose the picture's part."""
    return {picture.page.panel: picture.part} if picture.part else {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", PICTURES)
def test_a_picture_is_a_figure_with_words_and_a_table(opened, key, kind):
    picture = PICTURES[key]
    plot = picture.of(look(opened(kind), kind, **parts_of(picture)))
    if plot is None:
        return
    figure = figure_in(plot.spec, "en")  # Plotly checks every attribute
    assert isinstance(figure, go.Figure)
    assert plot.spec["data"]
    assert plot.spec["layout"]["height"] > 0
    for language in languages():
        assert said(plot.alt, language).strip()
        assert said(plot.how_to_read, language).strip()
        assert said(plot.spec["layout"]["title"]["text"], language).strip()
    assert len(json.dumps(figure.to_plotly_json(), default=str)) < 300_000


@pytest.mark.parametrize("key", PICTURES)
def test_some_kind_of_model_has_it(opened, key):
    picture = PICTURES[key]
    assert any(picture.of(look(opened(kind), kind, **parts_of(picture))) for kind in KINDS)


@pytest.mark.parametrize("key", PICTURES)
def test_a_picture_is_the_same_in_the_second_slot(opened, key):
    picture = PICTURES[key]
    first, second = (
        picture.of(look(opened("reverse"), "reverse", slot=slot, **parts_of(picture))) for slot in (MAIN, SECOND)
    )
    assert repr(first.spec) == repr(second.spec)


@pytest.mark.parametrize("key", PICTURES)
def test_a_guess_hides_what_comes_later(opened, key):
    """Two outputs that part at the piece to be guessed look the same until it is guessed."""
    picture = PICTURES[key]
    own = look(opened("reverse"), "reverse").trace.tgt_ids
    ways = [(), (*own[:STEP], own[0] if own[0] != own[STEP] else own[1])]
    hidden = []
    for forced in ways:
        run = look(opened("reverse"), "reverse", forced=forced, step=STEP, guess=True, **parts_of(picture))
        plot = picture.of(replace(run, looking=replace(run.looking, revealed=False)))
        hidden.append(None if plot is None else repr((plot.spec, plot.alt)))
    assert hidden[0] == hidden[1]


@pytest.mark.parametrize("key", PICTURES)
def test_text_of_a_sentence_is_never_markup(opened, key):
    picture = PICTURES[key]
    plot = picture.of(look(opened("reverse"), "reverse", **parts_of(picture)))
    assert "<i onclick" not in repr(plot.spec)


def test_declarations_need_no_streamlit():
    """What a notebook or a command draws them with."""
    modules = sorted({picture.plot.__module__ for picture in PICTURES.values()})
    program = f"import sys; sys.modules['streamlit'] = None; import {', '.join(modules)}"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_a_page_names_its_pictures_as_the_covers_of_lessons_do():

    named = {
        (step.page, word) for one in lessons().values() for step in one.steps for word in (*step.look, *step.cover)
    }
    for page, word in named:
        if page in PAGES and word not in ("*", "part"):
            assert word in PAGES[page].pictures
