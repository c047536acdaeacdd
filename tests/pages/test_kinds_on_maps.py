"""The Attention and Step pages of models after the paper's: groups of heads, windows, a prompt before the output."""

import base64
import json

import numpy as np
import pytest

from glassformer.attention.map_pictures import FLOW
from glassformer.runs import loading
from glassformer.state import session
from glassformer.step import step_pictures
from tests.pages.conftest import ATTENTION, STEP
from tests.pages.reading import figure, opened, payload, told_or_noted
from tests.pages.test_pseudo_language import complaints, data_of_models
from tests.pseudo_language import words_of
from tests.transformer.featured import featured

GRID = "overview_decoder"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("kinds")
    featured("windows", made)
    return made


@pytest.fixture
def open_model(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return lambda page=ATTENTION, **parameters: open_page(
        page, model="windows", src="ba lo mi", **({"max": 4} | parameters)
    )


def run():
    checkpoint = opened("windows")
    return checkpoint.run(checkpoint.query("ba lo mi", max_new=4))


def dotted(drawn):
    return [shape for shape in drawn["layout"]["shapes"] if shape["line"].get("dash") == "dot"]


def test_all_heads_have_their_layers_masks_groups_and_the_end_of_the_prompt(open_model):
    drawn, trace = figure(open_model(), GRID), run()
    assert trace.masks["decoder"].ndim == 3  # windows: each layer has its own
    packed = drawn["layout"]["meta"]["grid"]
    n = len(packed["queries"])
    codes = np.frombuffer(base64.b64decode(packed["codes"]), np.uint8).reshape(3 * n, 3 * n)
    for layer in range(3):
        assert np.array_equal(codes[layer * n : layer * n + n, :n] != 255, trace.mask("decoder", layer))
    assert [note["text"] for note in drawn["layout"]["annotations"]] == ["K, V 1"]
    assert dotted(drawn)[0]["y0"] == trace.first_row - 0.5
    caption = payload(open_model(), GRID)["caption"]
    assert "Heads under one bracket share" in caption
    assert "separate the prompt from the output" in caption


def test_one_map_says_with_whom_its_head_shares_and_where_the_prompt_ends(open_model):
    drawn = figure(open_model(panel="head", layer=1, head=2), "head_map")
    assert drawn["layout"]["title"]["subtitle"]["text"] == "All 3 heads share one key-value head"
    first = run().first_row
    assert [shape["y0"] for shape in dotted(drawn)] == [first - 0.5, 0]
    assert dotted(drawn)[1]["x0"] == first + 0.5
    words = figure(open_model(panel="head", layer=1, head=2, words=1), "head_map")
    assert 0 < dotted(words)[0]["y0"] <= first - 0.5  # rows are words there


def test_flow_and_what_heads_do_know_the_groups(open_model):
    data = payload(open_model(panel="flow", layer=1), FLOW)
    assert data["group"] == 3
    assert data["output"] == {"query": run().first_row, "key": run().first_row + 1}
    assert payload(open_model(panel="flow"), FLOW)["group"] == 1  # a mean is no head's
    measured = figure(open_model(panel="table"), "head_table_map")
    assert "K, V 1" in [note["text"] for note in measured["layout"]["annotations"]]


def test_the_step_parts_prompt_and_output_too_and_says_that_it_was_cut(open_model):
    test = open_model(STEP)
    assert dotted(figure(test, step_pictures.cross_map.key))[0]["y0"] == run().first_row - 0.5
    sent = payload(test, session.STEPPER)["run"]
    assert (sent["cut"], sent["stop_reason"]) == (True, "The output was cut off at the limit of 4 pieces.")
    assert "cut" not in told_or_noted(test)


@pytest.mark.parametrize("part", ["overview", "head"])
def test_what_is_spoken_is_spoken_whole(open_model, part):
    test = open_model(panel=part, layer=1, lang="qps", **({"head": 2} if part == "head" else {}))
    pieces = opened("windows").src_tokenizer.pieces
    assert complaints(test, words_of("windows", "ba lo mi", *pieces) | data_of_models()) == []
    assert json.dumps(payload(test, session.STEPPER))
