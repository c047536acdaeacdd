"""Saving: runs as HTML files, as pictures, and in notebooks."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="saving",
    names={"compare": "glassformer.extensions.saving.run_commands:compare"},
    formats="glassformer.extensions.saving.recorded_checkpoint:FORMAT",
    sources="glassformer.extensions.saving.saved_run:SOURCE",
    blocks="glassformer.extensions.saving.saved_run:BLOCKS",
    shows="glassformer.extensions.saving.run_commands:show",
    commands=(
        Command(
            60,
            "picture",
            "draw a picture of a run: SVG, PDF or PNG for print, HTML that steps, DOT, LaTeX",
            "glassformer.extensions.saving.run_commands:add",
        ),
        Command(
            65,
            "verify",
            "run a saved run again on its model, and say what differs",
            "glassformer.extensions.saving.run_commands:add_verify",
        ),
    ),
)
