"""Parameters: every learned tensor of a checkpoint in numbers, a part of the page Doctor."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="parameters",
    needs=("doctor",),
    modules={"transformer.analysis.differences": "glassformer.extensions.parameters.differences"},
    parts="glassformer.extensions.parameters.parameters_part:PART",
    looks="glassformer.extensions.parameters.parameters_part:ParametersLook",
)
