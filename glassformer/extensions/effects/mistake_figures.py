"""Mistake cards: records of a card, its two runs and outcome; the numbers and charts that cards choose from.

A card names a change, which the library carries out; `mistake_cards.toml` has its texts. The outcome is computed, and
each outcome has its own sentence, as most mistakes change only some outputs. Numbers and charts are of the right
output, which both sides read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import stroke
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.marks import Axis, Scale, Series, lines
from glassformer.extensions.effects.effects_look import Mistake
from glassformer.extensions.what_if.two_runs import first_difference
from glassformer.runs.picture import Plot
from transformer.analysis import teacher_forced_pass
from transformer.analysis.stream import rms
from transformer.analysis.teacher_forced_pass import TeacherForcedPass
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, say, say_n
from transformer.i18n.sentence import read_table
from transformer.model.anatomy import Anatomy, Attention, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention
from transformer.runs.query import Query
from transformer.runs.trace import Trace

Outcome = Literal["same", "changed", "nothing", "endless", "not_finite", "refused"]

LEAK: Final = "reverse-leak"  # the checkpoint that was trained on a leak; all others are healthy
RIGHT: Final = say("As it should be")
WRONG: Final = say("With the mistake")


@dataclass(frozen=True)
class Side:
    """One of the two things that a card compares: a model, and what it is asked."""

    checkpoint: Checkpoint
    query: Query

    def changed(self, changes: tuple[Intervention, ...]) -> Side:
        """The same with changes besides its own, or in the place of those of the same thing."""
        own = self.without(changes).query.interventions
        return replace(self, query=replace(self.query, interventions=(*own, *changes)))

    def without(self, changes: tuple[Intervention, ...]) -> Side:
        """The same without its own changes of what some others change."""
        targets = {one.target for one in changes}
        own = tuple(one for one in self.query.interventions if one.target not in targets)
        return replace(self, query=replace(self.query, interventions=own))


@dataclass(frozen=True)
class RunSides:
    """What a card compares."""

    right: Side  # the two runs
    wrong: Side  # the two runs
    read_right: Side  # what reads the right output at once, for the number and the chart
    read_wrong: Side  # what reads the right output at once, for the number and the chart


@dataclass(frozen=True, eq=False)
class MistakeResult:
    """What came of the two."""

    sides: RunSides  # what was compared
    right: Trace  # the right run
    wrong: Trace | None  # the other; None if it could not be done
    outcome: Outcome  # what became of the output
    site: str = ""  # where the model first computed what is not finite; "" if nowhere
    problem: str = ""  # why it could not be done; "" if it could
    read_right: TeacherForcedPass | None = None  # the right output, read at once; None where that could not be done
    read_wrong: TeacherForcedPass | None = None  # the right output, read at once; None where that could not be done

    @property
    def parts(self) -> Anatomy:
        """Of the model that reads the right output."""
        return anatomy(self.sides.read_right.checkpoint.config)

    @property
    def first(self) -> int | None:
        """The first piece in which the outputs differ, from 0; None if they do not, or there is one output."""
        return None if self.wrong is None else first_difference(self.right.tgt_ids, self.wrong.tgt_ids)


@dataclass(frozen=True)
class CardMeasure:
    """The one number of a card."""

    name: Sentence  # what it is, with its unit
    of: Callable[[MistakeResult, TeacherForcedPass], float]  # computes it from one reading of the right output
    form: str = ".2f"  # how it is written, as `format` takes it
    labels: tuple[Sentence, Sentence] = (RIGHT, WRONG)  # what the two numbers are of
    model: str = ""  # the one checkpoint that both numbers are of, where the outputs are of two; "" otherwise
    finite: bool = True  # there is none where something is not finite; if not, it counts just that

    def numbers(self, found: MistakeResult) -> tuple[float | None, float | None]:
        """The right number and the other; None where there is none."""
        right, wrong = (None if one is None else self.of(found, one) for one in (found.read_right, found.read_wrong))
        return right, wrong


@dataclass(frozen=True)
class CardTexts:
    """What is said of a mistake."""

    title: Sentence  # what it is called
    about: Sentence  # what is wired wrongly, and how one comes to it: two or three sentences
    wrong: Sentence  # a line as a learner writes it, in plain PyTorch
    right: Sentence  # the right one
    source: Sentence  # where what is right is described
    outcomes: Mapping[Outcome, Sentence]  # for "same" and "changed", and what else needs its own: what that means here


SAID: Final = {
    name: CardTexts(**row) for name, row in read_table(Path(__file__).with_name("mistake_cards.toml")).items()
}


@dataclass(frozen=True)
class Card:
    """A mistake."""

    mistake: Mistake  # its name in an address
    measure: CardMeasure  # the number
    charts: Callable[[MistakeResult], Sequence[Plot]]  # draws one chart, or two maps that belong together
    change: Callable[[ModelConfig], tuple[Intervention, ...]]  # the interventions that make the mistake in a model
    # Sites recorded for the number and the chart; losses need none.
    sites: Callable[[ModelConfig], Sequence[str]] = lambda _: ()
    # Why a model cannot have the mistake; None if it can.
    unfit: Callable[[Checkpoint], Sentence | None] = lambda _: None
    seen_on: str = "reverse"  # A shipped checkpoint in which it can be
    # The sides, where they are not one model with and without the change.
    sides: Callable[[Side], RunSides] | None = None
    labels: tuple[Sentence, Sentence] = (RIGHT, WRONG)  # what the two outputs are of

    @property
    def said(self) -> CardTexts:
        """What is said of it."""
        return SAID[self.mistake]


def happened(found: MistakeResult) -> Sentence:
    """What became of the output, in a sentence."""
    match found.outcome:
        case "same":
            return say("This mistake changes nothing in this sentence: both outputs are the same, token for token.")
        case "nothing":
            return say("The model writes nothing: the first token it chooses is the end mark.")
        case "endless":
            n = found.wrong.n_steps if found.wrong else 0
            return say_n(
                "The output does not end: it was stopped after {n} token.",
                "The output does not end: it was stopped after {n} tokens.",
                n,
            )
        case "not_finite":
            return say(
                "The model writes nothing: NaN (not a number) or infinite values first appear at “{site}”, and "
                "everything computed from them is lost, too.",
                site=found.site,
            )
        case "refused":
            return say("The model with the mistake cannot be run: {problem}", problem=found.problem)
    return say("From token {n} on, the output is different.", n=(found.first or 0) + 1)


LOSS: Sentence = say(
    "Loss of the output without the mistake when the model reads all of it in one pass, in nats per token"
)
HOW_TO_READ_MEAN = say(
    "Decoder self-attention, averaged over its heads. Each row is a query, and its weights sum to 1. The stronger "
    "a cell's colour, the larger the weight of that key. Hatched cells are closed by the mask; plain grey cells "
    "are NaN."
)
HOW_TO_READ_BARS = say("Each group is one token. Its two bars show the two cases named above the chart.")
HOW_TO_READ_LAYERS = say("Layers run from left to right. The two lines show the two cases named above the chart.")
LAYER = say("Layer")
OUTPUT = say("Output token")
_STYLES = ((theme.GUIDE_COLOR, "circle"), (theme.TARGET_COLOR, "square"))
_MOST_BARS = 40  # tokens; above this bars are too thin to distinguish

Values = list[tuple[Sentence, np.ndarray | None]]
"""Of both sides, each with its name; None where nothing could be read."""


def _both(
    found: MistakeResult,
    of: Callable[[TeacherForcedPass], np.ndarray],
    labels: tuple[Sentence, Sentence] = (RIGHT, WRONG),
) -> Values:
    """A value of both readings."""
    reads = found.read_right, found.read_wrong
    return [(label, None if read is None else of(read)) for label, read in zip(labels, reads, strict=True)]


def two_bars(title: str, tokens: Axis, scale: Scale, values: Values, *, number: str = "%{y:.3f}") -> Plot:
    """A number for each token on both sides, beside each other."""
    few = len(tokens.labels) <= _MOST_BARS
    series = [
        Series(
            name,
            one,
            {"marker": {"color": colour} | ({} if few else {"symbol": symbol})},
            "bar" if few else "markers",
            number,
        )
        for (name, one), (colour, symbol) in zip(values, _STYLES, strict=True)
        if one is not None
    ]
    scale = Scale(scale.title, {"rangemode": "tozero"} | scale.look)
    return Plot(**lines(title, tokens, scale, series, height=340, top=92), how_to_read=HOW_TO_READ_BARS)


def loss(found: MistakeResult, read: TeacherForcedPass) -> float:
    """The mean loss of the right output."""
    return read.mean_loss


def loss_by_piece(
    labels: tuple[Sentence, Sentence] = (RIGHT, WRONG), *, model: str = ""
) -> Callable[[MistakeResult], Sequence[Plot]]:
    """Draws the loss of each piece of the right output on both sides, where they are of one model with its name."""

    def draw(found: MistakeResult) -> Sequence[Plot]:
        title = (
            say("“{model}”: loss of each token of the output without the mistake", model=model)
            if model
            else say("Loss of each token of the output without the mistake")
        )
        values = _both(found, lambda read: read.losses, labels)
        return [two_bars(title, Axis(OUTPUT, found.right.tgt_tokens), Scale(say("Loss (nats)")), values)]

    return draw


# ---------------------------------------------------------------- maps


def weights_of(config: ModelConfig) -> list[str]:
    """The sites of all weights."""
    return [one.site("*", "weights") for one in anatomy(config).attentions]


def decoder_maps(config: ModelConfig) -> list[str]:
    """The sites of the decoder's own maps and masks."""
    own = anatomy(config).attention("decoder")
    return [own.site("*", "weights"), own.site("*", "mask")]


