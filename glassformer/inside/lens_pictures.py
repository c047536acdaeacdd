"""Pictures of the logit lens by depth: top tokens, the output token's probability and rank, entropy, KL."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.candidates import PROBABILITY
from glassformer.charts.grammar import layer, stroke
from glassformer.charts.heatmap import NUMBER
from glassformer.charts.hover import bold, hover, with_number
from glassformer.charts.marks import Axis, Numbers, Scale, Series, heat, lines
from glassformer.charts.stream import DEPTH_AXIS, RANK, Depth, after, lens_table_spec
from glassformer.charts.theme import Spec, colour_bar
from glassformer.inside import Depths, InsideLook, LensColour
from glassformer.inside.token_selection import INSIDE
from glassformer.runs.picture import Captions, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun, is_yours
from glassformer.state.view import column_below
from transformer.analysis.logit_lens import Lens, logit_lens, paths
from transformer.i18n import joined, say
from transformer.i18n.sentence import hundredths
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Sampling

HOW_TO_READ_CURVES = say(
    "Top: the output token's probability and its rank among all candidates (1 is the best). Bottom: the entropy −Σ "
    "p log₂ p at each depth and the difference from the last depth, KL = Σ p_last log₂(p_last / p)."
)
HOW_TO_READ_MAP = say(
    "Each column is one step. Each cell shows the probability or rank of that step's output token at that depth. A "
    "filled dot marks the depth from which the token stays the top candidate; a ring marks the depth where it "
    "first came out on top, if it fell back later. Click a cell to go to its step."
)
DEPTH_NAMES: Final[dict[Depths, str]] = {"layer": say("Each layer"), "sublayer": say("Each sub-layer")}
COLOUR_NAMES: Final[dict[LensColour, str]] = {
    "probability": say("Probability"),
    "rank": say("Rank", about="in an order, 1 is the top"),
}


@dataclass(frozen=True)
class OpenLens(RunScene):
    """The lens of a run, by layers or by sub-layers."""

    lens: Lens

    @property
    def n_steps(self) -> int:
        """Steps whose lens may be seen."""
        return self.run.visible.n_steps - int(self.run.visible.covered)


def open_lens(run: ViewedRun) -> OpenLens | None:
    """The lens of a run, made once; None where there is no output layer to read the stream with.

    Raises QueryError if the model computes what is not finite.
    """
    if not anatomy(run.checkpoint.config).writes:
        return None
    trace = run.trace
    found = run.work.compute(
        ("logit_lens", trace.query, trace.tgt_ids, trace.src_ids, trace.read_ids),
        lambda: logit_lens(run.checkpoint, trace),
        nbytes=lambda lens: lens.nbytes,
    )
    return OpenLens(run, found.by_layer() if run.view.of(InsideLook).depths == "layer" else found)


LENS = INSIDE.part("lens", open_lens)


def depths_of(lens: Lens) -> list[Depth]:
    """What the places of a lens are called; where it reads whole layers, only the layer is named."""
    whole = all(place.ends_layer for place in lens.places)
    return [
        Depth(*[say("layer {layer}", layer=place.layer + 1)] * 2)
        if whole and place.layer is not None
        else Depth(place.short, place.name)
        for place in lens.places
    ]


@LENS.picture("lens_table", say("What each depth would write"))
def table(o: OpenLens) -> Plot | None:
    """What each depth would write at the current step."""
    run, lens, trace, step = o.run, o.lens, o.run.trace, o.run.view.step
    if run.visible.covered or not trace.n_steps:
        return None
    ids = lens.top_ids[:, step]  # [depth, place]
    n_depths, n = ids.shape
    reads = trace.row_label(trace.row_of(step)).reads
    spec = lens_table_spec(
        depths_of(lens),
        [[trace.vocabulary[i] for i in row] for row in ids.tolist()],
        lens.top_probs[:, step],
        chosen=ids == trace.tgt_ids[step],
        title=say("Step {step}: what each depth would write after {piece}", step=step + 1, piece=reads),
    )
    alt = say("The {n} most probable tokens at each of {n_depths} depths at step {step}; the token in the output is "
              "{piece}.", n=n, n_depths=n_depths, step=step + 1, piece=trace.tgt_tokens[step])  # fmt: skip
    return Plot(spec=spec, alt=alt, fit=True, said=Captions(below=path_in_words(run, lens)))


@LENS.picture("lens_curves", say("How a step's token rose to the top"))
def curves(o: OpenLens) -> Plot | None:
    """How the piece of the current step came to the top."""
    lens, step = o.lens, o.run.view.step
    if o.run.visible.covered or not o.run.trace.n_steps:
        return None
    piece = o.run.trace.tgt_tokens[step]
    depths = depths_of(lens)
    names = [say("after {depth}", depth=depth.name) for depth in depths]
    across = Axis(DEPTH_AXIS, names, counted=False, short=[depth.short for depth in depths])
    rank, entropy, divergence = lens.rank[:, step], lens.entropy[:, step], lens.divergence[:, step]
    powers = range(int(np.ceil(np.log10(max(10, rank.max())))) + 1)
    ranks = {"type": "log", "range": [powers[-1] + 0.1, -0.2], "tickvals": [10**power for power in powers]}
    fixed = {"fixedrange": True}
    scales = [
        Scale(say("Probability"), fixed | {"domain": [0.7, 1], "range": [-0.05, 1.08], "tickvals": [0, 0.5, 1]}),
        Scale(say("Rank"), fixed | {"domain": [0.38, 0.62], "tickformat": ",d"} | ranks),
        Scale(say("Bits"), fixed | {"domain": [0, 0.3], "nticks": 4, "rangemode": "tozero"}),
    ]
    written, own = stroke(theme.TARGET_COLOR, 2, size=7), stroke(theme.NEUTRAL_COLOR, 2, size=7)
    unnamed, moved = {"showlegend": False}, stroke(theme.GUIDE_COLOR, 2, "dot", size=7)
    series = [
        Series(PROBABILITY, lens.prob[:, step], written | unnamed),
        Series(RANK, rank, written | unnamed, number="%{y:,d}", scale=1),
        Series(say("entropy (bits)"), entropy, own | {"name": say("entropy")}, scale=2),
        Series(say("KL to the last depth (bits)"), divergence, moved | {"name": say("KL to the last depth")}, scale=2),
    ]
    drawn = lines(say("How “{piece}” rose to the top", piece=piece), across, scales, series, height=460)
    legend = {"orientation": "h", "x": 1, "xanchor": "right", "y": 0.3, "yanchor": "bottom"}
    layout = drawn["spec"]["layout"]
    layout |= {"showlegend": True, "legend": legend, "xaxis": layout["xaxis"] | fixed}
    alt = say("Probability and rank of {piece} by depth, and entropy and divergence of each depth's distribution.",
              piece=piece)  # fmt: skip
    return Plot(spec=drawn["spec"], alt=alt, how_to_read=HOW_TO_READ_CURVES, fit=True)


def path_in_words(run: ViewedRun, lens: Lens) -> str:
    """When the piece of the current step was decided."""
    step, piece = run.view.step, run.trace.tgt_tokens[run.view.step]
    names, found = [depth.name for depth in depths_of(lens)], paths(lens.rank)
    first, stays = int(found.first[step]), int(found.stays[step])
    if stays < 0:
        said = [say("Step {step}: “{piece}” has rank {rank:,} after the last layer.", step=step + 1,
                    piece=piece, rank=int(lens.rank[-1, step])), _why(run)]  # fmt: skip
        said += [say("This token first reached the top after {depth}.", depth=names[first])] if first >= 0 else []
        return joined(" ", said)
    if stays == 0:
        return say("Step {step}: “{piece}” is the top candidate at every depth, from the embedding on.",
                   step=step + 1, piece=piece)  # fmt: skip
    prob = hundredths(float(lens.prob[stays, step]))
    if first == stays:
        return say("Step {step}: “{piece}” becomes the top candidate after {depth}, with a probability of "
                   "{prob}, and stays on top.", step=step + 1, piece=piece, depth=names[stays],
                   prob=prob)  # fmt: skip
    return say("Step {step}: “{piece}” first reaches the top after {first}, then drops. After {depth}, it is on "
               "top again, with a probability of {prob}, and stays there.", step=step + 1, piece=piece,
               first=names[first], depth=names[stays], prob=prob)  # fmt: skip


def _why(run: ViewedRun) -> str:
    if is_yours(run.trace, run.view.step):
        return say("This token is in the output because you forced it.")
    if isinstance(run.trace.query.decoding, Sampling):
        return say("This token is in the output because it was drawn at random.")
    if isinstance(run.trace.query.decoding, Beam):
        return say("This token is in the output because beam search scores whole outputs, not single tokens.")
    return say("This token is not the model's first choice.")


@LENS.picture("lens_map", say("The output's tokens by depth and step"))
def lens_map(o: OpenLens) -> Plot | None:
    """All steps that may be seen; a click means a step."""
    n_steps, first_row, step = o.n_steps, o.run.trace.first_row, o.run.view.step
    if not n_steps:
        return None
    depths, colour = depths_of(o.lens), o.run.view.of(InsideLook).lens_colour
    steps = o.run.visible.row_labels()[first_row : first_row + n_steps]
    probability, rank = Numbers(PROBABILITY, o.lens.prob[:, :n_steps]), Numbers(RANK, o.lens.rank[:, :n_steps])
    says = [say("step {place}: {what}", place=place, what=bold(step)) for place, step in enumerate(steps, start=1)]
    drawn = heat(
        say("{measure} of each step's output token, by depth", measure=COLOUR_NAMES[colour]),
        Axis(DEPTH_AXIS, [depth.short for depth in depths], says=[after(bold(depth.name)) for depth in depths]),
        Axis(say("Reads → predicts"), steps, says=says),
        rank if colour == "rank" else probability,
        colour="target",
        marked_column=step,
        height=200 + 26 * len(depths),
    )
    layout, cells = drawn["spec"]["layout"], drawn["spec"]["data"][0]
    if colour == "rank":
        layout["meta"]["cells"]["floor"] = 1.0
        cells |= _ranks(rank.values) | {"text": [[f"{p:.4g}" for p in row] for row in probability.values.tolist()]}
        said = with_number(RANK, "%{customdata[2]:,d}"), with_number(PROBABILITY, "%{text}")
    else:
        cells["text"] = [[f"{place:,}" for place in row] for row in rank.values.tolist()]
        said = with_number(RANK, "%{text}"), with_number(PROBABILITY, f"%{{z:{NUMBER}}}")
    cells["hovertemplate"] = hover("%{customdata[0]}", "%{customdata[1]}", *said)
    found = paths(rank.values)
    drawn["spec"]["data"] += _dots(found.first, found.stays)
    return Plot(**drawn, how_to_read=HOW_TO_READ_MAP, clicked=column_below(n_steps))


def _ranks(rank: np.ndarray) -> Spec:
    """The first place is the strongest colour; the browser takes the logarithms (`theme.CELLS`)."""
    most = max(1, int(np.ceil(np.log10(np.max(rank)))))
    marks = list(range(most + 1)), [f"{10**decade:,}" for decade in range(most + 1)]
    shades = [[place / 4, shade] for place, (_, shade) in enumerate(reversed(theme.SCALES["target"]))]
    bar = colour_bar(say("{value}, logarithmic", value=RANK), marks=marks)
    return {"zmin": 0, "zmax": most, "colorscale": shades, "colorbar": bar}


def _dots(first: np.ndarray, stays: np.ndarray) -> list[Spec]:
    """Where a piece came out on top and was lost again, and from where it stays; they take no hover and no click."""
    pale = theme.SCALES["target"][0][1]
    lost, dot = np.flatnonzero((first >= 0) & (first != stays)), {"symbol": "circle", "size": 9}
    ring = dot | {"color": pale, "line": {"color": theme.MARK_COLOR, "width": 2}}
    disc = dot | {"color": theme.MARK_COLOR, "line": {"color": pale, "width": 1.5}}
    marks = [(lost, first, ring), (np.flatnonzero(stays >= 0), stays, disc)]
    return [
        layer("markers", places, depth[places], {"marker": marker}) for places, depth, marker in marks if places.size
    ]
