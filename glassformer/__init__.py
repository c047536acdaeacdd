"""Glassformer: the app and the command, and the extensions of both."""
