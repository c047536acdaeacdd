"""Saving: runs as HTML files, as pictures, and in notebooks."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="saving",
    names={"compare": "transformer.runs.showing:compare"},
    commands=(
        Command(
            60,
            "picture",
            "draw a picture of a run: SVG or PNG for print, or HTML that steps",
            "transformer.commands.picture:add",
        ),
    ),
)
