"""Training: how the chosen checkpoint was trained, its snapshots, and what a sentence came to over training."""

from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.state import session
from ui.training import training_panels, watch_panels
from ui.training.training_pictures import TRAINING

session.begin(TRAINING.path)
session.arrive(watch_panels.ARRIVED)
checkpoint = sidebar(TRAINING.title, shows_run=True, folds=True)
of_a_sentence(TRAINING.title, checkpoint, training_panels.draw)
