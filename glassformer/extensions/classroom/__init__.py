"""Classroom: lessons, rooms with votes, what is covered, sheets to print."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="classroom",
    needs=("what_if", "drafts", "importers", "training", "doctor"),
    server="glassformer.extensions.classroom.server_part:SERVER",
)
