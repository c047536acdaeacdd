"""Importers: models of other programs, opened from folders, uploads and archives."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="importers",
    names={
        "Given": "transformer.importers.handed_pieces:Given",
        "QuestionsError": "transformer.importers.opening:QuestionsError",
        "preview": "transformer.importers.opening:preview",
    },
    pages="glassformer.extensions.importers.pages:PAGES",
    commands=(
        Command(
            90,
            "import",
            "make a checkpoint folder of a model that another program saved",
            "transformer.commands.import_model:add",
        ),
    ),
    formats="glassformer.extensions.importers.format:FORMAT",
    sources="glassformer.extensions.importers.source:SOURCE",
    server="glassformer.extensions.importers.server_part:SERVER",
)
