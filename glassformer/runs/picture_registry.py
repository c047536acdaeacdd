"""All pictures of all pages: importing this imports each `..._pictures.py` of a page."""

from glassformer.runs.picture import PAGES, PICTURES, declare_all

__all__ = ["PAGES", "PICTURES"]

declare_all()
