"""The doctor's page in the pseudo-language: each text is whole sentences in ⟦…⟧, or data."""

import pytest

from glassformer.runs import loading
from tests.extensions.parts_of_pages import PARTS, parts_of
from tests.pages.test_pseudo_language import MODEL, spoken_whole
from tests.pseudo_language import words_of


@pytest.mark.parametrize("name", parts_of("doctor"))
def test_what_is_spoken_is_spoken_whole(open_page, name):
    examples = loading.open_checkpoint(loading.usable()[MODEL]).card.examples
    data = {
        "doctor": {  # of an examination that may be over already: names of settings, and what it had to write
            *words_of("false true none pre post gelu relu silu norm activation positions encoder decoder"),
            *words_of(*(example[::-1] for example in examples)),
        },
        "doctor parameters": words_of("float32"),
    }
    spoken_whole(open_page, PARTS[name], data[name])
