"""`tools.imports` tells what a page needs, what leads to an extension, and what goes in a circle."""

import pytest

from tools import imports
from tools.imports import arrows, circles, closure, files, folders, graph, main


@pytest.fixture
def tree(tmp_path):
    """A small product: a page, a kernel and an extension."""
    texts = {
        "pages/explore/masks.py": "from glassformer.masks import panels\n",
        "glassformer/__init__.py": "",
        "glassformer/masks/__init__.py": "",
        "glassformer/masks/page.py": "x = PartEntry('a', say('A'), 'glassformer.masks.panels:draw')\n",
        "glassformer/masks/panels.py": "def f():\n    from glassformer.state.view import View\n",
        "glassformer/state/__init__.py": "",
        "glassformer/state/view.py": "if TYPE_CHECKING:\n    import glassformer.masks.panels\nelse:\n    import os\n",
        "glassformer/extensions/__init__.py": "",
        "glassformer/extensions/doctor/__init__.py": "from ...state import view\n",
        "transformer/__init__.py": "x = 1\n" * 7,
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_a_page_needs_is_followed_but_for_types(tree):
    assert graph(files(tree))["glassformer.extensions.doctor"] == {"glassformer.state.view"}
    needed = closure("pages.explore.masks", graph(files(tree)))
    assert needed == {
        "pages.explore.masks", "glassformer", "glassformer.masks", "glassformer.masks.panels", "glassformer.state",
        "glassformer.state.view",
    }  # fmt: skip


def test_an_arrow_to_an_extension_is_found_and_one_from_it_is_none(tree):
    assert arrows(graph(files(tree))) == []
    (tree / "transformer/__init__.pyi").write_text("from glassformer.extensions.doctor import EXTENSION as EXTENSION\n")
    modules = files(tree)
    assert arrows(graph(modules)) == []
    assert arrows(graph(modules, files(tree, ".pyi"))) == [("transformer", "glassformer.extensions.doctor")]
    (tree / "glassformer/state/view.py").write_text("from glassformer.extensions import doctor\n")
    assert arrows(graph(files(tree))) == [("glassformer.state.view", "glassformer.extensions.doctor")]


def test_circles_of_modules_and_of_folders_are_found(tree):
    assert circles(graph(files(tree))) == []
    (tree / "glassformer/state/view.py").write_text("import glassformer.masks.other\n")
    (tree / "glassformer/masks/other.py").write_text("")
    imported = graph(files(tree))
    assert circles(imported) == []
    assert circles(folders(imported)) == [["glassformer.masks", "glassformer.state"]]
    (tree / "glassformer/masks/other.py").write_text("from glassformer.state import view\n")
    assert circles(graph(files(tree))) == [["glassformer.masks.other", "glassformer.state.view"]]


def test_a_repository_is_told_of(tree, monkeypatch, capsys):
    monkeypatch.setattr(imports, "files", lambda suffix=".py": files(tree, suffix))
    assert main(["pages.explore.masks"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "     4  glassformer.state.view" in told
    assert "      7 lines in   6 modules: pages.explore.masks" in told
    assert "      6 lines in   5 modules: glassformer.masks.panels" in told  # a part, which its entry names
