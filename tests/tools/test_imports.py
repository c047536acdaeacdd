"""What `tools.imports` follows, and what it does not."""

import pytest

from tools.imports import arrows, circles, closure, files, folders, graph, main, parts


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
    needed = closure("pages.explore.masks", graph(files(tree)))
    assert needed == {
        "pages.explore.masks", "glassformer", "glassformer.masks", "glassformer.masks.panels", "glassformer.state",
        "glassformer.state.view",
    }  # fmt: skip


def test_a_part_is_named_by_its_entry(tree):
    assert parts(files(tree)) == {"glassformer.masks.panels"}


def test_an_arrow_to_an_extension_is_found_and_one_from_it_is_none(tree):
    assert arrows(graph(files(tree))) == []
    (tree / "glassformer/state/view.py").write_text("from glassformer.extensions import doctor\n")
    assert arrows(graph(files(tree))) == [("glassformer.state.view", "glassformer.extensions.doctor")]


def test_an_arrow_of_a_stub_is_found(tree):
    (tree / "transformer/__init__.pyi").write_text("from glassformer.extensions.doctor import EXTENSION as EXTENSION\n")
    modules = files(tree)
    assert arrows(graph(modules)) == []
    assert arrows(graph(modules, files(tree, ".pyi"))) == [("transformer", "glassformer.extensions.doctor")]


def test_circles_of_modules_and_of_folders_are_found(tree):
    assert circles(graph(files(tree))) == []
    (tree / "glassformer/state/view.py").write_text("import glassformer.masks.other\n")
    (tree / "glassformer/masks/other.py").write_text("")
    imported = graph(files(tree))
    assert circles(imported) == []
    assert circles(folders(imported)) == [["glassformer.masks", "glassformer.state"]]
    (tree / "glassformer/masks/other.py").write_text("from glassformer.state import view\n")
    assert circles(graph(files(tree))) == [["glassformer.masks.other", "glassformer.state.view"]]


def test_this_repository_is_told_of(capsys):
    assert main(["pages.explore.masks"]) == 0
    told = capsys.readouterr().out
    assert "modules: pages.explore.masks\n" in told
    assert "  glassformer.state.view\n" in told
