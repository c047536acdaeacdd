"""Doctor: tests that find what is wrong with a checkpoint."""

from transformer.extensions import Command, Extension

EXTENSION = Extension(
    name="doctor",
    needs=("weight_files", "importers", "live", "wirings"),
    modules={
        "transformer.doctor": "glassformer.extensions.doctor.library",
        "transformer.doctor.examination": "glassformer.extensions.doctor.library.report",
    },
    names={"examine": "glassformer.extensions.doctor.library.report:examine"},
    pages="glassformer.extensions.doctor.page:PAGES",
    commands=(
        Command(
            100,
            "doctor",
            "examine a checkpoint: masks, cache, settings, heads, tokenizers; says what is wrong, and why",
            "glassformer.extensions.doctor.command:add",
        ),
    ),
    examines="glassformer.extensions.doctor.examinations:EXAMINER",
    looks="glassformer.extensions.doctor.doctor_page:DoctorLook",
)
