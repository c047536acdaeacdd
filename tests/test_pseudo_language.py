"""The check of texts in the pseudo-language finds what it is for, and lets whole sentences and data pass."""

import pytest

from tests.pseudo_language import texts_of_figure, words_of, wrong
from transformer.i18n import PSEUDO, said, say


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Layer 2", "bare Layer"),
        (say("Layer").upper(), "bare LAYER"),
        (say("Layer {what}", what="of the encoder"), "bare of the encoder"),
        (said(say("Layer"), PSEUDO) + said(say("Head"), PSEUDO), "glued"),
        (said(say("Layer two"), PSEUDO)[:6], "cut"),
        (say("{what} two", what=said(say("Layer"), PSEUDO)), "said too early"),
    ],
)
def test_what_is_wrong_is_found(text, expected):
    assert expected in "\n".join(wrong(said(text, PSEUDO)))


def test_texts_of_a_figure_are_those_that_people_read_and_words_of_records_are_data():
    assert words_of(["▁like", {"a b": ("Hund",)}]) == {"like", "Hund"}
    bars = {"type": "bar", "name": "Bars", "hovertext": [["a"]], "x": ["not read"], "marker": {"color": "#fff"}}
    table = {"columns": ["Name"], "rows": [["b", 1]]}
    figure = {"data": [bars], "layout": {"title": {"text": "Title", "xref": "paper"}, "meta": {"table": table}}}
    assert texts_of_figure(figure) == ["Bars", "a", "Title", "Name", "b"]
