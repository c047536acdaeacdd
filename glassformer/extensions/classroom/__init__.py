"""Classroom: lessons, rooms with votes, what is covered, sheets to print."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="classroom",
    needs=("what_if", "drafts", "importers", "training", "doctor"),
    pages="glassformer.extensions.classroom.pages:PAGES",
    address="glassformer.extensions.classroom.address:ADDRESS",
    hides="glassformer.extensions.classroom.hiding:HIDER",
    blocks="glassformer.extensions.classroom.blocks:BLOCKS",
    server="glassformer.extensions.classroom.server_part:SERVER",
)
