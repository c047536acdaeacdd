"""Doctor: tests that find what is wrong with a checkpoint, and its parameters in numbers."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="doctor",
    names={"examine": "transformer.doctor.examination:examine"},
    pages="glassformer.extensions.doctor.pages:PAGES",
    commands=(
        Command(
            100,
            "doctor",
            "examine a checkpoint: masks, cache, settings, heads, tokenizers; says what is wrong, and why",
            "transformer.commands.doctor:add",
        ),
    ),
)
