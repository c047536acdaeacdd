"""The worked examples of `docs/contributing/` do what they say, in a copy of the app to which they are added."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.source_code import ROOT

FOLDERS, FILES = ("glassformer", "transformer", "pages", "static", ".streamlit"), ("app.py", "main.py")
LISTED = 'PageEntry(22, EXPLORE / "masks.py", say("Masks"), INSIDE),'
DRAWN = """
import sys
from streamlit.testing.v1 import AppTest
page = AppTest.from_file(sys.argv[1], default_timeout=60)
page.query_params.update({"model": "reverse", "src": "glass"})
page.run()
assert not page.exception, page.exception
"""
MENU = """
from transformer.extensions import provided
print(*(page.title for pages in provided("pages") for page in pages), sep="|")
"""


def blocks(page):
    return re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "contributing" / page).read_text("utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the app with both examples."""
    root = tmp_path_factory.mktemp("examples")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in FILES:
        shutil.copy(ROOT / file, root / file)
    (root / "checkpoints").symlink_to(ROOT / "checkpoints", target_is_directory=True)
    for block in [*blocks("page.md"), *blocks("extension.md")]:
        if named := re.match(r"# (\S+\.py)\n", block):
            (root / named[1]).parent.mkdir(exist_ok=True)
            (root / named[1]).write_text(block.removeprefix(named[0]), encoding="utf-8")
    (root / "glassformer" / "agreement" / "__init__.py").write_text('"""The page Agreement."""\n', encoding="utf-8")
    (line,) = [block for block in blocks("page.md") if block.startswith("PageEntry")]
    put(root / "main.py", LISTED, f"{LISTED}\n    {line.rstrip()},\n")
    put(root / "glassformer" / "extensions" / "__init__.py", '"replicas",', '"replicas",\n    "pieces",')
    return root


def put(file, old, new):
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def python(tree, *words):
    """What Python prints there."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=tree, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", ["pages/explore/agreement.py", "glassformer/extensions/pieces/page.py"])
def test_a_page_of_an_example_is_drawn(tree, script):
    python(tree, "-c", DRAWN, str(tree / script))


def test_the_extension_has_a_page_in_the_menu_and_a_command(tree):
    assert "Pieces" in python(tree, "-c", MENU).strip().split("|")
    listed = python(tree, "-m", "transformer", "pieces", "checkpoints/reverse", "ab")
    assert listed.splitlines()[:2] == ["a\t1", "b\t1"]


def test_an_example_is_as_long_as_the_design_page_says():
    named = {name: block.count("\n") - 1 for page in ("page.md", "extension.md") for block in blocks(page)
             if (name := block.partition("\n")[0]).startswith("# ")}  # fmt: skip
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    picture, script = (named[f"# {name}"] for name in (
        "glassformer/agreement/agreement_pictures.py", "pages/explore/agreement.py"))  # fmt: skip
    extension = sum(length for name, length in named.items() if "/pieces/" in name)
    assert f"two files of {picture} and {script} lines" in " ".join(design.split())
    assert f"three files, {extension} lines" in " ".join(design.split())
