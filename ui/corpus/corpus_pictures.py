"""The page Over a corpus, its parts, and the pictures of the heads.

Its pictures are of a corpus run and not of a sentence, so each is a `Picture` that the page alone shows; a part has no
scene of a run.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from typing import Any, Final

from ui.runs.picture import Page, Part
from words import say

CORPUS: Final = Page("corpus", say("Over a corpus"), panel="corpus_panel")


def of_no_run(run: object) -> None:
    """A part of this page has nothing of a single run."""


HEADS: Final[Part[Any]] = CORPUS.part("heads", say("All heads"), of_no_run, of_sentence=False)
HEAD: Final[Part[Any]] = CORPUS.part("head", say("One head"), of_no_run, of_sentence=False)
SEARCH: Final[Part[Any]] = CORPUS.part("search", say("Search"), of_no_run, of_sentence=False)
