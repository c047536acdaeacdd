"""Importers: models of other programs, opened from folders, uploads and archives."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="importers",
    needs=("tokenizers", "weight_files", "wirings"),
    modules={"transformer.importers": "glassformer.extensions.importers.library"},
    names={
        "Given": "glassformer.extensions.importers.library.import_inputs:ImportInputs",
        "QuestionsError": "glassformer.extensions.importers.library.opening:QuestionsError",
        "preview": "glassformer.extensions.importers.library.opening:preview",
    },
    pages="glassformer.extensions.importers.pages:PAGES",
    commands=(
        Command(
            90,
            "import",
            "make a checkpoint folder of a model that another program saved",
            "glassformer.extensions.importers.import_command:add",
        ),
    ),
    formats="glassformer.extensions.importers.library.opening:FORMAT",
    sources="glassformer.extensions.importers.third_party_models:SOURCE",
    server="glassformer.extensions.importers.third_party_models:SERVER",
)
