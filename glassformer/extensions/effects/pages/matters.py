"""Page "What matters": the effect on the output of taking parts of the model or the sentence away."""

from glassformer.extensions.effects import matters_panels
from glassformer.extensions.effects.attribution_pictures import MATTERS
from glassformer.frame.run_page import run_page

run_page(MATTERS, matters_panels.draw)
