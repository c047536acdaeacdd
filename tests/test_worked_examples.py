"""The worked examples of `docs/contributing/` do what they say, in a copy of the app to which they are added."""

import re

import pytest

from tests.afresh import run_apart
from tests.deleted import without
from tests.source_code import ROOT

LISTED = 'PageEntry(22, EXPLORE / "masks.py", say("Masks")),'
PROGRAM = """
import sys
sys.path.insert(0, "")
from streamlit.testing.v1 import AppTest
from transformer.__main__ import main
from transformer.extensions import provided
for script in sys.argv[1:]:
    page = AppTest.from_file(script, default_timeout=60)
    page.query_params.update({"model": "reverse", "src": "glass"})
    page.run()
    assert not page.exception, page.exception
assert "Pieces" in [page.title for pages in provided("pages") for page in pages]
main(["pieces", "checkpoints/reverse", "ab"])
"""


def blocks(page):
    return re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "contributing" / page).read_text("utf-8"), flags=re.DOTALL)


@pytest.fixture
def tree(tmp_path):
    """A copy of the app with both examples."""
    root = without((), tmp_path)
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
    file.unlink()  # a link to ours
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_pages_of_both_are_drawn_and_the_extension_has_a_place_in_the_menu_and_a_command(tree):
    done = run_apart(PROGRAM, "pages/explore/agreement.py", "glassformer/extensions/pieces/page.py", folder=tree)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["a\t1", "b\t1"]


def test_an_example_is_as_long_as_the_design_page_says():
    named = {name: block.count("\n") - 1 for page in ("page.md", "extension.md") for block in blocks(page)
             if (name := block.partition("\n")[0]).startswith("# ")}  # fmt: skip
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    picture, script = (named[f"# {name}"] for name in (
        "glassformer/agreement/agreement_pictures.py", "pages/explore/agreement.py"))  # fmt: skip
    extension = sum(length for name, length in named.items() if "/pieces/" in name)
    assert f"two files of {picture} and {script} lines" in " ".join(design.split())
    assert f"three files, {extension} lines" in " ".join(design.split())
