"""Training: cleaning and splitting text, learning a vocabulary and a model, scoring it."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="training",
    modules={"transformer.training": "glassformer.extensions.training.library"},
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
        Command(
            30, "task", "write the files of a made-up task", "glassformer.extensions.training.commands.prepare:add_task"
        ),
        Command(
            70,
            "evaluate",
            "score a checkpoint: BLEU and chrF on sentence pairs, alignment error rate on gold links",
            "glassformer.extensions.training.commands.evaluate:add",
        ),
    ),
)
