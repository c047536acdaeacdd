"""In the product with all its extensions each place that the glossary names is there."""

from glassformer.glossary.glossary_page import is_there
from glassformer.glossary.term_places import PLACES
from tests.pages.conftest import PAGES


def test_each_place_is_there():
    assert [name for name, place in PLACES.items() if place.page not in PAGES or not is_there(place)] == []
