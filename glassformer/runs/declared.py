"""All pictures of all pages: whoever wants them by their keys imports this, and so each `..._pictures.py` of a page."""

from glassformer.runs.picture import PAGES, PICTURES, declare_all

__all__ = ["PAGES", "PICTURES"]

declare_all()
