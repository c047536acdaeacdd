"""The page that compares in the pseudo-language: each text is whole sentences in ⟦…⟧, or data."""

import pytest

from tests.extensions.parts_of_pages import PARTS, parts_of
from tests.pages.test_pseudo_language import spoken_whole

DATA = {
    "compare": {"zero"},
    "compare branches": {"forced"},  # names of files say how a run was made
    "compare changed": {"zero"},
    "compare checkpoints": {"Da", "Na", "ba", "need"},  # pieces of the other model
}


@pytest.mark.parametrize("name", parts_of("compare"))
def test_what_is_spoken_is_spoken_whole(open_page, name):
    spoken_whole(open_page, PARTS[name], DATA.get(name, ()))
