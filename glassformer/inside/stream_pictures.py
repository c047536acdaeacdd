"""Pictures of the residual stream: size and cosine to the embedding by depth, sub-layer outputs, norms."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import frame
from glassformer.charts.marks import Axis, Numbers, Scale, Series, heat, lines
from glassformer.charts.points import DIMENSION_AXIS
from glassformer.charts.stream import (
    HOW_TO_READ_KEPT,
    HOW_TO_READ_SIZE,
    Depth,
    shades,
    stream_added_spec,
    stream_lines_spec,
)
from glassformer.charts.theme import capitalised
from glassformer.inside import InsideLook
from glassformer.inside.token_selection import INSIDE, pieces_of, side_of, token_of
from glassformer.runs.map_axes import AXES, STACK_NAMES, STACKS
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Side, place_below
from transformer.analysis import stream
from transformer.analysis.stream import Normed, Stream, StreamPlace
from transformer.i18n import joined, say
from transformer.model.anatomy import StackName

NORM_FORMULAS: dict[str, tuple[str, str]] = {  # x̂, and y made from it
    "layer": ("(x − μ) / √(σ² + ε)", "γ x̂ + β"),
    "rms": ("x / √(Σx²/d + ε)", "γ x̂"),
    "deviation": ("(x − μ) / (s + ε)", "γ x̂ + β"),
    "biased_deviation": ("(x − μ) / (σ + ε)", "γ x̂ + β"),
}
"""What a kind of norm does to a vector x."""
WITHOUT_GAMMA: dict[str, str] = {
    "layer": say("Without γ and β, they would be 0 and 1 after the norm."),
    "rms": say("Without γ, the mean of y² would be 1."),
    "deviation": say(
        "Here s is the unbiased standard deviation. Without γ and β, they would be about 0 and 1 after the norm."
    ),
    "biased_deviation": say("Without γ and β, they would be about 0 and 1 after the norm."),
}


@dataclass(frozen=True)
class OpenStream(RunScene):
    """The stream of a side."""

    side: Side
    stack: StackName  # whose layers
    pieces: list[str]  # the tokens that may be seen
    chosen: int  # the selected one
    whose: str  # the same, for titles
    pre: bool  # whether norms come before their sub-layers
    norms: list[StreamPlace]  # that can be chosen; none where the model has none
    recorded: dict[str, np.ndarray]  # what the pass recorded; its rows after `pieces` must not be seen
    measured: Stream

    @cached_property
    def norm(self) -> StreamPlace:
        """The norm that is chosen."""
        norms, asked = self.norms, self.run.view.of(InsideLook).norm
        return norms[asked if asked < len(norms) else 0]

    @cached_property
    def normed(self) -> Normed:
        """What it does."""
        return stream.normed(self.recorded, self.run.checkpoint.model, self.stack, self.norm, n_tokens=len(self.pieces))


def open_stream(run: ViewedRun) -> OpenStream:
    """The stream of the selected side; QueryError if the model computes what is not finite."""
    side = side_of(run)
    pieces, config, stack = pieces_of(run, side), run.checkpoint.config, STACKS[side]
    recorded = run.work.replay(run.checkpoint, run.trace, stream.sites(config, stack))
    measured = stream.measure(recorded, config, stack, n_tokens=len(pieces))
    chosen, pre = token_of(run, side, pieces), config.norm != "post"
    norms = [] if config.norm_kind == "none" else list(stream.norm_places(config, stack))
    return OpenStream(run, side, stack, pieces, chosen, pieces[chosen], pre, norms, recorded, measured)


STREAM = INSIDE.part("stream", open_stream)


def depths(places: tuple[StreamPlace, ...] | list[StreamPlace]) -> list[Depth]:
    """What places of a stream are called."""
    return [Depth(place.short, place.name) for place in places]


@STREAM.picture("stream_size", say("How large the stream is"))
def size(o: OpenStream) -> Plot:
    """How large the stream is at each depth."""
    alt = say("Root mean square of the vectors of {n} tokens, by depth in the {stack}; {token} is chosen.",
              n=len(o.pieces), stack=STACK_NAMES[o.stack], token=o.whose)  # fmt: skip
    return _by_depth(o, size.title, say("root mean square"), o.measured.size, alt, HOW_TO_READ_SIZE)


def _by_depth(
    o: OpenStream,
    title: str,
    name: str,
    values: np.ndarray,
    alt: str,
    read: str,
    limits: tuple[float, float] | None = None,
) -> Plot:
    places, look = depths(o.measured.places), {"title": title, "value_name": name}
    spec = stream_lines_spec(places, values, o.pieces, chosen=o.chosen, limits=limits, colour=o.side, **look)
    return Plot(spec=spec, alt=alt, how_to_read=read, fit=True, clicked=place_below(len(o.pieces)))


@STREAM.picture("stream_kept", say("How much of the embedding is left"))
def kept(o: OpenStream) -> Plot:
    """How much of what a token began as is left at each depth."""
    alt = say("Cosine between the vector of each of {n} tokens and its starting point (embedding plus position), "
              "by depth in the {stack}; {token} is chosen.", n=len(o.pieces), stack=STACK_NAMES[o.stack],
              token=o.whose)  # fmt: skip
    least = min(0.0, float(np.nan_to_num(o.measured.kept).min()) - 0.05)
    return _by_depth(o, kept.title, say("cosine"), o.measured.kept, alt, HOW_TO_READ_KEPT, (least, 1.05))


@STREAM.picture("stream_added", say("What each sub-layer adds to the stream of a token"))
def added(o: OpenStream) -> Plot:
    """What each sub-layer adds to the stream of the chosen token."""
    measured = o.measured
    title = say("What each sub-layer adds to the stream of {token}", token=o.whose)
    numbers = (values[:, o.chosen] for values in (measured.before, measured.added, measured.aligned))
    spec = stream_added_spec(depths(measured.sublayers), *numbers, title=title, colour=o.side)
    alt = say(
        "Size of the stream of {token}, and size of what each sub-layer of the {stack} adds to it.",
        token=o.whose,
        stack=STACK_NAMES[o.stack],
    )
    return Plot(spec=spec, alt=alt)


@STREAM.picture("stream_norm", say("What a norm does to each token"))
def norm(o: OpenStream) -> Plot | None:
    """Mean and deviation of each token's vector before and after a norm."""
    if not o.norms:
        return None
    found = o.normed
    n, (pale, full) = len(o.pieces), shades(o.side)
    earlier = {"marker": {"color": pale, "symbol": "diamond", "size": 9}, "name": say("before", about="before a norm")}
    later = {"marker": {"color": full, "symbol": "circle", "size": 9}, "name": say("after", about="after a norm")}
    unnamed, fixed = {"showlegend": False}, {"nticks": 5, "fixedrange": True}
    scales = [
        Scale(say("Mean"), fixed | {"domain": [0.56, 1], "zeroline": True, "zerolinecolor": theme.GUIDE_COLOR}),
        Scale(say("Deviation"), fixed | {"domain": [0, 0.44], "rangemode": "tozero"}),
    ]
    series = [
        Series(name, values, look, "markers", "%{y:.4f}", clicks=range(n), scale=scale)
        for name, values, look, scale in (
            (say("mean before"), found.mean_before, earlier, 0),
            (say("mean after"), found.mean_after, later, 0),
            (say("deviation before"), found.deviation_before, earlier | unnamed, 1),
            (say("deviation after"), found.deviation_after, later | unnamed, 1),
        )
    ]
    looked_at = frame((o.chosen - 0.5, o.chosen + 0.5), (0, 1), width=1.5, dash="dot", yref="paper")
    title = capitalised(norm_name(o.norm, pre=o.pre))
    drawn = lines(title, Axis(AXES[o.side], o.pieces), scales, series, top=92, shapes=[looked_at])
    alt = say("Mean and standard deviation of each token's vector before and after {norm}.",
              norm=norm_name(o.norm, pre=o.pre))  # fmt: skip
    kind = o.run.checkpoint.config.norm_kind
    standardised, scaled = NORM_FORMULAS[kind]
    means = say("Mean μ and standard deviation σ of each token's d numbers, before and after the norm y = {scaled} "
                "with x̂ = {standardised}.", scaled=scaled, standardised=standardised)  # fmt: skip
    how_to_read = joined(" ", [means, WITHOUT_GAMMA[kind]])
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=how_to_read, clicked=place_below(len(o.pieces)))


