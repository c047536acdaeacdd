"""A module has one object under its own name and the names that it had."""

import importlib
import importlib.resources
import sys
from importlib.util import find_spec
from operator import attrgetter

import pytest

import transformer
from transformer.extensions import MOVED, Extension, extensions, renamed


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
    for module, name in listed:
        assert getattr(importlib.import_module(module), name) is getattr(transformer, name)
