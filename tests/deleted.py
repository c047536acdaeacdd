"""A copy of the product without some of its extensions: folders are deleted, and no file is edited."""

import shutil
from collections.abc import Collection
from pathlib import Path

from tests.source_code import ROOT

EXTENSIONS = tuple(sorted(path.parent.name for path in (ROOT / "glassformer" / "extensions").glob("*/__init__.py")))
PARTS = ("app.py", "main.py", "pages", "glassformer", "transformer", "tests", "tools", ".streamlit", "pyproject.toml")
BESIDE = ("checkpoints", "static", "docs", "README.md")  # linked: they are not changed
CACHES = shutil.ignore_patterns("__pycache__", "node_modules")


def without(names: Collection[str], folder: Path) -> Path:
    """Copy the tree to a folder, without these extensions and their tests."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=CACHES)
        else:
            shutil.copy(ROOT / part, folder / part)
    for part in BESIDE:
        (folder / part).symlink_to(ROOT / part)
    for name in names:
        shutil.rmtree(folder / "glassformer" / "extensions" / name)
        shutil.rmtree(folder / "tests" / "extensions" / name, ignore_errors=True)
    return folder
