"""The pictures of the part Heads of the page What matters: what the output owes to each head, and one head closer.

A head's concentration is the mean, over the rows that count, of the row's largest weight. The rows that count are those
of the steps, or of the selected step; in the encoder all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from glassformer.charts.grammar import SIDES, at_mean
from glassformer.charts.groups import HOW_TO_READ as HOW_TO_READ_GROUPS
from glassformer.charts.head_numbers import HOW_TO_READ, HOW_TO_READ_SIGNED, Block, head_at, head_effects_spec
from glassformer.charts.marks import Axis, Scale, Series, lines
from glassformer.charts.theme import capitalised
from glassformer.extensions.effects.attribution_pictures import MATTERS
from glassformer.extensions.effects.effects_look import Effect, EffectsLook
from glassformer.extensions.what_if.head_effects import HeadEffects, head_effects
from glassformer.maps import grid, seen_map
from glassformer.runs.map_axes import KIND_NAMES, mask_reason, size_of
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.runs.visible_trace import VisibleTrace
from glassformer.server.jobs import SMALL
from glassformer.state.click import Click, cell_of
from transformer.analysis.head_statistics import largest
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import EVERY_PART, Kind

Shown = Literal["log_prob", "probability", "kl", "pieces", "vectors"]
SIGNED: Final = frozenset({"log_prob", "probability"})
LEAST: Final[dict[Shown, float]] = {"log_prob": 0.01, "probability": 0.005, "kl": 0.001, "pieces": 0.5, "vectors": 0.01}
"""What is smaller is called no effect: so little changes no choice unless two pieces were equal."""

EFFECTS: Final[dict[Effect, Sentence]] = {
    "log_prob": say("Change of log-probability"),
    "probability": say("Change of probability"),
    "kl": say("KL divergence"),
    "pieces": say("Changed choices"),
}


@dataclass(frozen=True)
class EffectLabels:
    """What a measure is called."""

    title: Sentence  # of the map, with its unit
    unit: Sentence  # what a number is
    meaning: Sentence  # how it is made


WORDS: Final[dict[tuple[Shown, bool], EffectLabels]] = {
    ("log_prob", False): EffectLabels(
        say("Log-probability of the output with each head removed in turn"),
        say("change, nats"),
        say("The output's log-probability without the head, minus its log-probability with the head. A value below "
            "0 means that the output needs the head."),
    ),
    ("log_prob", True): EffectLabels(
        say("Log-probability at this step with each head removed in turn"),
        say("change, nats"),
        say("The token's log-probability without the head, minus its log-probability with the head. A value below "
            "0 means that the token needs the head."),
    ),
    ("probability", False): EffectLabels(
        say("Mean probability of the output's tokens with each head removed in turn"),
        say("mean change"),
        say("Each token's probability without the head, minus its probability with the head, averaged over the "
            "steps."),
    ),
    ("probability", True): EffectLabels(
        say("Probability at this step with each head removed in turn"),
        say("change"),
        say("The probability of this step's token without the head, minus its probability with the head."),
    ),
    ("kl", False): EffectLabels(
        say("Mean KL divergence with each head removed in turn"),
        say("KL, nats"),
        say("How much the distribution of the next token changes: Σ p ln(p/p′), averaged over the steps. Here p is "
            "the probability with the head, and p′ the probability without it."),
    ),
    ("kl", True): EffectLabels(
        say("KL divergence at this step with each head removed in turn"),
        say("KL, nats"),
        say("How much the distribution of the next token changes: Σ p ln(p/p′). Here p is the probability with the "
            "head, and p′ the probability without it."),
    ),
    ("pieces", False): EffectLabels(
        say("Number of changed choices with each head removed in turn"),
        say("steps"),
        say("The number of steps at which removing the head changes the most probable token."),
    ),
    ("pieces", True): EffectLabels(
        say("Whether removing each head changes the choice at this step"),
        say("changed"),
        say("1 if removing the head changes the most probable token, otherwise 0."),
    ),
    ("vectors", False): EffectLabels(
        say("Change of the final vectors with each head removed in turn"),
        say("change relative to length"),
        say("This encoder-only model generates no output, so this number is how much the final vectors change, as "
            "a share of their length, averaged over the tokens."),
    ),
}  # fmt: skip


def shown(found: HeadEffects, chosen: Effect) -> Shown:
    """The measure that is shown; an encoder-only model has vectors only."""
    return chosen if found.ids.size else "vectors"


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


_WHAT: Final[dict[Shown, tuple[Sentence, Sentence]]] = {
    "log_prob": (say("the log-probability of the output"), say("the log-probability of this step's token")),
    "probability": (say("the mean probability of the tokens"), say("the probability of this step's token")),
    "kl": (say("the distribution of the next token (mean over the steps)"), say("the distribution of this step")),
    "vectors": (say("the final vectors"), say("the final vectors")),
}


def said(
    one: EffectVerdict, kind: Kind, effects: np.ndarray, sharp: np.ndarray, measure: Shown, step: int | None
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


WHAT_IT_SAYS: Final = say(
    "One head at a time was set to 0, with all other heads unchanged, while the model read the output that it had "
    "written (Michel et al., 2019, section 3.2). This shows how much the output depends on a head, not what the "
    "head is for. If another part can take over, a head seems to matter little (McGrath et al., 2023, for whole "
    "layers). The effects of single heads do not add up, and later layers were never trained with a head that "
    "writes only 0."
)
HOW_TO_READ_STEPS: Final = say("Each bar shows one step; the dotted line is the mean over the steps.")
HOW_TO_READ_TOKENS: Final = say("Each bar shows one token; the dotted line is the mean over the tokens.")
HOW_TO_READ_MAP: Final = say(
    "Each row is a query. The stronger a cell's colour, the larger the weight that the query gives to that key."
)


@dataclass(frozen=True)
class Measured(RunScene):
    """What the output owes to each head."""

    found: HeadEffects | None  # None as long as it is not measured

    @property
    def head(self) -> tuple[int, int] | None:
        """The selected layer and head, if any."""
        layer, head = self.run.view.layer, self.run.view.head
        return None if layer is None or head is None else (layer, head)


def measure(run: ViewedRun) -> Measured:
    """What is measured; nothing of a model that is too large to be measured unasked. Errors as of `Work`."""
    trace, checkpoint = run.trace, run.checkpoint
    if checkpoint.config.count_parameters() > SMALL:
        return Measured(run, None)
    key = ("head_effects", trace.query, trace.src_ids, trace.read_ids)
    return Measured(run, run.work.compute(key, partial(head_effects, checkpoint, trace), nbytes=lambda one: one.nbytes))


HEADS = MATTERS.part("heads", measure, asks=True)


@HEADS.picture("matters_effects", say("Log-probability of the output with each head removed in turn"))
def effects(scene: Measured) -> Plot | None:
    """All heads; a click looks at one."""
    run, found = scene.run, scene.found
    if found is None or run.visible.covered:
        return None
    measure, step, view = shown(found, run.view.of(EffectsLook).effect), step_of(run.visible), run.view
    words = WORDS[measure, step is not None]
    kinds, n_steps = tuple(found.of), run.visible.n_steps
    blocks = [Block(KIND_NAMES[kind], values(found, kind, measure, n_steps=n_steps, step=step)) for kind in kinds]
    chosen = None if scene.head is None else (kinds.index(view.kind), *scene.head)
    signed, group = measure in SIGNED, size_of(run)
    read = [HOW_TO_READ, words.meaning, *[HOW_TO_READ_SIGNED] * signed, *[HOW_TO_READ_GROUPS] * (group > 1)]
    return Plot(
        spec=head_effects_spec(
            blocks, title=words.title, value_name=words.unit, signed=signed, chosen=chosen, group=group
        ),
        alt=say(
            "{title}, by layer and head, one block per kind of attention. The table below has the same numbers.",
            title=words.title,
        ),
        how_to_read=joined(" ", [*read, say("Click a cell to look at its head."), WHAT_IT_SAYS]),
        clicked=partial(_head_of, kinds=kinds, shapes=[block.values.shape for block in blocks]),
    )


def _head_of(click: Click, kinds: Sequence[Kind], shapes: Sequence[tuple[int, ...]]) -> Mapping[str, Any] | None:
    at = head_at(shapes, cell_of(click))
    return None if at is None else {"kind": kinds[at[0]], "layer": at[1], "head": at[2]}


@HEADS.picture("matters_grid", say("All heads"), follows="still")
def what_they_look_at(scene: Measured) -> Plot:
    """The maps of all heads beside that."""
    return grid(scene.run, scene.run.view.kind, large=True, fit=False, also={})


def name_of(kind: Kind, layer: int, head: int) -> Sentence:
    """What a head is called."""
    return say("{attention}, layer {layer}, head {head}", attention=KIND_NAMES[kind], layer=layer + 1, head=head + 1)


@HEADS.picture("matters_steps", say("Step by step"))
def steps(scene: Measured) -> Plot | None:
    """What one head changes at each step, or at each token of an encoder that is alone."""
    run, found = scene.run, scene.found
    if found is None or scene.head is None or run.visible.covered:
        return None
    layer, head = scene.head
    measure = in_numbers(shown(found, run.view.of(EffectsLook).effect))
    effect = found.of[run.view.kind]
    if measure == "vectors":
        labels, numbers, axis, now = list(run.trace.src_tokens), effect.vectors[layer, head], say("Token"), None
    else:
        first, n_steps = run.trace.first_row, run.visible.n_steps
        labels, numbers = run.visible.row_labels()[first : first + n_steps], getattr(effect, measure)[layer, head]
        axis, now = say("Reads → predicts"), run.view.step
    words = WORDS[measure, measure != "vectors"]
    name = name_of(run.view.kind, layer, head)
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
    alt = say("{title}, for {head}: one bar per step or token.", title=words.title, head=name)
    read = joined(" ", [HOW_TO_READ_TOKENS if now is None else HOW_TO_READ_STEPS, words.meaning])
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=read)


@HEADS.picture("matters_map", say("One map"))
def weights(scene: Measured) -> Plot | None:
    """The map of one head."""
    run, kind = scene.run, scene.run.view.kind
    if scene.found is None or scene.head is None:
        return None
    drawn, name = seen_map(run, kind), name_of(kind, *scene.head)
    spec = drawn.spec(
        name, mask_reason=mask_reason(run.checkpoint, kind), marked_row=drawn.sides.current, rows_sum_to_one=False
    )
    return Plot(spec=spec, alt=drawn.alt(name), how_to_read=joined(" ", [HOW_TO_READ_MAP, *drawn.closed]))
