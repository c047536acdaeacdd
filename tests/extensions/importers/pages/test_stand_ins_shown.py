"""What stands in for a part that a small model lacks is marked in One weight, in the shapes and in Parameters."""

import pytest
from safetensors.torch import save_file

from glassformer.runs import loading
from glassformer.state.link import write_answers
from tests.extensions.importers.library.test_stand_ins import CASES
from tests.extensions.importers.library.tutorial_models import Block, Least, at_random
from tests.extensions.scripts import DOCTOR
from tests.pages.conftest import ATTENTION, CHECKPOINTS, INSIDE
from tests.pages.reading import told
from transformer.analysis.costs import MAP, PROJECTION, SAID, TABLE

PLACES = {PROJECTION: "encoder.0.self_attn.output", MAP: "encoder.0.ffn.output", TABLE: "encoder.embedding.tokens"}


@pytest.mark.parametrize(("make", "absent"), [(Least, (PROJECTION, MAP)), (Block, (TABLE,))])
def test_what_stands_in_is_marked_and_not_counted(make, absent, open_page, tmp_path, monkeypatch):
    theirs = at_random(make())
    save_file(theirs.state_dict(), tmp_path / "m.safetensors")
    monkeypatch.setenv(loading.ENVIRONMENT, str(tmp_path))
    given = {"model": "m.safetensors", "answers": write_answers(tuple(CASES[make][1].items())), "src": "1 2 3"}

    said = told(open_page(ATTENTION, panel="walk", **given))
    assert ("No W_O: what this head adds" in said) == (SAID[PROJECTION] in said) == (PROJECTION in absent)
    assert ("columns of W_O turn o into y" in said) == (PROJECTION not in absent)

    table = open_page(INSIDE, inside="model", **given).dataframe[0].value
    remarks = dict(zip(table["Name in the code"], table["Remark"], strict=True))
    marked = {end: [site for site, remark in remarks.items() if text in remark] for end, text in SAID.items()}
    assert marked == {end: [PLACES[end]] if end in absent else [] for end in SAID}

    test = open_page(DOCTOR, doctor="parameters", **given)
    listed = list(test.dataframe[0].value["open"].str.removeprefix("● "))
    assert all(any(name.endswith(end) for name in listed) == (end not in absent) for end in SAID)
    assert [text in told(test) for text in SAID.values()] == [end in absent for end in SAID]
    learned = sum(one.numel() for one in theirs.parameters())
    assert f"{learned:,}" in str(open_page(CHECKPOINTS, **given).table[0].value).replace("\\", "")
