"""Inside: the parts of the loaded model, and what the rest of the forward pass did with the sentence."""

from glassformer.frame.run_page import run_page
from glassformer.inside import inside_controls
from glassformer.inside.token_selection import INSIDE, deeper_stack

run_page(INSIDE, inside_controls.draw, kind=deeper_stack)
