"""The own fields of the view of corpus runs; which line is looked at is `SentencesLook`'s."""

from typing import Literal

from glassformer.state.fields import LONGEST_NAME, MAX_STEP, Look, choice, flag, integer, number, place, text

Sought = Literal["any", "punctuation", "piece", "measure", "attends", "owes"]
TextIn = Literal["source", "target", "output"]
Lit = Literal["piece", "line", "near", "token"]
PointsBy = Literal["side", "place", "group"]


class CorpusLook(Look):
    """What is looked at of corpus runs."""

    corpus_panel: Literal["heads", "head", "search", "joined", "beside"] = choice(
        "corpus", "heads"
    )  # which part of the page
    corpus_run: str = text("run")  # the corpus run, by the name of its folder; "" for the page's own choice
    corpus_measure: str = text("over", "entropy_share")  # which measure, of `extensions.corpus.library.tables.NAMES`
    sought: Sought = choice("sought", "any")  # what a head shall do with the lines that are searched for
    bound: float | None = number("bound", -1e6, 1e6)  # at least so much of it; None for what the page proposes
    below: bool = flag("below")  # at most so much
    looked_at: str = text("looked_at", most=LONGEST_NAME)  # the piece that it looks at
    least_rank: int | None = integer("rank", MAX_STEP)  # of a piece that was predicted, in the lines searched for
    least_loss: float | None = number("loss", 0.0, 1e6)  # of those lines
    text_in: TextIn = choice("in", "source")  # where they hold the words `holding`
    leaf: int = place("leaf", MAX_STEP, 0)  # which page of what was found, from 0
    # The selected token, as "12.query.3": line, side and place, from 1; "" for none.
    spot: str = text("spot")
    lit: Lit = choice("lit", "piece")  # what is selected with it
    lit_piece: str = text("lit_piece", most=LONGEST_NAME)  # all tokens of a piece instead; "" for the one clicked
    points_by: PointsBy = choice("points", "side")  # what colours queries and keys
    second_run: str = text("run2")  # the corpus run beside it, likewise
