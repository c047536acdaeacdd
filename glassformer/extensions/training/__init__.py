"""Training: training models, watching trainings, snapshots over training."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="training",
    needs=("what_if", "rooms", "doctor"),
    modules={"transformer.training": "glassformer.extensions.training.library"},
    charts={
        "dev_scores_spec": "glassformer.extensions.training.charts.training:dev_scores_spec",
        "growing_losses_spec": "glassformer.extensions.training.charts.growing:growing_losses_spec",
        "film": "glassformer.extensions.training.charts.film:film",
        "film_spec": "glassformer.extensions.training.charts.film:film_spec",
        "learning_rates_spec": "glassformer.extensions.training.charts.training:learning_rates_spec",
        "losses_spec": "glassformer.extensions.training.charts.training:losses_spec",
    },
    pages="glassformer.extensions.training.pages:PAGES",
    commands=(
        Command(
            10,
            "prepare",
            "clean and split public text into the files that train reads",
            "glassformer.extensions.training.commands.prepare:add",
        ),
        Command(
            20,
            "train",
            "learn a vocabulary and a model from files of sentence pairs",
            "glassformer.extensions.training.commands.train:add",
        ),
        Command(30, "task", "write the files of a made-up task", "glassformer.extensions.training.commands.task:add"),
        Command(
            70,
            "evaluate",
            "score a checkpoint: BLEU and chrF on sentence pairs, alignment error rate on gold links",
            "glassformer.extensions.training.commands.evaluate:add",
        ),
    ),
    sources="glassformer.extensions.training.source:SOURCE",
    parts="glassformer.extensions.training.film:PART",
    blocks="glassformer.extensions.training.blocks:BLOCKS",
    components={"moments": "components/moments/view.js"},
    server="glassformer.extensions.training.server_part:SERVER",
    looks="glassformer.extensions.training.training_look:TrainingLook",
)
