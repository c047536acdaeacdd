"""Training: training models, watching trainings, snapshots over training."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="training",
    names={"Curve": "transformer.checkpoint.curve:Curve", "load_curve": "transformer.checkpoint.curve:load_curve"},
    pages="glassformer.extensions.training.pages:PAGES",
    commands=(
        Command(
            10,
            "prepare",
            "clean and split public text into the files that train reads",
            "transformer.commands.prepare:add",
        ),
        Command(
            20,
            "train",
            "learn a vocabulary and a model from files of sentence pairs",
            "transformer.commands.train:add",
        ),
        Command(30, "task", "write the files of a made-up task", "transformer.commands.task:add"),
        Command(
            70,
            "evaluate",
            "score a checkpoint: BLEU and chrF on sentence pairs, alignment error rate on gold links",
            "transformer.commands.evaluate:add",
        ),
    ),
    sources="glassformer.extensions.training.source:SOURCE",
    parts="ui.attention.film:PART",
    blocks="glassformer.extensions.training.blocks:BLOCKS",
    server="glassformer.extensions.training.server_part:SERVER",
)
