"""Lessons shown beside the pages: panel, navigation, list."""
