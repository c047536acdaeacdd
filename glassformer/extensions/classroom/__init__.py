"""Classroom: lessons, rooms with votes, what is covered, sheets to print."""

from transformer.extensions import Extension

EXTENSION = Extension(name="classroom")
