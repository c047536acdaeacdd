"""The page What matters: the row of its parts, and the chosen one."""

from glassformer.extensions.effects.matters import MATTERS
from glassformer.frame.sentence_stepper import sentence
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import choose_part
from glassformer.shared import controls


def draw(run: OpenRun) -> None:
    """Draw the sentence and the chosen part, which adds its own controls to the row of parts."""
    sentence(run, compact=True)
    row = controls.bar(run.slot)
    with row:
        choose_part(MATTERS, run.slot)
    MATTERS.entry(run).draw(run, row)