def layers(read: TeacherForcedPass, attention: Attention) -> list[np.ndarray]:
    """One attention's value at each layer."""
    return [read.values[attention.site(layer, "weights")] for layer in range(attention.n_layers)]


def on_later(found: MistakeResult, read: TeacherForcedPass) -> float:
    """The share of its weight that a row of the decoder gives to later tokens."""
    return teacher_forced_pass.on_later(layers(read, found.parts.attention("decoder")))


def largest_weight(found: MistakeResult, read: TeacherForcedPass) -> float:
    """How much its largest weight has of a row's."""
    return teacher_forced_pass.largest_weight(value for site, value in read.values.items() if site.endswith("weights"))


def first_maps(found: MistakeResult) -> Sequence[Plot]:
    """The decoder's first map of its own tokens, on average over its heads, on both sides."""
    both = (RIGHT, found.read_right), (WRONG, found.read_wrong)
    return [_map(found, read, 0, label) for label, read in both if read is not None]


def spreading(found: MistakeResult) -> Sequence[Plot]:
    """Where NaN begins, and where it is one layer later: the decoder's first two maps."""
    n_maps, read = min(2, found.parts.attention("decoder").n_layers), found.read_wrong
    return [] if read is None else [_map(found, read, layer, WRONG) for layer in range(n_maps)]


