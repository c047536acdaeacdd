"""The check of texts in the pseudo-language finds what it is for, and lets whole sentences and data pass."""

import pytest

from tests.pseudo_language import texts_of_figure, words_of, wrong
from transformer.i18n import PSEUDO, joined, said, say, say_n, through


@through
def escaped(text: str) -> str:
    return text.replace("*", "\\*")


@pytest.mark.parametrize(
    "text",
    [
        say("Layer {n}", n=2),
        say("{pieces} of {what}", pieces=say_n("{n} piece", "{n} pieces", 2), what="like"),
        joined("<br>", [say("Layer"), "like", say("Head")]),
        joined(" ", [say("One sentence."), say("Another one.")]),
        escaped(say("Layer *{n}*", n=2)),
        say("**Bold** and `code words` with {number}", number="<b>%{y:.3f}</b>"),
        "",
    ],
)
def test_whole_sentences_and_data_pass(text):
    assert wrong(said(text, PSEUDO), {"like"}) == []


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


def test_a_cut_that_says_so_and_a_sentence_over_several_lines_pass():
    assert [wrong(text) for text in ("⟦Oouutpuut…", "⟦Oouutpuut…<br>⟦Laayeer⟧", "⟦Oouutpuut<br>laayeer⟧")] == [[]] * 3


def test_texts_of_a_figure_are_those_that_people_read_and_words_of_records_are_data():
    assert words_of(["▁like", {"a b": ("Hund",)}]) == {"like", "Hund"}
    bars = {"type": "bar", "name": "Bars", "hovertext": [["a"]], "x": ["not read"], "marker": {"color": "#fff"}}
    table = {"columns": ["Name"], "rows": [["b", 1]]}
    figure = {"data": [bars], "layout": {"title": {"text": "Title", "xref": "paper"}, "meta": {"table": table}}}
    assert texts_of_figure(figure) == ["Bars", "a", "Title", "Name", "b"]
