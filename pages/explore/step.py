"""Step through decoding: a sentence becomes another one, piece by piece."""

from ui.frame.run_page import run_page
from ui.step import step_panels
from ui.step.step_pictures import STEP

run_page(STEP, step_panels.draw, chooses_head=True)
