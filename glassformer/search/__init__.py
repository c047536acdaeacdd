"""The page How tokens are chosen; here its view fields alone: part, tree, sampling settings, draws, seeds."""

from typing import Literal

from glassformer.state.fields import Look, choice, count, flag, number, part
from transformer.runs.query import MAX_SEED, MAX_TOP_K

Rounds = Literal["results", "all", "step"]
MOST_DRAWS = 200


class SearchLook(Look):
    """What is looked at of searches, samplings and draws."""

    search_panel: Literal["tree", "sampling", "draws"] = part("search", "tree", page="search")
    rounds: Rounds = choice("rounds", "results")  # the tree of a beam search has: up to its last result, to the step
    with_beam: bool = flag("with_beam")  # A beam search is drawn though the run decodes in another way
    # How sampling would draw, as in `transformer.Sampling`; None for the run's own.
    try_temperature: float | None = number("try_temp", 0.05, 5.0)
    try_k: int | None = count("try_k", MAX_TOP_K)
    try_p: float | None = number("try_p", 0.01, 1.0)
    draws: int = count("draws", MOST_DRAWS, 50)  # how many draws are made of a sentence
    first_seed: int = count("first_seed", MAX_SEED - MOST_DRAWS, 0)  # the seed of the first of them
    opened_seed: int | None = count("opened_seed", MAX_SEED)  # the selected one; None for none