def _map(found: MistakeResult, read: TeacherForcedPass, layer: int, label: Sentence) -> Plot:
    own, queries = found.parts.attention("decoder"), list(found.right.read_tokens)
    weights = read.values[own.site(layer, "weights")].mean(axis=0)  # [T, T]
    lost = ~np.isfinite(weights)
    allowed = np.broadcast_to(read.values[own.site(layer, "mask")][0], weights.shape) | lost
    figure = heatmap_spec(
        weights,
        queries=queries,
        keys=queries,
        title=say("{side}: layer {layer}", side=label, layer=layer + 1),
        query_axis=say("Reads"),
        key_axis=say("Looks at"),
        allowed=allowed,
        mask_reason=say("closed by the mask"),
        colour="target",
        rows_sum_to_one=False,
    )
    alt = say("{side}: a map of {n} rows. In {closed} of them, every key is closed; in {lost}, the weights are NaN.",
              side=label, n=len(queries), closed=int((~allowed).all(axis=1).sum()),
              lost=int(lost.any(axis=1).sum()))  # fmt: skip
    return Plot(spec=figure, alt=alt, how_to_read=HOW_TO_READ_MEAN)


def one_row(found: MistakeResult) -> Sequence[Plot]:
    """The row of weights, of all heads, in which both sides differ most."""
    one = found.parts.attention("cross" if found.parts.reads else "decoder")
    both = _both(found, lambda read: np.stack(layers(read, one)))  # [layer, head, Q, K]
    (_, right), (_, wrong) = both
    if right is None or wrong is None:
        return []
    apart = np.abs(right - wrong).sum(axis=-1)
    layer, head, row = (int(place) for place in np.unravel_index(int(apart.argmax()), apart.shape))
    title = say(
        "The row that changes most: layer {layer}, head {head}, row {row}", layer=layer + 1, head=head + 1, row=row + 1
    )
    pieces = found.right.src_tokens if found.parts.reads else found.right.read_tokens
    values: Values = [(RIGHT, right[layer, head, row]), (WRONG, wrong[layer, head, row])]
    return [two_bars(title, Axis(say("Looks at"), pieces), Scale(say("Weight"), {"range": [0, 1]}), values)]


# ---------------------------------------------------------------- tokens of the source


def reading_maps(config: ModelConfig) -> list[str]:
    """The sites of the encoder's weights."""
    return [anatomy(config).attention("encoder").site("*", "weights")]


def _source(found: MistakeResult, read: TeacherForcedPass) -> tuple[list[str], np.ndarray]:
    """The tokens of the source, and which of them are padding, bool [S]."""
    checkpoint = found.sides.read_right.checkpoint
    pieces = [checkpoint.src_tokenizer.piece(i) for i in read.src_ids]
    return pieces, np.array(read.src_ids) == checkpoint.config.pad_id


