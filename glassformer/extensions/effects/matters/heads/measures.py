"""What the part Heads shows of measured effects: one number a head, and whether attention and effect agree, in words.

Concentration of a head is the mean, over the rows that count, of the row's largest weight. The rows that count are
those of the steps, or the one of the step that is looked at; in the encoder all of them.

Knows nothing of Streamlit.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from glassformer.extensions.effects.effects_look import Effect, EffectsLook
from glassformer.extensions.what_if.analysis.head_effects import HeadEffects
from glassformer.runs.sides import KIND_NAMES
from glassformer.runs.step_rows import Looking
from transformer.analysis.head_statistics import largest
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import EVERY_PART, Kind

Shown = Literal["log_prob", "probability", "kl", "pieces", "vectors"]
SIGNED: Final = frozenset({"log_prob", "probability"})
LEAST: Final[dict[Shown, float]] = {
    "log_prob": 0.01,
    "probability": 0.005,
    "kl": 0.001,
    "pieces": 0.5,
    "vectors": 0.01,
}
"""What is smaller is called no effect: so little changes no choice unless two pieces were equal."""

EFFECTS: Final[dict[Effect, Sentence]] = {
    "log_prob": say("Change of log-probability"),
    "probability": say("Change of probability"),
    "kl": say("KL divergence"),
    "pieces": say("Changed choices"),
}


@dataclass(frozen=True)
class Words:
    """What a measure is called."""

    title: Sentence  # of the map, with its unit
    unit: Sentence  # what a number is
    meaning: Sentence  # how it is made


WORDS: Final[dict[tuple[Shown, bool], Words]] = {
    ("log_prob", False): Words(
        say("Log-probability of the output with each head removed in turn"),
        say("change, nats"),
        say("The output's log-probability without the head, minus its log-probability with the head. A value below "
            "0 means that the output needs the head."),
    ),
    ("log_prob", True): Words(
        say("Log-probability at this step with each head removed in turn"),
        say("change, nats"),
        say("The piece's log-probability without the head, minus its log-probability with the head. A value below "
            "0 means that the piece needs the head."),
    ),
    ("probability", False): Words(
        say("Mean probability of the output's pieces with each head removed in turn"),
        say("mean change"),
        say("Each piece's probability without the head, minus its probability with the head, averaged over the "
            "steps."),
    ),
    ("probability", True): Words(
        say("Probability at this step with each head removed in turn"),
        say("change"),
        say("The probability of this step's piece without the head, minus its probability with the head."),
    ),
    ("kl", False): Words(
        say("Mean KL divergence with each head removed in turn"),
        say("KL, nats"),
        say("How much the distribution of the next piece changes: Σ p ln(p/p′), averaged over the steps. Here p is "
            "the probability with the head, and p′ the probability without it."),
    ),
    ("kl", True): Words(
        say("KL divergence at this step with each head removed in turn"),
        say("KL, nats"),
        say("How much the distribution of the next piece changes: Σ p ln(p/p′). Here p is the probability with the "
            "head, and p′ the probability without it."),
    ),
    ("pieces", False): Words(
        say("Number of changed choices with each head removed in turn"),
        say("steps"),
        say("The number of steps at which removing the head changes the most probable piece."),
    ),
    ("pieces", True): Words(
        say("Whether removing each head changes the choice at this step"),
        say("changed"),
        say("1 if removing the head changes the most probable piece, otherwise 0."),
    ),
    ("vectors", False): Words(
        say("Change of the final vectors with each head removed in turn"),
        say("change relative to length"),
        say("This encoder-only model generates no output, so this number is how much the final vectors change, as "
            "a share of their length, averaged over the tokens."),
    ),
}  # fmt: skip


def shown(found: HeadEffects, chosen: Effect) -> Shown:
    """The measure that is shown: of an encoder alone vectors are all there is."""
    return chosen if found.ids.size else "vectors"


def in_numbers(measure: Shown) -> Shown:
    """The measure, or log-probabilities for whole numbers of pieces, of which too many are equal."""
    return "log_prob" if measure == "pieces" else measure


def step_of(looking: Looking) -> int | None:
    """The step on which effects are measured; None for the whole output."""
    return looking.view.step if looking.view.of(EffectsLook).effect_at == "step" and looking.trace.n_steps else None


def values(found: HeadEffects, kind: Kind, measure: Shown, *, n_steps: int, step: int | None) -> np.ndarray:
    """One number for each head [L, H], of the steps that may be seen or of the one that is looked at, from 0."""
    one = found.of[kind]
    if measure == "vectors":
        return one.vectors.mean(axis=-1).astype(np.float64)
    each = found.changed(kind) if measure == "pieces" else getattr(one, measure)
    each = np.asarray(each, dtype=np.float64)[..., :n_steps]
    if step is not None:
        return np.asarray(each[..., step])
    return np.asarray(each.sum(axis=-1) if measure in ("log_prob", "pieces") else each.mean(axis=-1))


def concentration(looking: Looking, kind: Kind, *, step: int | None) -> np.ndarray:
    """How concentrated each head's rows are [L, H], see the module; errors as of `Looking.each`."""
    each = np.stack(looking.each(kind, lambda heads, layer: largest(heads), key="largest_of_rows"))  # [L, H, Q]
    if EVERY_PART.attention(kind).stack == "encoder":
        rows = slice(0, looking.trace.n_tokens("encoder"))
    else:
        first = looking.trace.first_row
        rows = slice(first, looking.n_rows) if step is None else slice(first + step, first + step + 1)
    return np.asarray(each[..., rows].mean(axis=-1))


