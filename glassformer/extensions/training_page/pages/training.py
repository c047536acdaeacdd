"""Training: how the chosen checkpoint was trained, its snapshots, and what a sentence came to over training."""

from glassformer.extensions.training_page import training_panels
from glassformer.extensions.training_page.training_pictures import ARRIVED, TRAINING
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import of_a_sentence
from glassformer.state import session

session.begin(TRAINING.path)
session.arrive(ARRIVED)
checkpoint = sidebar(TRAINING.title)
of_a_sentence(TRAINING.title, checkpoint, training_panels.draw)
