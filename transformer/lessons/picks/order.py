"""Which pieces of the source a lesson about order moves. Tokens count from 1."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from transformer.lessons.case import Case, NotHere
from transformer.lessons.picks.looking import own_pieces
from transformer.model.anatomy import anatomy
from transformer.runs.interventions import NoPositions, Replace, Shuffle, write

MOST_SEEDS: Final = 20


def added_positions(case: Case) -> dict[str, Any]:
    """The stack that reads the sentence, where vectors of positions are added to it."""
    config = case.checkpoint.config
    if config.positions not in ("sinusoidal", "learned"):
        raise NotHere("This model adds no vectors of positions to its embeddings; choose another checkpoint.")
    stack = anatomy(config).stacks[0].name
    return {"stack": stack, "side": "source" if stack == "encoder" else "target"}


def unplaced(case: Case) -> dict[str, Any]:
    """The encoder, which can do without positions."""
    _bag_of_words(case)
    return {"unplaced": str(NoPositions("encoder"))}


def shuffled(case: Case) -> dict[str, Any]:
    """A shuffle of the source that changes it, and the encoder without positions."""
    _bag_of_words(case)
    ids, config = case.trace.src_ids, case.checkpoint.config
    shuffles = (Shuffle(seed) for seed in range(1, MOST_SEEDS + 1))
    found = next((one for one in shuffles if one.edited(ids, config) != ids), None)
    if found is None:
        raise NotHere("The source has no two different pieces to change places; type a longer sentence.")
    both = write((NoPositions("encoder"), found))
    beside = urlencode({"do": both})  # the second run of a comparison, as an address says it
    return {"shuffle": str(found), "unplaced": str(NoPositions("encoder")), "seed": found.seed, "beside": beside}


def twice(case: Case) -> dict[str, Any]:
    """A piece of the source that another place is made to hold, too: the first, and the last that differs from it."""
    _bag_of_words(case)
    ids, own = case.trace.src_ids, own_pieces(case)
    first = own[0]
    other = next((place for place in reversed(own) if ids[place] != ids[first]), None)
    if other is None:
        raise NotHere("The source has no two different pieces; type a longer sentence.")
    return {
        "a": first + 1,
        "b": other + 1,
        "piece": case.trace.src_pieces[first],
        "was": case.trace.src_pieces[other],
        "replace": str(Replace(other, ids[first])),
        "unplaced": str(NoPositions("encoder")),
        "n_layers": anatomy(case.checkpoint.config).stack("encoder").n_layers,
    }


def two_tokens(case: Case) -> dict[str, Any]:
    """Two tokens that a stack reads: its first and its last."""
    trace, stack = case.trace, anatomy(case.checkpoint.config).stacks[0].name
    n = trace.n_tokens(stack)
    if n < 3:
        raise NotHere("This takes three tokens or more; try a longer sentence.")
    pieces = trace.src_pieces if stack == "encoder" else trace.read_pieces
    side = "source" if stack == "encoder" else "target"
    return {"stack": stack, "side": side, "a": 1, "b": n, "piece_a": pieces[0], "piece_b": pieces[n - 1]}


def _bag_of_words(case: Case) -> None:
    """An encoder without positions reads a bag of words; a causal mask would still give order."""
    config = case.checkpoint.config
    if not anatomy(config).reads:
        raise NotHere("A decoder alone knows order by its causal mask, too; choose a checkpoint with an encoder.")
    if NoPositions.unfit(config) is not None:
        raise NotHere("This model has no positions that could be taken away; choose another checkpoint.")


PICKS: Final = (added_positions, unplaced, shuffled, twice, two_tokens)
