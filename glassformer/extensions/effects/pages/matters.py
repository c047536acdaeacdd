"""Page "What matters": what the current step owes to each token, and its logit to each part of the decoder."""

from glassformer.extensions.effects import matters_panels
from glassformer.extensions.effects.attribution_pictures import MATTERS
from glassformer.frame.run_page import run_page

matters_panels.lead_on()
run_page(MATTERS, matters_panels.draw)
