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


def test_what_is_gone_and_what_needs_it_is_passed_over_as_is_a_folder_without_a_module(tmp_path, monkeypatch):
    """Of a list one is there, one needs one that is gone, one needs that, and of one only a cache is left."""
    folder = tmp_path / "a_list_of_extensions"
    for name, needs in (("there", ()), ("needs_gone", ("gone",)), ("needs_that", ("needs_gone",))):
        (folder / name).mkdir(parents=True)
        record = f"name={name!r}, needs={needs!r}, looks='a_list_of_extensions.{name}:EXTENSION'"
        text = f"from transformer.extensions import Extension\nEXTENSION = Extension({record})\n"
        (folder / name / "__init__.py").write_text(text)
    (folder / "left_over" / "__pycache__").mkdir(parents=True)
    (folder / "__init__.py").write_text('NAMES = ("left_over", "needs_that", "there", "gone", "needs_gone")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "LISTED", folder.name)
    try:
        extensions.cache_clear()
        provided.cache_clear()
        assert [one.name for one in extensions()] == ["there"]
        assert [one.name for one in provided("looks")] == ["there"]
        assert provided("drafts") == ()
    finally:
        extensions.cache_clear()
        provided.cache_clear()


def test_what_is_drawn_below_names_classes_and_functions_that_are_there_and_each_alias_is_a_module():
    below = [pair for one in extensions() for pair in one.below.items()]
    assert below or not extensions()  # of a kernel alone
    for shown, draws in below:
        assert isinstance(imported(shown), type)
        assert callable(imported(draws))
    for names in (MOVED, *(one.modules for one in extensions())):
        for other, own in names.items():
            if find_spec(other.rpartition(".")[0]) is not None:  # a name below that of an extension may be deleted
                assert importlib.import_module(other) is importlib.import_module(own)


@pytest.fixture
def moved(tmp_path, monkeypatch):
    """Have `transformer.moved` mean a package of another name, "elsewhere_for_a_test"."""
    folder = tmp_path / "elsewhere_for_a_test"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("from elsewhere_for_a_test.deep import inner\n")
    (folder / "deep" / "__init__.py").write_text("")
    (folder / "deep" / "inner.py").write_text("class Thing: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    one = Extension(name="thrown_away", modules={"transformer.moved": folder.name})
    monkeypatch.setattr("transformer.extensions.extensions", lambda: (one,))
    yield folder.name
    for name in [name for name in sys.modules if name.startswith(("transformer.moved", folder.name))]:
        del sys.modules[name]
    vars(transformer).pop("moved", None)


@pytest.mark.parametrize("first", ["own", "other"])
@pytest.mark.parametrize("name", ["", ".deep", ".deep.inner"])
def test_both_names_give_one_module_whichever_comes_first_and_names_that_are_none_stay_unknown(moved, first, name):
    names = [moved + name, f"transformer.moved{name}"]
    one, other = map(importlib.import_module, names if first == "own" else names[::-1])
    assert one is other is sys.modules[names[0]] is sys.modules[names[1]]
    assert (one.__name__, one.__spec__.name) == (names[0], names[0])
    from transformer.moved.deep.inner import Thing  # what a module imports is not made twice

    assert importlib.import_module(f"{moved}.deep.inner").Thing is Thing is transformer.moved.inner.Thing
    for unknown in ("transformer.moved.nothing", "transformer.moved.deep.nothing", "transformer.movedx"):
        with pytest.raises(ModuleNotFoundError, match=unknown.rpartition(".")[2]):
            importlib.import_module(unknown)
    assert find_spec("transformer.nothing") is None
    assert renamed("elsewhere.moved") is None


def test_without_extensions_the_librarys_own_names_are_left_with_their_types(monkeypatch):
    monkeypatch.setattr(transformer, "_extensions", lambda: ())
    assert "Checkpoint" in dir(transformer)
    assert {"examine", "ZeroHead"}.isdisjoint(dir(transformer))
    with pytest.raises(AttributeError, match="examine"):
        attrgetter("examine")(transformer)
    stub = (importlib.resources.files(transformer) / "__init__.pyi").read_text(encoding="utf-8")
    listed = [line.split()[1:4:2] for line in stub.splitlines() if line.startswith("from transformer.")]
    assert sorted(name for _, name in listed) == dir(transformer)
    for place, name in listed:
        assert getattr(importlib.import_module(place), name) is getattr(transformer, name)
