"""A class votes on what a training that goes on does next."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="training_votes", needs=("rooms", "training_page"), blocks="glassformer.extensions.training_votes.votes:BLOCKS"
)
