"""Effects of removing each head: measures and their names, comparison with concentration, pictures.

A head's concentration is the mean, over the rows that count, of the row's largest weight. The rows that count are those
of the steps, or of the selected step; in the encoder all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from glassformer.attention import AttentionLook
from glassformer.attention.head_table_pictures import TABLE, Heads
from glassformer.charts.attribution import HOW_TO_READ_HEADS, HOW_TO_READ_SIGNED, Block, head_at, head_effects_spec
from glassformer.charts.grammar import SIDES, at_mean
from glassformer.charts.grid import HOW_TO_READ_GROUPS
from glassformer.charts.marks import Axis, Scale, Series, lines
from glassformer.charts.theme import capitalised
from glassformer.extensions.effects.effects_look import EffectsLook
from glassformer.extensions.what_if.head_effects import HeadEffects, head_effects, key_of
from glassformer.runs.map_axes import KIND_NAMES, head_of_kind, size_of
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import ViewedRun, VisibleTrace
from glassformer.server.jobs import SMALL
from glassformer.state.view import Click, cell_of
from transformer.analysis.head_statistics import largest
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import EVERY_PART, Kind

Shown = Literal["log_prob", "probability", "kl", "pieces", "vectors"]


@dataclass(frozen=True)
class EffectMeasure:
    """What is said of a measure."""

    name: Sentence  # in a heading and in a menu
    titles: tuple[Sentence, Sentence]  # of the map: of the whole output, and of one step
    unit: Sentence  # what a number is
    meaning: Sentence  # how it is made
    least: float  # what is smaller is called no effect: so little changes no choice unless two pieces were equal
    what: Sentence  # what a head changes, in a sentence
    signed: bool = False


MEASURES: Final[dict[Shown, EffectMeasure]] = {
    "log_prob": EffectMeasure(
        say("log-probability, nats"),
        (say("Log-probability of the output with each head removed in turn"),
         say("Log-probability at this step with each head removed in turn")),
        say("change, nats"),
        say("The log-probability without the head, minus the log-probability with it. A value below 0 means that the "
            "head is needed."),
        0.01, say("the log-probability"), signed=True,
    ),
    "probability": EffectMeasure(
        say("probability"),
        (say("Mean probability of the output's tokens with each head removed in turn"),
         say("Probability at this step with each head removed in turn")),
        say("change"),
        say("The token's probability without the head, minus its probability with the head."),
        0.005, say("the probability"), signed=True,
    ),
    "kl": EffectMeasure(
        say("KL divergence, nats"),
        (say("Mean KL divergence with each head removed in turn"),
         say("KL divergence at this step with each head removed in turn")),
        say("KL, nats"),
        say("How much the distribution of the next token changes: Σ p ln(p/p′). Here p is the probability with the "
            "head, and p′ the probability without it."),
        0.001, say("the distribution of the next token"),
    ),
    "pieces": EffectMeasure(
        say("changed choices"),
        (say("Number of changed choices with each head removed in turn"),
         say("Whether removing each head changes the choice at this step")),
        say("changed choices"),
        say("The number of steps at which removing the head changes the most probable token."),
        0.5, say("the log-probability"),  # in words it is that, see `in_numbers`
    ),
    "vectors": EffectMeasure(
        say("final vectors"),
        (say("Change of the final vectors with each head removed in turn"),) * 2,
        say("change relative to length"),
        say("This encoder-only model generates no output, so this number is how much the final vectors change, as "
            "a share of their length, averaged over the tokens."),
        0.01, say("the final vectors"),
    ),
}  # fmt: skip


def names_of(run: ViewedRun) -> tuple[Shown, ...]:
    """The measures of a run; an encoder-only model has vectors only."""
    return tuple(name for name in MEASURES if (name == "vectors") != bool(run.trace.n_steps))


def in_numbers(measure: Shown) -> Shown:
    """The measure, or log-probabilities for whole numbers of pieces, of which too many are equal."""
    return "log_prob" if measure == "pieces" else measure


def step_of(visible: VisibleTrace) -> int | None:
    """The step on which effects are measured; None for the whole output."""
    return visible.view.step if visible.view.of(EffectsLook).effect_at == "step" and visible.trace.n_steps else None


def values(found: HeadEffects, kind: Kind, measure: Shown, *, n_steps: int, step: int | None) -> np.ndarray:
    """One number for each head [L, H], of the visible steps or of the selected one, from 0."""
    one = found.of[kind]
    if measure == "vectors":
        return one.vectors.mean(axis=-1).astype(np.float64)
    each = found.changed(kind) if measure == "pieces" else getattr(one, measure)
    each = np.asarray(each, dtype=np.float64)[..., :n_steps]
    if step is not None:
        return np.asarray(each[..., step])
    return np.asarray(each.sum(axis=-1) if measure in ("log_prob", "pieces") else each.mean(axis=-1))


def concentration(visible: VisibleTrace, kind: Kind, *, step: int | None) -> np.ndarray:
    """How concentrated each head's rows are [L, H], see the module; errors as of `VisibleTrace.each`."""
    each = np.stack(visible.each(kind, lambda heads, layer: largest(heads), key="largest_of_rows"))  # [L, H, Q]
    if EVERY_PART.attention(kind).stack == "encoder":
        rows = slice(0, visible.trace.n_tokens("encoder"))
    else:
        first = visible.trace.first_row
        rows = slice(first, visible.n_rows) if step is None else slice(first + step, first + step + 1)
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
class EffectVerdict:
    """Whether the head with the most concentrated rows is the one whose absence changes most."""

    # "nothing": no head has an effect worth its name.
    outcome: Literal["agree", "disagree", "nothing"]
    seen: tuple[int, int]  # layer and head with the most concentrated rows, from 0
    owed: tuple[int, int]  # layer and head with the largest effect
    rank: int  # the place of `owed` by concentration, from 1
    n_heads: int  # of how many


