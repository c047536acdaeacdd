"""A page without a run says what is wrong in a link."""

from tests.pages.test_step_links import says_what_is_wrong_in_a_link


def test_the_page_says_what_is_wrong_in_a_link(open_page):
    says_what_is_wrong_in_a_link(open_page, "sentences")
