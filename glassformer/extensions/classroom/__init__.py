"""Classroom: lessons with covered charts; for teachers, links, a plan of lessons, and handouts to print."""

from transformer.extensions import Extension

EXTENSION = Extension(
    name="classroom",
    needs=("lessons", "rooms"),
    pages="glassformer.extensions.classroom.page:PAGES",
    address="glassformer.extensions.classroom.blocks:ADDRESS",
    hides="glassformer.extensions.classroom.blocks:HIDER",
    components={"lesson_memory": "components/lessons/view.js"},
    blocks="glassformer.extensions.classroom.blocks:BLOCKS",
)
