"""Saving: runs as HTML files, as pictures, and in notebooks."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="saving",
    names={"compare": "glassformer.extensions.saving.picture_command:compare"},
    blocks="glassformer.extensions.saving.saved_run:BLOCKS",
    shows="glassformer.extensions.saving.picture_command:show",
    commands=(
        Command(
            60,
            "picture",
            "draw a picture of a run: SVG or PNG for print, or HTML that steps",
            "glassformer.extensions.saving.picture_command:add",
        ),
    ),
)
