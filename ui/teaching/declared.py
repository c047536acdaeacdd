"""All pictures of all pages: whoever wants them by their keys imports this, and so each `..._pictures.py` of a page.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ui.runs.picture import PAGES, PICTURES

__all__ = ["PAGES", "PICTURES"]

for _file in sorted(Path(__file__).resolve().parents[1].glob("*/*_pictures.py")):
    import_module(f"ui.{_file.parent.name}.{_file.stem}")
