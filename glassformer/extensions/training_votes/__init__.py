"""A class votes on what a training that goes on does next."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="training_votes",
    needs=("rooms", "training_page"),
    below={
        "glassformer.extensions.training_page.watch_pictures:Watched": (
            "glassformer.extensions.training_votes.votes:draw"
        )
    },
)
