"""Inside: the parts of the loaded model, and what the rest of the forward pass did with the sentence."""

from glassformer.frame.run_page import run_page
from glassformer.frame.sentence_stepper import sentence
from glassformer.inside import InsideLook, embeddings_panel, fast, ffn, inside_controls, lens, model_panel, stream
from glassformer.inside.looked_at import INSIDE, deeper_stack
from glassformer.runs.open_run import OpenRun
from glassformer.shared import cover

DRAW = {
    "model": model_panel.draw,
    "stream": stream.draw,
    "lens": lens.draw,
    "ffn": ffn.draw,
    "pieces": embeddings_panel.draw,
    "fast": fast.draw,
}


def draw(run: OpenRun) -> None:
    """Draw the sentence, the row of parts, and the chosen part."""
    sentence(run, compact=True, still=inside_controls.still(run))
    row = inside_controls.draw(run)
    cover.part(lambda: DRAW[run.view.of(InsideLook).inside_panel](run, row))


run_page(INSIDE, draw, kind=deeper_stack)
