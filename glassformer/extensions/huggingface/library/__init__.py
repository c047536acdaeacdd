"""Importers for Hugging Face transformers folders, by model family."""
