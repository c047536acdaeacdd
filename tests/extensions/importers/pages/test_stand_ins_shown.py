"""What stands in for a part that a small model lacks: marked in One weight, in the shapes and in Parameters."""

import pytest
from safetensors.torch import save_file

from glassformer.runs import loading
from glassformer.state.answers import write
from tests.extensions.importers.library.test_stand_ins import CASES
from tests.extensions.importers.library.tutorial_encoders import Block, Blocks, Least
from tests.extensions.importers.library.tutorial_models import at_random
from tests.extensions.scripts import DOCTOR
from tests.pages.conftest import ATTENTION, CHECKPOINTS, INSIDE
from tests.pages.reading import told
from transformer.analysis.stand_ins import MAP, PROJECTION, SAID, TABLE

ABSENT = {Least: (PROJECTION, MAP), Block: (TABLE,), Blocks: ()}


@pytest.fixture(params=ABSENT, ids=lambda make: make.__name__)
def model(request, open_page, tmp_path, monkeypatch):
    """The model as its file has it, what is absent, and a function that opens a page with it."""
    theirs = at_random(request.param())
    save_file(theirs.state_dict(), tmp_path / "m.safetensors")
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    given = {"model": "m.safetensors", "answers": write(tuple(CASES[request.param][1].items())), "src": "1 2 3"}
    return theirs, ABSENT[request.param], lambda page, **parameters: open_page(page, **given, **parameters)


def test_one_weight_has_no_output_projection_where_the_model_has_none(model):
    _, absent, page = model
    said = told(page(ATTENTION, panel="walk"))
    assert ("No W_O: what this head adds" in said) == (SAID[PROJECTION] in said) == (PROJECTION in absent)
    assert ("columns of W_O turn o into y" in said) == (PROJECTION not in absent)


def test_the_shapes_say_of_each_place_what_stands_in_there(model):
    _, absent, page = model
    table = page(INSIDE, inside="model").dataframe[0].value
    remarks = dict(zip(table["Name in the code"], table["Remark"], strict=True))
    marked = {end: [site for site, remark in remarks.items() if text in remark] for end, text in SAID.items()}
    places = {PROJECTION: ["encoder.0.self_attn.output"], MAP: ["encoder.0.ffn.output"]}
    places |= {TABLE: ["encoder.embedding.tokens"]}
    assert marked == {end: places[end] if end in absent else [] for end in SAID}


def test_parameters_leave_it_out_and_say_so(model):
    theirs, absent, page = model
    test = page(DOCTOR, doctor="parameters")
    listed = list(test.dataframe[0].value["open"].str.removeprefix("● "))
    assert not any(name.endswith(end) for name in listed for end in absent)
    assert all(any(name.endswith(end) for name in listed) for end in SAID if end not in absent)
    assert [text in told(test) for text in SAID.values()] == [end in absent for end in SAID]
    learned = sum(one.numel() for one in theirs.parameters())
    assert f"{learned:,}" in str(page(CHECKPOINTS).table[0].value).replace("\\", "")