def on_pads(found: MistakeResult, read: TeacherForcedPass) -> float:
    """The share of its weight that a real token of the source gives to padding."""
    _, pads = _source(found, read)
    return float(teacher_forced_pass.on_keys(layers(read, found.parts.attention("encoder")), pads, ~pads).mean())


def pads_by_row(found: MistakeResult) -> Sequence[Plot]:
    """How much of its weight each token of the source gives to padding."""
    if found.read_right is None:
        return []
    own, (pieces, pads) = found.parts.attention("encoder"), _source(found, found.read_right)
    values = _both(found, lambda read: 100 * teacher_forced_pass.on_keys(layers(read, own), pads))
    title, tokens = say("Weight that each source token gives to padding"), say("Source token, padding at the end")
    return [two_bars(title, Axis(tokens, pieces), Scale(say("Weight on padding (%)")), values, number="%{y:.1f}")]


# ---------------------------------------------------------------- streams of the stack that reads what was typed


def stream(config: ModelConfig) -> list[str]:
    """The sites of the stream at each depth of that stack."""
    stack = anatomy(config).stacks[0]
    outputs = (f"{stack.name}.{layer}.output" for layer in range(stack.n_layers))
    return [f"{stack.name}.embedding.output", *outputs, f"{stack.name}.output"]


def _by_depth(of: Callable[[np.ndarray], float], title: str, scale: Scale) -> Callable[[MistakeResult], Sequence[Plot]]:
    def draw(found: MistakeResult) -> Sequence[Plot]:
        sites = stream(found.sides.read_right.checkpoint.config)
        depths = [say("embedding"), *(str(layer + 1) for layer in range(len(sites) - 2)), say("end")]
        values = _both(found, lambda read: np.array([of(read.values[site]) for site in sites]))
        looks = [stroke(colour, 2, size=9, symbol=symbol) | {"cliponaxis": False} for colour, symbol in _STYLES]
        both = zip(values, looks, strict=True)
        series = [Series(name, one, look, number="%{y:.3f}") for (name, one), look in both if one is not None]
        drawn = lines(title, Axis(LAYER, depths, counted=False), scale, series, height=340, top=92)
        return [Plot(**drawn, how_to_read=HOW_TO_READ_LAYERS)]

    return draw


def likeness(found: MistakeResult, read: TeacherForcedPass) -> float:
    """The mean cosine between two tokens' vectors at the end of the stack."""
    return teacher_forced_pass.likeness(read.values[stream(found.sides.read_right.checkpoint.config)[-1]])


likeness_by_layer = _by_depth(
    teacher_forced_pass.likeness,
    say("How similar the tokens’ vectors are"),
    Scale(say("Mean cosine between two tokens’ vectors"), {"range": [-0.1, 1.02], "zeroline": True}),
)
size_by_layer = _by_depth(
    lambda vectors: float(rms(vectors).mean()),
    say("How large the stream is"),
    Scale(say("Root mean square, averaged over all tokens"), {"zeroline": True}),
)


def embeddings(config: ModelConfig) -> list[str]:
    """The sites of the two vectors that each token begins with."""
    return [f"{anatomy(config).stacks[0].name}.embedding.{name}" for name in ("tokens", "positions")]


def ratio(found: MistakeResult, read: TeacherForcedPass) -> float:
    """How many times as large as the position the token's own vector is, on average."""
    return float(_ratios(found, read).mean())


def ratio_by_token(found: MistakeResult) -> Sequence[Plot]:
    """The same of each token, on both sides."""
    if found.read_right is None:
        return []
    tokens = Axis(say("Source token"), _source(found, found.read_right)[0])
    title = say("Size of a token’s embedding relative to its position vector")
    scale, values = Scale(say("Size of embedding ÷ size of position vector")), _both(found, lambda r: _ratios(found, r))
    return [two_bars(title, tokens, scale, values, number="%{y:.2f}")]


def _ratios(found: MistakeResult, read: TeacherForcedPass) -> np.ndarray:
    tokens, positions = (read.values[site] for site in embeddings(found.sides.read_right.checkpoint.config))
    return rms(tokens) / np.maximum(rms(positions), np.finfo(np.float32).tiny)


def lost(found: MistakeResult, read: TeacherForcedPass) -> float:
    """The share of the right output's pieces whose probability is not a number."""
    return float(np.mean(~np.isfinite(read.losses)))


LOSS_MEASURE = CardMeasure(LOSS, loss, form=".3f")
LARGEST = CardMeasure(say("Largest weight of a row, averaged over all rows of all heads"), largest_weight, form=".1%")
