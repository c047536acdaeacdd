"""The part One head: how a measure of it is spread, and the lines that have most and least of it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pandas as pd

from glassformer.extensions.corpus.library.queries import Hit
from glassformer.extensions.corpus.page import asking, opened
from glassformer.extensions.corpus.page.corpus_pictures import spread
from glassformer.extensions.corpus.page.opened import OpenCorpus, can_ask, card, choose_line
from glassformer.runs.attempt import attempt
from glassformer.runs.show import show
from glassformer.shared import drawing
from glassformer.shared.door import here, st
from transformer.i18n import Sentence, say, say_n

MOST, LEAST, CSV = "corpus_most", "corpus_least", "corpus_lines_csv"
N_LINES: Final = 20


def draw(corpus: OpenCorpus) -> None:
    """Draw the part."""
    found, one = corpus.scene.summary, attempt(lambda: corpus.of_head)
    if found is None:
        st.info(say("No line of this corpus run has this measure of the head."), icon=":material/info:")
        return
    show(spread, replace(corpus.scene, here=None if one is None else one.values[corpus.scene.measure]))
    st.caption(_said(corpus))
    if not can_ask():
        return
    choose_line(corpus)
    card(corpus, at_head=True)
    _lines(corpus)


def _said(corpus: OpenCorpus) -> Sentence:
    found = corpus.scene.summary
    assert found is not None
    low, high = found.interval or (found.mean, found.mean)
    middle = [found.quantile(share) for share in (0.05, 0.5, 0.95)]
    if None in middle or found.interval is None:
        return say_n(
            "Mean {mean:.3f} over {n:,} line.", "Mean {mean:.3f} over {n:,} lines.", found.n, mean=found.mean
        )
    return say(
        "Mean {mean:.3f}, 95 % interval {low:.3f} to {high:.3f}, over {n:,} lines. Half of the lines are below "
        "{middle:.2f}; nine out of ten are between {least:.2f} and {most:.2f}.",
        mean=found.mean,
        low=low,
        high=high,
        n=found.n,
        least=middle[0],
        middle=middle[1],
        most=middle[2],
    )


def _lines(corpus: OpenCorpus) -> None:
    key = corpus.scene.key
    ask = partial(asking.extremes, corpus.run, *key.whose, key.measure, n=N_LINES)
    most, least = attempt(lambda: ask(most=True)), attempt(lambda: ask(most=False))
    if most is None or least is None:
        return
    heading = corpus.scene.words.heading

    def one(found: Sequence[Hit], where: str, title: Sentence) -> None:
        st.subheader(title, anchor=False)
        opened.table(where, found, [(heading, "%.3f")], title)

    drawing.beside(
        lambda: one(most, MOST, say("Lines with the highest values")),
        lambda: one(least, LEAST, say("Lines with the lowest values")),
    )
    st.caption(say("Click a number to open that line. Click a column heading to sort by it."))
    title = say("lines with the highest and lowest values of a head")
    numbers = pd.DataFrame({"line": [one.line for one in (*most, *least)]} | opened.columns([*most, *least], 1))
    drawing.csv_button(here(numbers), key=CSV, title=title, of=opened.origin(corpus.run, title))