def written(value: float, measure: Shown) -> Sentence:
    """A number with its unit, as a sentence says it."""
    if not np.isfinite(value):
        return say("not a finite number")
    match measure:
        case "log_prob":
            return say("{value:+.3f} nats", value=value)
        case "probability":
            return say("{value:+.4f}", value=value)
        case "kl":
            return say("a KL divergence of {value} nats", value=f"{value:.4f}")
        case "pieces":
            return say_n("{n} changed choice", "{n} changed choices", round(value))
    return say("{value} × the vectors' length", value=f"{value:.3f}")


@dataclass(frozen=True)
class Verdict:
    """Whether the head with the most concentrated rows is the one whose absence changes most."""

    # "agree", "disagree", or "nothing" where no head has an effect worth its name.
    outcome: Literal["agree", "disagree", "nothing"]
    seen: tuple[int, int]  # layer and head with the most concentrated rows, from 0
    owed: tuple[int, int]  # layer and head with the largest effect
    rank: int  # the place of `owed` by concentration, from 1
    n_heads: int  # of how many


def verdict(effects: np.ndarray, concentrations: np.ndarray, *, least: float) -> Verdict | None:
    """Compare the two orders of the heads of one attention [L, H]; None if there are no numbers to compare.

    An effect is the larger the farther it is from 0; one that is smaller than `least` is none.
    """
    sizes = np.abs(effects)
    if not sizes.size or not np.isfinite(sizes).any() or not np.isfinite(concentrations).any():
        return None
    seen, owed = (
        tuple(int(place) for place in np.unravel_index(np.nanargmax(of), of.shape)) for of in (concentrations, sizes)
    )
    rank = int((concentrations > concentrations[owed]).sum()) + 1
    outcome: Literal["agree", "disagree", "nothing"] = "agree" if seen == owed else "disagree"
    if sizes[owed] < least:
        outcome = "nothing"
    return Verdict(outcome, (seen[0], seen[1]), (owed[0], owed[1]), rank, sizes.size)


_WHAT: Final[dict[Shown, tuple[Sentence, Sentence]]] = {
    "log_prob": (say("the log-probability of the output"), say("the log-probability of this step's piece")),
    "probability": (say("the mean probability of the pieces"), say("the probability of this step's piece")),
    "kl": (say("the distribution of the next piece (mean over the steps)"), say("the distribution of this step")),
    "vectors": (say("the final vectors"), say("the final vectors")),
}


def said(
    one: Verdict, kind: Kind, effects: np.ndarray, sharp: np.ndarray, measure: Shown, step: int | None
) -> Sentence:
    """The sentences of a verdict, with effects and concentrations [L, H]; `step` is None for the whole output."""
    whole = _WHAT[measure][step is not None]
    seen, owed = head_name(*one.seen), head_name(*one.owed)
    by_row = step is not None and EVERY_PART.attention(kind).stack == "decoder"
    rows = say("in this step's row") if by_row else say("on average over all rows")
    first = say(
        "{attention}: among its {n} heads, {head} has the most concentrated weights (its largest weight is "
        "{weight:.2f} {rows}).",
        attention=KIND_NAMES[kind], n=one.n_heads, head=seen, weight=sharp[one.seen], rows=rows,
    )  # fmt: skip
    if one.outcome == "nothing":
        then = say(
            "No head of this kind of attention matters much on its own: even removing {head}, which has the "
            "largest effect, changes {what} by only {effect}.",
            head=owed, what=whole, effect=written(effects[one.owed], measure),
        )  # fmt: skip
    elif one.outcome == "agree":
        then = say(
            "Attention and effect agree here: removing this head also changes {what} most, by {effect}.",
            what=whole, effect=written(effects[one.owed], measure),
        )  # fmt: skip
    else:
        then = say(
            "Attention and effect disagree here: removing the head with the most concentrated weights changes "
            "{what} by {effect}, but the largest effect, {most}, comes from removing {other}. In concentration, "
            "that head ranks number {rank} of {n} (its largest weight is {weight:.2f}).",
            what=whole, effect=written(effects[one.seen], measure), other=owed,
            most=written(effects[one.owed], measure), rank=one.rank, n=one.n_heads, weight=sharp[one.owed],
        )  # fmt: skip
    return joined(" ", [first, then])


def head_name(layer: int, head: int) -> Sentence:
    """What a head is called, of an attention that is known."""
    return say("layer {layer}, head {head}", layer=layer + 1, head=head + 1)
