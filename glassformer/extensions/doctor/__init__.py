"""Doctor: tests that find what is wrong with a checkpoint, and its parameters in numbers."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="doctor",
    needs=("weight_files", "importers", "what_if"),
    modules={
        "transformer.analysis.differences": "glassformer.extensions.doctor.analysis.differences",
        "transformer.analysis.parameters": "glassformer.extensions.doctor.analysis.parameters",
        "transformer.analysis.spectra": "glassformer.extensions.doctor.analysis.spectra",
        "transformer.doctor": "glassformer.extensions.doctor.library",
    },
    names={"examine": "glassformer.extensions.doctor.library.examination:examine"},
    pages="glassformer.extensions.doctor.pages:PAGES",
    commands=(
        Command(
            100,
            "doctor",
            "examine a checkpoint: masks, cache, settings, heads, tokenizers; says what is wrong, and why",
            "glassformer.extensions.doctor.command:add",
        ),
    ),
    charts={
        name: f"glassformer.extensions.doctor.charts.parameters:{name}"
        for name in ("number_spread_spec", "row_lengths_spec", "singular_values_spec")
    },
    looks="glassformer.extensions.doctor.doctor_look:DoctorLook",
)
