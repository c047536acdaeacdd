"""A lesson without a checkpoint says what it always said."""

from tests.pages.conftest import PAGES
from tests.pages.reading import type_source
from tests.pages.test_start import browser_asks as browser_asks
from tests.pages.test_start import standing


def test_an_address_says_the_same_to_everybody(open_page, browser_asks):
    browser_asks("en")
    assert standing(open_page(PAGES["step"], lesson="one-piece.1"))[0] == "zh-en"


def test_nobody_is_switched_in_a_lesson(open_page):
    test = open_page(PAGES["step"], lesson="one-piece.1")
    type_source(test, "I like tea.")
    assert standing(test) == ("zh-en", "I like tea.")
