"""Inside: the parts of the loaded model, and what the rest of the forward pass did with the sentence."""

from glassformer.frame.run_page import run_page
from glassformer.inside import inside_panels
from glassformer.inside.token_selection import INSIDE, deeper_stack

run_page(INSIDE, inside_panels.draw, kind=deeper_stack)
