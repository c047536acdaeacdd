"""A copy of the product without some of its extensions: folders are deleted, and no file is edited.

Its files are links to ours: nobody may write into them.
"""

import os
import shutil

from tests.source_code import ROOT

EXTENSIONS = tuple(sorted(path.parent.name for path in (ROOT / "glassformer" / "extensions").glob("*/__init__.py")))
PARTS = ("app.py", "main.py", "pages", "glassformer", "transformer", "tools", ".streamlit", "pyproject.toml")
BESIDE = ("checkpoints", "static", "docs", "README.md")  # linked: they are not changed
BUILT = shutil.ignore_patterns("node_modules")


def link(source, target):
    """Link a file, or copy it to another disk with its time, by which Python knows what it has compiled."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def without(names, folder, *, tests=False):
    """Copy the tree to a folder, without these extensions; with the tests that are left, if they are asked for."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in (*PARTS, "tests", "benchmarks") if tests else PARTS:  # a test speaks to the app with their client
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=BUILT, copy_function=link)
        else:
            link(ROOT / part, folder / part)
    for part in BESIDE:
        (folder / part).symlink_to(ROOT / part)
    for name in names:
        shutil.rmtree(folder / "glassformer" / "extensions" / name)
        shutil.rmtree(folder / "tests" / "extensions" / name, ignore_errors=True)
    return folder