def verdict(effects: np.ndarray, concentrations: np.ndarray, *, least: float) -> EffectVerdict | None:
    """Compare the heads of one attention by size of effect and by concentration [L, H]; None without numbers.

    An effect of less than `least`, in absolute value, counts as 0.
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
    return EffectVerdict(outcome, (seen[0], seen[1]), (owed[0], owed[1]), rank, sizes.size)


def said(
    one: EffectVerdict, kind: Kind, effects: np.ndarray, sharp: np.ndarray, measure: Shown, step: int | None
) -> Sentence:
    """The sentences of a verdict, with effects and concentrations [L, H]; `step` is None for the whole output."""
    whole = MEASURES[measure].what
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


WHAT_IT_SAYS: Final = say(
    "One head at a time was set to 0, with all other heads unchanged, while the model read the output that it had "
    "written (Michel et al., 2019, section 3.2). This shows how much the output depends on a head, not what the "
    "head is for. If another part can take over, a head seems to matter little (McGrath et al., 2023, for whole "
    "layers). The effects of single heads do not add up, and later layers were never trained with a head that "
    "writes only 0."
)
HOW_TO_READ_STEPS: Final = say("Each bar shows one step or token; the dotted line is their mean.")


@dataclass(frozen=True)
class MeasuredHeads(Heads):
    """Heads with what their absence changes, as a page has measured it."""

    found: HeadEffects


def effects_of(heads: Heads) -> HeadEffects | None:
    """What the absence of each head changes; None of a model too large to measure unasked. Errors: `ModelAccess`."""
    run = heads.run
    if isinstance(heads, MeasuredHeads):
        return heads.found
    if not isinstance(run, ViewedRun) or run.checkpoint.config.count_parameters() > SMALL:
        return None
    work = partial(head_effects, run.checkpoint, run.trace)
    return run.work.compute(key_of(run.trace), work, nbytes=lambda one: one.nbytes)


def _measure_of(run: ViewedRun) -> Shown:
    """The measure that the charts show, or the first where they show another thing of the heads."""
    asked, there = run.view.of(AttentionLook).measure, names_of(run)
    return next((name for name in there if name == asked), there[0])


def _chosen(run: ViewedRun) -> tuple[int, int] | None:
    layer, head = run.view.layer, run.view.head
    return None if layer is None or head is None else (layer, head)


@TABLE.picture("matters_effects", say("Log-probability of the output with each head removed in turn"))
def effects(heads: Heads) -> Plot | None:
    """All heads; a click looks at one."""
    run = heads.run
    if not isinstance(run, ViewedRun) or run.visible.covered or (found := effects_of(heads)) is None:
        return None
    measure, step, view, one = _measure_of(run), step_of(run.visible), run.view, _chosen(run)
    words = MEASURES[measure]
    title = words.titles[step is not None]
    kinds, n_steps = tuple(found.of), run.visible.n_steps
    blocks = [Block(KIND_NAMES[kind], values(found, kind, measure, n_steps=n_steps, step=step)) for kind in kinds]
    chosen = None if one is None else (kinds.index(view.kind), *one)
    signed, group = words.signed, size_of(run)
    read = [HOW_TO_READ_HEADS, words.meaning, *[HOW_TO_READ_SIGNED] * signed, *[HOW_TO_READ_GROUPS] * (group > 1)]
    return Plot(
        spec=head_effects_spec(blocks, title=title, value_name=words.unit, signed=signed, chosen=chosen, group=group),
        alt=say(
            "{title}, by layer and head, one block per kind of attention. The table has the same numbers.", title=title
        ),
        how_to_read=joined(" ", [*read, say("Click a cell to look at its head."), WHAT_IT_SAYS]),
        clicked=partial(_head_of, kinds=kinds, shapes=[block.values.shape for block in blocks]),
    )


def _head_of(click: Click, kinds: Sequence[Kind], shapes: Sequence[tuple[int, ...]]) -> Mapping[str, Any] | None:
    at = head_at(shapes, cell_of(click))
    return None if at is None else {"kind": kinds[at[0]], "layer": at[1], "head": at[2]}


@TABLE.picture("matters_steps", say("Step by step"))
def steps(heads: Heads) -> Plot | None:
    """What one head changes at each step, or at each token of an encoder that is alone."""
    run = heads.run
    if not isinstance(run, ViewedRun) or run.visible.covered or (one := _chosen(run)) is None:
        return None
    if (found := effects_of(heads)) is None:
        return None
    layer, head = one
    measure = in_numbers(_measure_of(run))
    effect = found.of[run.view.kind]
    if measure == "vectors":
        labels, numbers, axis, now = list(run.trace.src_tokens), effect.vectors[layer, head], say("Token"), None
    else:
        first, n_steps = run.trace.first_row, run.visible.n_steps
        labels, numbers = run.visible.row_labels()[first : first + n_steps], getattr(effect, measure)[layer, head]
        axis, now = say("Reads → predicts"), run.view.step
    words = MEASURES[measure]
    name = head_of_kind(run.view.kind, layer, head)
    title = say("Change at each token without {head}", head=head_name(layer, head))
    if now is not None:
        title = say("Change at each step without {head}", head=head_name(layer, head))
    values, unit = numbers[: len(labels)], capitalised(words.unit)
    look = {"marker": {"color": SIDES["source" if now is None else "target"][1]}}
    drawn = lines(
        title,
        Axis(axis, labels),
        Scale(unit, {"rangemode": "tozero", "fixedrange": True}),
        [Series(unit, values, look, "bar", chosen=now)],
        height=340,
        shapes=at_mean(values),
    )
    alt = say("{title}, for {head}: one bar per step or token.", title=words.titles[1], head=name)
    read = joined(" ", [HOW_TO_READ_STEPS, words.meaning])
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=read)
