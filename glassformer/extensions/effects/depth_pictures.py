"""Part "Gradients" of What matters: the gradient of ln p by layer, with and without residual connections, norms.

Only the run is changed, not the training: a model trained without residual connections would have other weights.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import stroke
from glassformer.charts.marks import Axis, Scale, Series, lines
from glassformer.extensions.effects.attribution.gradients import by_depth
from glassformer.extensions.effects.attribution.target import AttributionTarget
from glassformer.extensions.effects.attribution_pictures import MATTERS, has_step, measured_of
from glassformer.extensions.what_if.interventions.layer_changes import NoNorm, NoResidual, SwapNorms
from glassformer.runs.map_axes import STACK_NAMES
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from transformer.i18n import joined, say
from transformer.model.anatomy import anatomy
from transformer.model.taps import both
from transformer.runs.apply_interventions import tap_for

CHANGES: Final[dict[str, tuple[type[NoResidual | NoNorm | SwapNorms], ...]]] = {
    say("unchanged"): (),
    say("without residual connections"): (NoResidual,),
    say("without norms"): (NoNorm,),
    say("without both"): (NoResidual, NoNorm),
    say("pre-norm and post-norm swapped"): (SwapNorms,),
}


COLOURS: Final = (theme.MARK_COLOR, theme.TARGET_COLOR, theme.SOURCE_COLOR, theme.NEUTRAL_COLOR, theme.GUIDE_COLOR)


@dataclass(frozen=True)
class Depths(RunScene):
    """Gradients by depth."""

    places: dict[str, str]  # the site of each layer's input, by what it is called
    norms: np.ndarray  # of each change at each place; NaN where a model cannot be changed so [change, place]


def depths(run: ViewedRun) -> Depths | None:
    """The gradients of the step's log-probability; None where there is no step whose token may be seen."""
    if not has_step(run):
        return None
    checkpoint, parts = run.checkpoint, anatomy(run.checkpoint.config)
    places: dict[str, str] = {
        say("{stack} {layer}", stack=STACK_NAMES[one.name], layer=layer + 1): f"{one.name}.{layer - 1}.output"
        if layer
        else f"{one.name}.embedding.output"
        for one in parts.stacks
        for layer in range(one.n_layers)
    }

    def work(asked: AttributionTarget) -> np.ndarray:
        found = np.full((len(CHANGES), len(places)), np.nan)
        for row, changes in enumerate(CHANGES.values()):
            if not any(change.unfit(checkpoint.config) for change in changes):
                changed = both(asked.tap, tap_for([change() for change in changes], checkpoint))
                found[row] = by_depth(replace(asked, tap=changed), list(places.values()))
        return found

    return Depths(run, places, measured_of(run, "depths", work))


DEPTHS = MATTERS.part("depth", depths, asks=True)


@DEPTHS.picture("matters_depths", say("Gradients by depth"), follows="server")
def gradients(o: Depths) -> Plot:
    """A line for each change."""
    token, post = o.run.trace.tgt_tokens[o.run.view.step], o.run.checkpoint.config.norm == "post"
    series = [
        Series(name, np.where(norms > 0, norms, np.nan), stroke(colour, 2, size=7))
        for name, norms, colour in zip(CHANGES, o.norms, COLOURS, strict=True)
        if np.isfinite(norms).any()
    ]
    title = say("Gradient of ln p({token}) by layer", token=token)
    up = Scale(say("Gradient norm, nats"), {"type": "log", "exponentformat": "power"})
    drawn = lines(title, Axis(say("Input of layer"), list(o.places)), up, series, height=460, top=140)
    read = say(
        "Each point is ‖∂ ln p / ∂x‖, where x is all tokens' vectors at a layer's input. In backpropagation, "
        "the gradient of the loss flows from right to left. The trained weights stay the same."
    )
    own = (
        say("This model is post-norm: a norm on every path back rescales the gradient.")
        if post
        else say("This model is pre-norm: the residual connections are a path back without norms.")
    )
    return Plot(spec=drawn["spec"], alt=drawn["alt"], how_to_read=joined(" ", [read, own]), fit=True)
