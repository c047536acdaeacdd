"""Pages on models whose positions and attentions are not the paper's are drawn, and say what differs."""

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


CAPPED = "2. The score", r"cdot 0.3", "tanh", "after normalisation or rotation by position"
MADE_SO = "RMS norm", "multiplied by 0.3", "capped at ±5", "a decoder query can see, layer by layer: 3, ∞, 2"


@pytest.mark.parametrize(
    ("name", "page", "view", "said"),
    [
        ("rotary", POSITIONS, {}, ["has rotary positions", "In each head, 4 of the 4 dimensions rotate"]),
        ("relative", POSITIONS, {}, ["has relative positions"]),
        ("no positions", POSITIONS, {}, ["has no positional encoding: it does not see the order of its tokens"]),
        ("relative", ATTENTION, {"kind": "encoder"}, ["q·k is not divided by √d_head"]),
        ("windows", ATTENTION, {}, MADE_SO),
        ("windows", ATTENTION, {"panel": "head"}, ["every layer closes it"]),
        ("windows", ATTENTION, {"panel": "walk", "layer": 1, "head": 1, "query": 3, "key": 1}, CAPPED),
        ("alibi", ATTENTION, {"panel": "walk", "layer": 1, "head": 1}, ["replaces all other scores with −1 × 10⁹"]),
        ("windows", MASKS, {}, ["have windows"]),
        ("alibi", MASKS, {}, ["replaces the scores of closed keys with −1 × 10⁹"]),
    ],
)
def test_a_page_says_what_is_not_as_in_the_paper(open_model, name, page, view, said):
    found = text(open_model(name, page, **view))
    assert [one for one in said if one not in found] == []


@pytest.mark.parametrize(
    ("name", "page", "view", "never"),
    [
        ("relative", ATTENTION, {"kind": "cross"}, "Relative positions add"),
        ("windows", ATTENTION, {"panel": "head", "layer": 1}, "every layer closes it"),
        ("halves", ATTENTION, {}, "differs from that of the original Transformer"),
        ("rotary", MASKS, {}, "have windows"),
    ],
)
def test_it_does_not_say_so_of_what_is(open_model, name, page, view, never):
    assert never not in text(open_model(name, page, **view))


@pytest.mark.parametrize("name", ["halves", "fairseq"])
def test_sinusoids_of_another_layout_are_drawn_in_turns(open_model, name):
    test = open_model(name, POSITIONS, apart=0)
    table = opened(name).model.encoder.embedding.positions.table.numpy()
    drawn = numbers(figure(test, "position_table")["data"][0]["z"])
    assert np.array_equal(drawn[:, 0::2], table[:, :6])
    assert np.array_equal(drawn[:, 1::2], table[:, 6:])
    other = "also sinusoids, but from a different formula"
    assert (other in text(test)) == ("the table follows the formula" not in text(test)) == (name == "fairseq")
