"""Classroom: lessons, rooms with votes, what is covered, sheets to print."""

from transformer.extensions import Extension

EXTENSION = Extension(name="classroom", pages="glassformer.extensions.classroom.pages:PAGES")
