"""What the columns of the part Pieces measure, in words: what each can show, what it cannot, and its source."""

from __future__ import annotations

from typing import Final

from charts.credit import HOW_TO_READ
from transformer.analysis.attribution.gradients import Baseline, Integrated
from transformer.analysis.attribution.weighed import Weighed
from ui.runs.seen import Seen
from words import joined, say

NAMES: Final = {
    "attention": say("Attention"),
    "hidden": say("Lost if hidden"),
    "gradient": say("Input × gradient"),
    "integrated": say("Integrated"),
    "moved": say("‖α·v·W_O‖"),
    "rollout": say("Rollout"),
}
BASELINES: Final[dict[Baseline, str]] = {
    "zero": say("Integrated from embeddings of 0"),
    "mean": say("Integrated from the mean embedding"),
}

MEANINGS: Final = {
    "attention": say(
        "Attention: the weights of the step's row. They say where the row looks, not what it takes from there, "
        "nor whether the output needs it. Vaswani et al. (2017), section 3.2."
    ),
    "hidden": say(
        "Lost if hidden: the probability of the piece written, less its probability while no other token may "
        "attend to this piece. It is the only experiment here; but pieces that can stand in for each other show "
        "nothing one by one, and no model was trained on sentences with holes. Zeiler and Fergus (2014), section "
        "4.2; Li et al. (2016)."
    ),
    "gradient": say(
        "Input × gradient: what the embedding would add to ln p if the model were linear around it. It holds for "
        "small changes only, and is near 0 wherever the model is sure. Denil et al. (2014)."
    ),
    "integrated": say(
        "Integrated: the gradient's mean on the way from a baseline to the embedding, times the difference; the "
        "numbers add up to the difference of ln p. Another baseline gives other numbers. Sundararajan et al. (2017), "
        "sections 3 and 5."
    ),
    "moved": say(
        "‖α·v·W_O‖: the length of what the heads take from the piece. A long vector may point where nobody "
        "reads. Kobayashi et al. (2020), section 2."
    ),
    "rollout": say(
        "Rollout: weights followed down through all layers, half of each kept by the residual stream. It knows "
        "no values and no feed-forward networks. Abnar and Zuidema (2020), section 3."
    ),
}


def how_to_read(run: Seen, weighed: Weighed) -> str:
    """How to read the table, and what each column shows and cannot show, a line each."""
    lines = [HOW_TO_READ, *MEANINGS.values()]
    if weighed.kind == "decoder":
        lines.append(
            say("This decoder is alone, so the pieces are all that it had read; the last of them is where the step's "
                "own row begins, and cannot be hidden from it.")
        )  # fmt: skip
    if run.trace.query.interventions:
        lines.append(say("All of it is measured in the changed run: the changes above stay as they are."))
    return joined("\n", lines)


def no_rollout(run: Seen) -> str:
    """Why there is no rollout."""
    if not run.checkpoint.config.residual:
        return say("this model has no residual stream, which rollout supposes")
    return say("a change in this run leaves rows without weights")


def completeness(found: Integrated, baseline: Baseline) -> str:
    """How far integrated gradients add up, with the numbers."""
    total, whole = float(found.credit.sum()), found.value - found.baseline
    numbers = say(
        "Integrated gradients add up to {total:+.3f}; ln p goes from {low:.3f} at the baseline to {high:.3f}, by "
        "{whole:+.3f}: the error is {error:.4f} at {n} points.",
        total=total, low=found.baseline, high=found.value, whole=whole, error=abs(found.error), n=found.n_points,
    )  # fmt: skip
    if found.is_complete:
        return numbers
    if baseline == "zero":
        advice = say("That is too large to rely on single numbers; the mean embedding as a baseline may do better.")
    else:
        advice = say("That is too large to rely on single numbers.")
    return joined(" ", [numbers, advice])