@STREAM.picture("stream_strip", say("A token's vector before and after a norm"))
def strip(o: OpenStream) -> Plot | None:
    """The vector of the chosen token before a norm, standardised, and after."""
    if not o.norms:
        return None
    found = o.normed
    rows = {
        say("before", about="before a norm"): found.before,
        say("standardised"): found.standardised,
        say("after", about="after a norm"): found.after,
    }
    drawn = heat(
        say("{token}: its vector before and after the norm", token=o.whose),
        Axis(say("Vector"), list(rows), counted=False),
        Axis(DIMENSION_AXIS, range(found.after.shape[1])),
        Numbers(say("value"), np.stack([vectors[o.chosen] for vectors in rows.values()]), ".4f"),
        signed=True,
        gaps=(0, 3),
        height=150 + 38 * len(rows),
    )
    norm = norm_name(o.norm, pre=o.pre)
    alt = say(
        "The vector of {token} before {norm}, then standardised, then after the norm; one column per dimension.",
        token=o.whose,
        norm=norm,
    )
    standardised, scaled = NORM_FORMULAS[o.run.checkpoint.config.norm_kind]
    how_to_read = say("Each row is the chosen token's vector, each column a dimension. From top to bottom: the norm's "
                      "input x; x̂ = {standardised}; and y = {scaled}, which the model uses next.",
                      standardised=standardised, scaled=scaled)  # fmt: skip
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=how_to_read)


def norm_name(place: StreamPlace, *, pre: bool) -> str:
    """A norm in a few words, for a sentence; `pre` if it comes before its sub-layer."""
    if place.layer is None:
        return place.name
    return say("the norm before {part}", part=place.name) if pre else say("the norm after {part}", part=place.name)
