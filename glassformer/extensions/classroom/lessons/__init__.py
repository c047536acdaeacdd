"""Lessons beside the pages: the panel, the way from step to step, the list."""
