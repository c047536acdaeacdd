"""Panel of the part "Why this token": the graph of a logit, an edge to cut and what that does."""

from typing import Any, Final

from glassformer.extensions.effects import path_pictures as pictures
from glassformer.extensions.effects.matters_panels import choose_rival, draw_part
from glassformer.extensions.effects.path_pictures import Cutting, open_paths
from glassformer.runs.error_boundary import attempt
from glassformer.runs.hidden_pieces import gap_of, hidden_place
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from transformer.i18n import say
from transformer.model.anatomy import anatomy

SHARES: Final = {"50": say("50 % of the paths"), "80": say("80 % of the paths"), "90": say("90 % of the paths")}
MOST_LISTED: Final = 40
REVEAL: Final = "matters_paths_reveal"


def draw(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""
    config = run.checkpoint.config
    why_not = say("This encoder-only model generates no output and fills no gaps, so it has no logits to explain.")
    there = anatomy(config).writes or gap_of(run) is not None
    draw_part(run, row, _choices, _graph, why_not=why_not, key=REVEAL, there=there)


def _choices(run: OpenRun) -> None:
    if anatomy(run.checkpoint.config).writes:
        choose_rival(run)
    else:
        kept = controls.field(run.slot, "hidden")
        pieces = controls.labelled(run.trace.src_tokens)
        controls.menu(kept, say("Hidden token"), pieces, otherwise=hidden_place(run), bare=True, width=200)
    controls.choose(controls.field(run.slot, "explained"), say("Edges shown"), SHARES, bare=True)


def _graph(run: OpenRun) -> None:
    scene = attempt(lambda: open_paths(run))
    if scene is None:
        return
    show(pictures.graph, scene)
    options: dict[Cutting, str] = {(): say("No edge is cut")}
    listed = [edge for edge in scene.edges.tolist() if scene.graph.source[edge]][:MOST_LISTED]  # none from the biases
    listed += [] if scene.chosen is None else [scene.chosen]
    options |= {scene.cutting(edge): scene.in_words(edge) for edge in listed}
    controls.menu(controls.field(run.slot, "cut"), say("Cut an edge"), options)
    if said := attempt(lambda: pictures.effect(scene)):
        st.markdown(drawing.plain(said))
    attempt(lambda: show(pictures.score, scene))
    drawing.explain(drawing.plain(pictures.WHAT_IT_IS))
