"""`charts` offers each chart and its figure by name, the package's own and those of extensions."""

import importlib
from types import FunctionType, ModuleType

from glassformer import charts


def test_each_name_is_a_function_and_a_module_that_is_imported_does_not_hide_it():
    assert [name for name in dir(charts) if not callable(getattr(charts, name))] == []
    for name in ("grid", "heatmap", "theme", "hover"):
        assert isinstance(importlib.import_module(f"glassformer.charts.{name}"), ModuleType)
    assert isinstance(charts.grid, FunctionType)
    assert isinstance(charts.theme, ModuleType)
    assert isinstance(charts.hover, ModuleType)  # it has a function of its name that is no chart


def test_without_extensions_their_charts_are_unknown(monkeypatch):
    monkeypatch.setattr(charts, "extensions", lambda: ())
    names = charts._charts.__wrapped__()
    assert "heatmap" in names
    assert "film" not in names
