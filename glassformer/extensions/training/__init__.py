"""Training: cleaning and splitting text, learning a vocabulary and a model, scoring it."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="training",
    modules={
        "transformer.training": "glassformer.extensions.training.library",
        "transformer.training.evaluation": "glassformer.extensions.training.library.held_out_scores",
        "transformer.training.tasks": "glassformer.extensions.training.library.preparation",
    },
    commands=(
        Command(
            10,
            "prepare",
            "clean and split public text into the files that train reads",
            "glassformer.extensions.training.prepare_command:add",
        ),
        Command(
            20,
            "train",
            "learn a vocabulary and a model from files of sentence pairs",
            "glassformer.extensions.training.train_command:add",
        ),
        Command(
            30, "task", "write the files of a made-up task", "glassformer.extensions.training.prepare_command:add_task"
        ),
        Command(
            70,
            "evaluate",
            "score a checkpoint: BLEU and chrF on sentence pairs, alignment error rate on gold links",
            "glassformer.extensions.training.evaluate_command:add",
        ),
    ),
)
