"""The names of the package: charts and their figures, the package's own and those of extensions."""

import importlib
from types import FunctionType, ModuleType

import pytest

from glassformer import charts


@pytest.mark.parametrize("name", dir(charts))
def test_each_name_is_a_function(name):
    assert callable(getattr(charts, name))


def test_a_module_that_is_imported_does_not_hide_the_figure_of_its_name():
    for name in ("grid", "heatmap", "theme", "hover"):
        assert isinstance(importlib.import_module(f"glassformer.charts.{name}"), ModuleType)
    assert isinstance(charts.grid, FunctionType)
    assert isinstance(charts.heatmap, FunctionType)
    assert isinstance(charts.theme, ModuleType)
    assert isinstance(charts.hover, ModuleType)  # it has a function of its name that is no chart


def test_without_extensions_their_charts_are_unknown(monkeypatch):
    monkeypatch.setattr(charts, "extensions", lambda: ())
    names = charts._charts.__wrapped__()
    assert "heatmap" in names
    assert "film" not in names
