"""Chart package: every chart of its modules and of extensions, as plain data and Plotly figure, imported lazily.

Read `theme` first (colours, and text that is never read as markup), then `marks`, `heatmap` and `candidates`.
Nothing here knows torch or Streamlit. Extensions add charts of theirs.

Each chart has two functions. `heatmap_spec` makes the chart's plain data, which is much cheaper than a `go.Figure`; the
app translates its sentences (`glassformer.shared.i18n`). `heatmap` returns the same as a figure in English, for
notebooks.

In all charts there is one label per place, in order; equal labels stay separate. Axes and values are named with their
unit; `colour` is the side they belong to. `chosen` and `marked_...` count from 0, and None marks nothing. `note` is
shown under the title. `allowed` is True where a query may attend; closed cells show `mask_reason` on hover instead of
a number. Shapes follow the name of an array: [layer, head]. Sizes that do not fit together raise a ValueError. A
click gives the `customdata` of a mark or the index of a cell, and `layout.height` suggests a height in pixels.

Example:
    >>> from glassformer import charts
    >>> figure = charts.heatmap(weights, queries=["▁like"], keys=["▁I", "▁like"], allowed=mask, title="Head 1")
    >>> figure.show()
"""

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from transformer.extensions import LISTED, extensions


@cache
def _charts() -> dict[str, Any]:
    """All charts, the package's and those of extensions, and their figures; each module of charts is imported."""
    found = {"with_links": import_module(f"{__name__}.diagram").with_links}
    for package in (__name__, *(f"{LISTED}.{one.name}.charts" for one in extensions())):
        home = import_module(package) if find_spec(package) else None
        for module in iter_modules(getattr(home, "__path__", ())):
            found |= _charts_of(import_module(f"{package}.{module.name}"))
        if home is not None and package != __name__:
            found |= _charts_of(home)
    return found


def _charts_of(module: ModuleType) -> dict[str, Any]:
    """Each function `..._spec`, its figure, and what gives a figure by itself."""
    as_figure, known = import_module(f"{__name__}.theme").as_figure, vars(module).items()
    specs = {name: one for name, one in known if name.endswith("_spec") and not name.startswith("_")}
    figures = {name.removesuffix("_spec"): as_figure(one) for name, one in specs.items()}
    gives = {name: getattr(one, "__annotations__", {}).get("return") for name, one in known}
    whole = import_module("plotly.graph_objects").Figure
    return specs | figures | {name: one for name, one in known if gives[name] is whole}


class _Door(ModuleType):
    """The package, in which a figure is not hidden by the module of its name."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if isinstance(found, ModuleType) and not {name, f"{name}_spec"}.isdisjoint(vars(found)):
            return _charts().get(name, found)
        return found


sys.modules[__name__].__class__ = _Door


def __getattr__(name: str) -> Any:
    """A chart, its figure, or a module of charts, which is imported alone: all others may import it."""
    if not name.startswith("_"):
        if find_spec(f"{__name__}.{name}"):
            import_module(f"{__name__}.{name}")
            return getattr(sys.modules[__name__], name)  # `_Door` knows whether its figure is meant
        if name in _charts():
            return _charts()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All charts and their figures."""
    return sorted(_charts())
