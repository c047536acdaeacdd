"""What matters: what the output owes to the parts of the model and of the sentence, measured by taking them away."""

from ui.frame.run_page import run_page
from ui.matters import matters_panels
from ui.matters.head_effect_pictures import MATTERS

run_page(MATTERS, matters_panels.draw)
