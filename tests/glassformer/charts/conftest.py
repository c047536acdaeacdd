"""Every chart that a test draws is drawn in the pseudo-language too, and each of its texts is looked at."""

import functools

import pytest

from glassformer import charts
from tests.pseudo_language import texts_of_figure, words_of, wrong
from transformer.i18n import PSEUDO, said_throughout

FIGURES = [name for name in dir(charts) if hasattr(getattr(charts, name), "__wrapped__") and name != "as_figure"]


@pytest.fixture(autouse=True)
def no_bare_sentence(monkeypatch):
    for name in FIGURES:
        monkeypatch.setattr(charts, name, _spoken(getattr(charts, name)))


def _spoken(figure):
    @functools.wraps(figure)
    def draw(*args, **kwargs):
        given = words_of(args, list(kwargs.values()))
        found = said_throughout(figure.__wrapped__(*args, **kwargs), PSEUDO)
        complaints = [line for text in texts_of_figure(found) for line in wrong(text, given)]
        assert not complaints, "\n".join(complaints[:5])
        return figure(*args, **kwargs)

    return draw
