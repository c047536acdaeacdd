"""Pages on models whose positions and attentions are not the paper's: each says what it cannot draw."""

import json
from functools import partial

import numpy as np
import pytest

from glassformer.runs import loading
from tests.pages.conftest import CHECKPOINTS, ROOT, STEP
from tests.pages.reading import figure, numbers, opened, told
from tests.transformer.featured import FEATURED, featured

text = partial(told, kinds=("markdown", "caption", "info", "warning"))

ATTENTION, FORCING, INSIDE, MASKS, POSITIONS = (
    ROOT / "pages" / "explore" / f"{page}.py" for page in ("attention", "forcing", "inside", "masks", "positions")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("featured")
    for name in FEATURED:
        featured(name, made)
    return made


@pytest.fixture
def open_model(folder, open_page, monkeypatch):
    monkeypatch.setenv(loading.ENVIRONMENT, str(folder))
    return lambda name, page, **parameters: open_page(page, model=name, src="ba lo mi", **parameters)


PARTS = [
    (STEP, {}),
    (CHECKPOINTS, {}),
    (FORCING, {"ref": "the fox"}),
    *((ATTENTION, {"panel": panel}) for panel in ("overview", "head", "flow", "walk", "table")),
    *((MASKS, {"masks": panel}) for panel in ("masks", "one_row", "checks")),
    *((INSIDE, {"inside": panel}) for panel in ("model", "stream", "ffn")),
    *((POSITIONS, {"positions": panel}) for panel in ("table", "similarity", "shift", "sentence")),
    *((POSITIONS, {"positions": panel}) for panel in ("rotations", "pair", "distance")),
]


DAILY = ("relative", "alibi", "windows")


@pytest.mark.parametrize(
    "name", [one if one in DAILY else pytest.param(one, marks=pytest.mark.deep) for one in FEATURED]
)
def test_every_part_of_every_page_is_drawn(open_model, name):
    for page, parameters in PARTS:
        test = open_model(name, page, **parameters)
        assert not test.error, (page, parameters, test.error)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "rotary",
            "has rotary positions: every self-attention sub-layer rotates its queries and keys by angles that "
            "grow with the position. In each head, 4 of the 4 dimensions rotate",
        ),
        ("relative", "has relative positions"),
        ("alibi", "has ALiBi"),
        ("no positions", "has no positional encoding: it does not see the order of its tokens"),
    ],
)
def test_a_model_without_a_table_of_positions_says_what_it_has(open_model, name, said):
    test = open_model(name, POSITIONS)
    assert said in text(test)
    assert ("positions_panel" in {control.key for control in test.button_group}) == (name != "no positions")


@pytest.mark.parametrize("name", ["halves", "fairseq"])
def test_sinusoids_of_another_layout_are_drawn_in_turns(open_model, name):
    test = open_model(name, POSITIONS, apart=0)
    table = opened(name).model.encoder.embedding.positions.table.numpy()
    drawn = numbers(figure(test, "position_table")["data"][0]["z"])
    assert np.array_equal(drawn[:, 0::2], table[:, :6])
    assert np.array_equal(drawn[:, 1::2], table[:, 6:])
    assert "all sines come before all cosines" in text(test)
    if name == "halves":
        assert "the table follows the formula" in text(test)
    else:
        assert "the first row of its table belongs to position p = 1" in text(test)
        assert "also sinusoids, but from a different formula" in text(test)


def test_the_attention_page_says_how_scores_are_made(open_model):
    assert "q·k is not divided by √d_head" in text(open_model("relative", ATTENTION, kind="encoder"))
    assert "Relative positions add" not in text(open_model("relative", ATTENTION, kind="cross"))
    said = text(open_model("windows", ATTENTION))
    for part in (
        "RMS norm",
        "multiplied by 0.3",
        "capped at ±5",
        "Largest number of keys that a decoder query can see, layer by layer: 3, ∞, 2",
    ):
        assert part in said
    assert "every layer closes it" in text(open_model("windows", ATTENTION, panel="head"))
    assert "every layer closes it" not in text(open_model("windows", ATTENTION, panel="head", layer=1))
    assert "differs from that of the original Transformer" not in text(open_model("halves", ATTENTION))


def test_one_weight_writes_out_what_the_model_does(open_model):
    said = text(open_model("windows", ATTENTION, panel="walk", layer=1, head=1, query=3, key=1))
    assert "2. The score" in said
    assert r"cdot 0.3" in said
    assert r"tanh" in said
    assert "after normalisation or rotation by position" in said
    said = text(open_model("relative", ATTENTION, panel="walk", kind="encoder", layer=1, head=1))
    assert "does not divide it by √5" in said
    assert "has learned for this distance" in said
    said = text(open_model("alibi", ATTENTION, panel="walk", layer=1, head=1))
    assert "replaces all other scores with −1 × 10⁹" in said
    assert "÷ √d_head" in text(open_model("halves", ATTENTION, panel="walk"))


def test_the_step_page_says_that_a_window_closes_too(open_model):
    test = open_model("windows", STEP, layer=3, head=1)
    assert "comes later, or before the layer's window" in json.dumps(figure(test, "cross_map"), ensure_ascii=False)


def test_the_masks_page_says_what_it_does_not_draw(open_model):
    assert "have windows" in text(open_model("windows", MASKS))
    assert "replaces the scores of closed keys with −1 × 10⁹" in text(open_model("alibi", MASKS))
    assert "this page shows the scores that the model actually computes" in text(
        open_model("relative", MASKS, masks="one_row")
    )
    assert "have windows" not in text(open_model("rotary", MASKS))
