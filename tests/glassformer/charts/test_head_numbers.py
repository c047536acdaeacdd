"""The map of what zeroing each head changes: the numbers, their places and their scale."""

import numpy as np
import pytest

from glassformer.charts import head_effects, head_effects_spec
from glassformer.charts.head_numbers import Block, head_at
from glassformer.charts.theme import SCALES, SIGNED_SCALE

ONE = np.array([[0.1, -0.5, 0.0], [0.2, np.nan, -0.001]])
TWO = np.array([[0.3, 0.25, -0.25]])
BLOCKS = [Block("Encoder <b>self</b>", ONE), Block("Cross", TWO)]


def made(**options):
    return head_effects_spec(BLOCKS, **{"title": "Effects", "value_name": "nats", "signed": True} | options)


def test_blocks_stand_below_each_other_with_an_empty_row_between():
    z = made()["data"][0]["z"]
    np.testing.assert_allclose(z[:2], ONE, atol=1e-7)
    np.testing.assert_allclose(z[3:], TWO, atol=1e-7)
    assert np.isnan(z[2]).all()
    layout = made()["layout"]
    assert layout["yaxis"]["tickvals"] == [0, 1, 3]
    assert layout["yaxis"]["ticktext"] == ["1", "2", "1"]
    assert [row != "" for row in layout["meta"]["cells"]["rows"]] == [True, True, False, True]


def test_a_signed_scale_has_zero_in_its_middle_and_another_begins_there():
    signed, plain = made()["data"][0], made(signed=False)["data"][0]
    assert (signed["zmin"], signed["zmax"], signed["colorscale"]) == (-0.5, 0.5, SIGNED_SCALE)
    assert (plain["zmin"], plain["zmax"], plain["colorscale"]) == (0.0, 0.5, SCALES["neutral"])


def test_numbers_are_written_as_they_are():
    texts = {(one["y"], one["x"]): one["text"] for one in made()["layout"]["annotations"] if "font" in one}
    assert texts[0, 0] == "+0.10"
    assert texts[0, 1] == "−0.50"
    assert texts[1, 2] == texts[0, 2] == "0.00"  # it has no sign, as it is 0 by two digits
    assert (1, 1) not in texts
    names = [one["text"] for one in made()["layout"]["annotations"] if "font" not in one]
    assert names[1] == "Cross"
    assert "<b>" not in names[0]


def test_small_numbers_have_more_digits_and_counts_have_none():
    def texts(values, **options):
        layout = head_effects_spec([Block("Cross", np.array([values]))], title="t", value_name="v", **options)["layout"]
        return [one["text"] for one in layout["annotations"] if "font" in one]

    assert texts([0.0023, 0.00001], signed=False) == ["0.0023", "0.0000"]
    assert texts([3.0, 0.0, 12.0], signed=False) == ["3", "0", "12"]
    assert texts([-123.456, 7.5], signed=True) == ["−123.46", "+7.50"]


def test_a_cell_may_say_more_and_have_a_mark():
    says = np.array([["from 0", "", ""], ["", "", "to 1"]], object)
    blocks = [Block("Cross", TWO), Block("Encoder", ONE, says, ONE > 0.15)]
    spec = head_effects_spec(blocks, title="t", value_name="v", signed=True)
    assert spec["data"][0]["text"] == [["", "", ""], ["", "", ""], *says.tolist()]
    assert spec["data"][0]["hovertemplate"].endswith("<br>%{text}<extra></extra>")
    stars = [(one["x"], one["y"]) for one in spec["layout"]["annotations"] if one["text"] == "*"]
    assert stars == [pytest.approx((0.4, 2.88))]
    assert "text" not in made()["data"][0]


@pytest.mark.parametrize(("row", "where"), [(0, (0, 0)), (1, (0, 1)), (2, None), (3, (1, 0)), (4, None), (-1, None)])
def test_a_cell_says_whose_it_is(row, where):
    assert head_at([(2, 2), (1, 2)], (row, 1)) == (None if where is None else (*where, 1))
    assert head_at([(2, 1), (1, 1)], (row, 1)) is None  # this kind of attention has fewer heads
    assert head_at([(2, 2)], None) is None


def test_the_chosen_head_is_framed_and_heads_that_share_have_a_bracket():
    frame = made(chosen=(1, 0, 2))["layout"]["shapes"][0]
    assert (frame["x0"], frame["y0"]) == (1.5, 2.5)
    assert len(made(group=3)["layout"]["shapes"]) > len(made()["layout"]["shapes"])


def test_many_layers_stay_within_the_height_and_nothing_is_no_error():
    many = [Block("Decoder", np.zeros((48, 16)))]
    layout = head_effects_spec(many, title="t", value_name="v", signed=False)["layout"]
    assert layout["height"] < 800
    assert not [one for one in layout["annotations"] if "font" in one]
    assert head_effects_spec([], title="t", value_name="v", signed=True)["data"] == []
    assert head_effects(BLOCKS, title="t", value_name="v", signed=True).data[0].type == "heatmap"
