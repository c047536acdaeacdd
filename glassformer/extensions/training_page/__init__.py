"""The page Training: learning curves, a sentence over training, trainings that visitors start and watch."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="training_page",
    needs=("training", "snapshots"),
    charts={
        "dev_scores_spec": "glassformer.extensions.training_page.charts.training:dev_scores_spec",
        "growing_losses_spec": "glassformer.extensions.training_page.charts.growing:growing_losses_spec",
        "learning_rates_spec": "glassformer.extensions.training_page.charts.training:learning_rates_spec",
        "losses_spec": "glassformer.extensions.training_page.charts.training:losses_spec",
    },
    pages="glassformer.extensions.training_page.pages:PAGES",
    sources="glassformer.extensions.training_page.own_trainings:SOURCE",
    blocks="glassformer.extensions.training_page.own_trainings:BLOCKS",
    server="glassformer.extensions.training_page.own_trainings:SERVER",
    looks="glassformer.extensions.training_page.training_look:TrainingLook",
)
