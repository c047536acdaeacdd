"""Extensions that are there are listed, others passed over; a module is one object under all its names."""

import importlib
import importlib.resources
import sys
from importlib.util import find_spec
from operator import attrgetter

import pytest

import transformer
from transformer import extensions as module
from transformer.extensions import MOVED, Extension, extensions, imported, provided, renamed

RECORD = """from transformer.extensions import Extension

EXTENSION = Extension(name={name!r}, needs={needs!r}, looks={looks!r})
"""


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A list of four: one that is there, one that needs one that is gone, one of which only a cache is left."""
    folder = tmp_path / "a_list_of_extensions"
    for name, needs in (("there", ()), ("needs_gone", ("gone",)), ("needs_that", ("needs_gone",))):
        (folder / name).mkdir(parents=True)
        text = RECORD.format(name=name, needs=needs, looks=f"a_list_of_extensions.{name}:EXTENSION")
        (folder / name / "__init__.py").write_text(text)
    (folder / "left_over" / "__pycache__").mkdir(parents=True)
    (folder / "__init__.py").write_text('NAMES = ("left_over", "needs_that", "there", "gone", "needs_gone")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "LISTED", folder.name)
    extensions.cache_clear()
    provided.cache_clear()
    yield
    extensions.cache_clear()
    provided.cache_clear()


@pytest.mark.usefixtures("listed")
def test_what_is_gone_and_what_needs_it_is_passed_over_as_is_a_folder_without_a_module():
    assert [one.name for one in extensions()] == ["there"]
    assert [one.name for one in provided("looks")] == ["there"]
    assert provided("drafts") == ()


def test_what_is_drawn_below_names_classes_and_functions_that_are_there():
    below = [pair for one in extensions() for pair in one.below.items()]
    assert below or not extensions()  # of a kernel alone
    for shown, draws in below:
        assert isinstance(imported(shown), type)
        assert callable(imported(draws))


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Have `transformer.moved` mean a package of another name, "elsewhere_for_a_test"."""
    folder = tmp_path / "elsewhere_for_a_test"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("from elsewhere_for_a_test.deep import inner\n")
    (folder / "deep" / "__init__.py").write_text("")
    (folder / "deep" / "inner.py").write_text(
        "class Thing: pass\nif __name__ == '__main__': print('ran', __package__)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    one = Extension(name="thrown_away", modules={"transformer.moved": folder.name})
    monkeypatch.setattr("transformer.extensions.extensions", lambda: (one,))
    yield folder.name
    for name in [name for name in sys.modules if name.startswith(("transformer.moved", folder.name))]:
        del sys.modules[name]
    vars(transformer).pop("moved", None)


@pytest.mark.parametrize("first", ["own", "other"])
@pytest.mark.parametrize("name", ["", ".deep", ".deep.inner"])
def test_both_names_give_one_module_whichever_comes_first(moved, first, name):
    names = [moved + name, f"transformer.moved{name}"]
    one, other = map(importlib.import_module, names if first == "own" else names[::-1])
    assert one is other is sys.modules[names[0]] is sys.modules[names[1]]
    assert (one.__name__, one.__spec__.name) == (names[0], names[0])


def test_what_a_module_imports_is_not_made_twice(moved):
    import transformer.moved
    from transformer.moved.deep.inner import Thing

    assert importlib.import_module(f"{moved}.deep.inner").Thing is Thing is transformer.moved.inner.Thing


def test_names_that_are_none_stay_unknown(moved):
    for name in ("transformer.moved.nothing", "transformer.moved.deep.nothing", "transformer.movedx"):
        with pytest.raises(ModuleNotFoundError, match=name.rpartition(".")[2]):
            importlib.import_module(name)
    assert find_spec("transformer.nothing") is None
    assert renamed("elsewhere.moved") is None


def test_each_alias_is_a_module():
    for names in (MOVED, *(one.modules for one in extensions())):
        for other, own in names.items():
            if find_spec(other.rpartition(".")[0]) is None:
                continue  # a name below that of an extension that was deleted
            assert importlib.import_module(other) is importlib.import_module(own)


def test_without_extensions_the_librarys_own_names_are_left(monkeypatch):
    monkeypatch.setattr(transformer, "_extensions", lambda: ())
    assert "Checkpoint" in dir(transformer)
    assert transformer.Trace
    assert {"examine", "ZeroHead"}.isdisjoint(dir(transformer))
    with pytest.raises(AttributeError, match="examine"):
        attrgetter("examine")(transformer)


def test_the_types_are_those_of_the_names(monkeypatch):
    stub = (importlib.resources.files(transformer) / "__init__.pyi").read_text(encoding="utf-8")
    listed = [line.split()[1:4:2] for line in stub.splitlines() if line.startswith("from transformer.")]
    monkeypatch.setattr(transformer, "_extensions", lambda: ())
    assert sorted(name for _, name in listed) == dir(transformer)
    for place, name in listed:
        assert getattr(importlib.import_module(place), name) is getattr(transformer, name)
