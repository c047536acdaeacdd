"""All pictures of all pages: imports every `..._pictures.py`, which registers them."""

from glassformer.runs.picture import PAGES, PICTURES, declare_all

__all__ = ["PAGES", "PICTURES"]

declare_all()
