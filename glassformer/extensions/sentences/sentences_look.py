"""Fields of the view of a file of sentences: the lines listed, their order, and the line looked at."""

from typing import Literal

from glassformer.state.fields import LONGEST_NAME, Look, choice, place, text

Listed = Literal["all", "unknown", "cut", "problem"]
LineOrder = Literal["file", "chrf", "log_prob", "entropy", "ratio", "repeated", "unknown"]
MAX_LINE = 10**9


class SentencesLook(Look):
    """View state of a file of sentences."""

    line: int | None = place("line", MAX_LINE)  # A line of a file of sentences, from 0; None for none
    listed: Listed = choice("listed", "all")  # which lines of it are listed
    line_order: LineOrder = choice("order", "file")  # the worst first, where it is not that of the file
    holding: str = text("holding", most=LONGEST_NAME)  # words that lines have
