"""A page may draw the same panels twice."""

from tests.pages.test_two_slots import draws_twice


def test_drafts_can_be_drawn_twice():
    draws_twice("search", {"search_panel": "drafts"})
