"""Whether the head that looks most sharply is the one that the output owes most to: said with both numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from transformer.analysis.head_effects import HeadEffects
from transformer.model.anatomy import EVERY_PART, Kind
from ui.matters.measures import LEAST, Shown, Verdict, concentration, shown, step_of, values, verdict, written
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES
from ui.shared import drawing
from ui.shared.door import st
from words import Sentence, joined, say

VERDICT: Final = "matters_verdict"
_WHAT: Final[dict[Shown, tuple[Sentence, Sentence]]] = {
    "log_prob": (say("the log-probability of the output"), say("the log-probability of this step's piece")),
    "probability": (say("the mean probability of the pieces"), say("the probability of this step's piece")),
    "kl": (say("the distributions of the steps, on average"), say("the distribution of this step")),
    "vectors": (say("the final vectors"), say("the final vectors")),
}


def draw(run: OpenRun, found: HeadEffects) -> None:
    """Draw the sentences."""
    measure, step, kind = shown(found, run.view.effect), step_of(run.looking), run.view.kind
    if measure == "pieces":  # of whole numbers too many are equal
        measure = "log_prob"
    effects = values(found, kind, measure, n_steps=run.looking.n_steps, step=step)
    sharp = concentration(run.looking, kind, step=step)
    one = verdict(effects, sharp, least=LEAST[measure])
    if one is None:
        return
    icon = ":material/compare_arrows:" if one.outcome == "disagree" else ":material/info:"
    with st.container(key=run.key(VERDICT)):
        st.info(drawing.plain(said(one, kind, effects, sharp, measure, step)), icon=icon)


def said(
    one: Verdict, kind: Kind, effects: np.ndarray, sharp: np.ndarray, measure: Shown, step: int | None
) -> Sentence:
    """The sentences of a verdict.

    Args:
        one: What was found.
        kind: Which attention.
        effects, sharp: Effects and concentrations [L, H].
        measure: What effects are.
        step: The step that is looked at; None for the whole output.
    """
    whole = _WHAT[measure][step is not None]
    seen, owed = (_head(place) for place in (one.seen, one.owed))
    by_row = step is not None and EVERY_PART.attention(kind).stack == "decoder"
    rows = say("in this step's row") if by_row else say("on average over its rows")
    first = say(
        "{attention}: of its {n} heads, {head} has the most concentrated weights (the largest weight of a row is "
        "{weight:.2f} {rows}).",
        attention=KIND_NAMES[kind], n=one.n_heads, head=seen, weight=sharp[one.seen], rows=rows,
    )  # fmt: skip
    if one.outcome == "nothing":
        then = say(
            "No head of this attention matters much by itself: even without {head}, whose effect is the largest, "
            "{what} changes by {effect} only.",
            head=owed, what=whole, effect=written(effects[one.owed], measure),
        )  # fmt: skip
    elif one.outcome == "agree":
        then = say(
            "Attention and effect agree here: without the same head {what} changes most, by {effect}.",
            what=whole, effect=written(effects[one.owed], measure),
        )  # fmt: skip
    else:
        then = say(
            "Attention and effect disagree here: without that head {what} changes by {effect}, but without "
            "{other} by {most}, and its weights are number {rank} of {n} by concentration ({weight:.2f}).",
            what=whole, effect=written(effects[one.seen], measure), other=owed,
            most=written(effects[one.owed], measure), rank=one.rank, n=one.n_heads, weight=sharp[one.owed],
        )  # fmt: skip
    return joined(" ", [first, then])


def _head(place: tuple[int, int]) -> Sentence:
    return say("layer {layer}, head {head}", layer=place[0] + 1, head=place[1] + 1)
