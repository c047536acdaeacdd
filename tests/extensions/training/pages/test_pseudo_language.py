"""The page on training in the pseudo-language: each text is whole sentences in ⟦…⟧, or data."""

import pytest

from tests.extensions.parts_of_pages import PARTS, parts_of
from tests.pages.test_pseudo_language import spoken_whole


@pytest.mark.parametrize("name", parts_of("training", "attention training"))
def test_what_is_spoken_is_spoken_whole(open_page, name):
    spoken_whole(open_page, PARTS[name])
