"""Step through decoding: a sentence becomes another one, piece by piece."""

from glassformer.frame.run_page import run_page
from glassformer.step import step_panels
from glassformer.step.step_pictures import STEP

run_page(STEP, step_panels.draw, chooses_head=True)
