"""The page Training: learning curves, a sentence over training, trainings that visitors start and watch."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="training_page",
    needs=("training", "snapshots"),
    pages="glassformer.extensions.training_page.page:PAGES",
    sources="glassformer.extensions.training_page.session_trainings:SOURCE",
    blocks="glassformer.extensions.training_page.session_trainings:BLOCKS",
    server="glassformer.extensions.training_page.session_trainings:SERVER",
    looks="glassformer.extensions.training_page.training_pictures:TrainingLook",
)
