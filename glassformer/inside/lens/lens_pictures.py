"""The pictures of the logit lens: what the decoder would write if it stopped at an earlier depth."""

from dataclasses import dataclass
from typing import Final

from glassformer.charts.lens import Depth, lens_curves_spec, lens_map_spec, lens_table_spec
from glassformer.inside import Depths, InsideLook, LensColour
from glassformer.inside.token_selection import INSIDE
from glassformer.runs.picture import Captions, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.runs.visible_trace import is_yours
from glassformer.state.click import column_below
from transformer.analysis.logit_lens import Lens, logit_lens, paths
from transformer.i18n import joined, say
from transformer.i18n.sentence import hundredths
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Sampling

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
    alt = say("The {n} most probable pieces at each of {n_depths} depths at step {step}; the piece in the output is "
              "{piece}.", n=n, n_depths=n_depths, step=step + 1, piece=trace.tgt_pieces[step])  # fmt: skip
    return Plot(spec=spec, alt=alt, fit=True, said=Captions(below=path_in_words(run, lens)))


@LENS.picture("lens_curves", say("How a step's piece rose to the top"))
def curves(o: OpenLens) -> Plot | None:
    """How the piece of the current step came to the top."""
    lens, step = o.lens, o.run.view.step
    if o.run.visible.covered or not o.run.trace.n_steps:
        return None
    piece = o.run.trace.tgt_pieces[step]
    spec = lens_curves_spec(
        depths_of(lens),
        probability=lens.prob[:, step],
        rank=lens.rank[:, step],
        entropy=lens.entropy[:, step],
        divergence=lens.divergence[:, step],
        title=say("How “{piece}” rose to the top", piece=piece),
    )
    alt = say("Probability and rank of {piece} by depth, and entropy and divergence of each depth's distribution.",
              piece=piece)  # fmt: skip
    return Plot(spec=spec, alt=alt, fit=True)


def path_in_words(run: ViewedRun, lens: Lens) -> str:
    """When the piece of the current step was decided."""
    step, piece = run.view.step, run.trace.tgt_pieces[run.view.step]
    names, found = [depth.name for depth in depths_of(lens)], paths(lens.rank)
    first, stays = int(found.first[step]), int(found.stays[step])
    if stays < 0:
        said = [say("Step {step}: “{piece}” has rank {rank:,} after the last layer.", step=step + 1,
                    piece=piece, rank=int(lens.rank[-1, step])), _why(run)]  # fmt: skip
        said += [say("This piece first reached the top after {depth}.", depth=names[first])] if first >= 0 else []
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
        return say("This piece is in the output because you forced it.")
    if isinstance(run.trace.query.decoding, Sampling):
        return say("This piece is in the output because it was drawn at random.")
    if isinstance(run.trace.query.decoding, Beam):
        return say("This piece is in the output because beam search scores whole outputs, not single pieces.")
    return say("This piece is not the model's first choice.")


@LENS.picture("lens_map", say("The output's pieces by depth and step"))
def lens_map(o: OpenLens) -> Plot | None:
    """All steps that may be seen; a click means a step."""
    n_steps, first_row, step = o.n_steps, o.run.trace.first_row, o.run.view.step
    if not n_steps:
        return None
    depths, found, lens = depths_of(o.lens), paths(o.lens.rank), o.lens
    measure = COLOUR_NAMES[o.run.view.of(InsideLook).lens_colour]
    spec = lens_map_spec(
        depths,
        o.run.visible.row_labels()[first_row : first_row + n_steps],
        probability=lens.prob[:, :n_steps],
        rank=lens.rank[:, :n_steps],
        first=found.first[:n_steps],
        stays=found.stays[:n_steps],
        step=step if step < n_steps else None,
        title=say("{measure} of each step's output piece, by depth", measure=measure),
        measure=o.run.view.of(InsideLook).lens_colour,
    )
    alt = say("{measure} of each step's output piece at each of {n} depths.", measure=measure,
              n=len(depths))  # fmt: skip
    return Plot(spec=spec, alt=alt, clicked=column_below(n_steps))
