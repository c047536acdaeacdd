"""A page may draw the same panels twice."""

import pytest

from tests.pages.test_two_slots import draws_twice


@pytest.mark.parametrize("part", ["heads", "pieces", "logit"])
def test_every_part_can_be_drawn_twice(part):
    draws_twice("matters", {"matters_panel": part}, "glassformer.extensions.effects")
