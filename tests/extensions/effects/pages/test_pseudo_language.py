"""What matters, and what goes wrong, in the pseudo-language: each text is whole sentences in ⟦…⟧, or data."""

import pytest

from glassformer.extensions.effects.wrong import mistake_panels
from glassformer.extensions.effects.wrong.mistake_cards import CARDS
from glassformer.extensions.effects.wrong.mistake_figures import Side
from glassformer.extensions.effects.wrong.mistake_panels import output
from glassformer.runs import loading
from tests.extensions.parts_of_pages import MISTAKES, PARTS, parts_of
from tests.pages.test_pseudo_language import MODEL, SOURCE, spoken_whole
from tests.pseudo_language import words_of


def outputs_of(mistake):
    """What both sides of a card write, the first difference marked, and a site that it may name."""
    checkpoint = loading.open_checkpoint(loading.usable()[MODEL])
    card = next(card for card in CARDS if mistake in (card.mistake, "auto"))
    found = mistake_panels.look(card, Side(checkpoint, checkpoint.query(SOURCE)))
    return [output(trace, found.first) for trace in (found.right, found.wrong) if trace is not None] + [found.site]


@pytest.mark.parametrize("name", parts_of("matters"))
def test_what_matters_is_spoken_whole(open_page, name):
    spoken_whole(open_page, PARTS[name])


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_goes_wrong_is_spoken_whole(open_page, mistake):
    spoken_whole(open_page, PARTS[f"wrong {mistake}"], words_of(*outputs_of(mistake)))
