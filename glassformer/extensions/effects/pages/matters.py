"""Page "What matters": the effect on the output of taking parts of the model or the sentence away."""

from glassformer.extensions.effects.matters import MATTERS, matters_panels
from glassformer.frame.run_page import run_page

run_page(MATTERS, matters_panels.draw)
