"""Importers for third-party models, with a report of what was understood."""
