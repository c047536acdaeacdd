"""Lessons: their files, the questions that a run answers, the path through them."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="lessons",
    needs=("what_if", "effects"),
    modules={"transformer.lessons": "glassformer.extensions.lessons.library"},
)
