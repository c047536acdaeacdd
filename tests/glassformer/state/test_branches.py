"""Branches of an output stand in an address, as short as that goes, and are read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.state import fields
from glassformer.state.link import Link, read_link, write_link

BRANCHES = st.lists(st.lists(st.integers(0, 99_999), min_size=1, max_size=12).map(tuple), max_size=12, unique=True)


@given(BRANCHES)
def test_what_was_written_is_read(tried):
    assert fields.read_branches(fields.write_branches(tried), longest=12) == tuple(tried)


@given(st.text(alphabet="0123456789.~_ab-", max_size=60) | st.text())
def test_no_text_is_too_odd(text):
    found = fields.read_branches(text, longest=20)
    assert found is None or all(0 < len(branch) <= 20 and min(branch) >= 0 for branch in found)


@pytest.mark.parametrize("text", ["x", "1..2", "1_", "-1", "1~", "12345678", "_".join("123456789abcd"), "1.²"])
def test_what_is_no_branch_is_left_out_and_said(text):
    link, notes = read_link({"tried": (text,), "src": ("abc",)})
    assert link == Link(source="abc")
    assert len(notes) == 1


def test_branches_of_one_output_take_little_more_room_than_the_longest_and_the_oldest_have_none():
    own = tuple(range(1000, 1100))
    tried = [(*own[:n], 7) for n in range(40, 100, 5)]
    text = fields.write_branches(tried)
    assert len(text) < len(".".join(map(str, tried[-1]))) + 150
    assert fields.read_branches(text, longest=512) == tuple(tried)
    tried = [tuple(range(1000 * n, 1000 * n + 200)) for n in range(1, 13)]
    text = fields.write_branches(tried)
    assert len(text) <= fields.LONGEST_BRANCHES
    kept = fields.read_branches(text, longest=512)
    assert kept == tuple(tried[-len(kept) :]) != ()
    link = Link(source="abc", forced=(5, 9), tried=((5, 9), (5, 7)))
    assert write_link(link)["tried"] == "5.9_1~7"
    assert read_link({name: (value,) for name, value in write_link(link).items()}) == (link, ())
