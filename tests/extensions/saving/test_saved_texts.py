"""No text of a run is markup in its file: 40 hostile ones as its sentence, pieces, model's card and name."""

import json

import pytest

from glassformer.components import embedding
from glassformer.components.custom_component import read_asset
from glassformer.extensions.saving import saved_run
from tests.extensions.saving.hostile_run import TEXTS, Elements, hostile
from tests.extensions.saving.test_saved_run import kept, shown, told
from transformer.i18n import languages

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
