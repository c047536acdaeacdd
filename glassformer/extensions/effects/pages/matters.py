"""What matters: what the output owes to the parts of the model and of the sentence, measured by taking them away."""

from glassformer.extensions.effects.matters import MATTERS, matters_panels
from glassformer.frame.run_page import run_page

run_page(MATTERS, matters_panels.draw)
