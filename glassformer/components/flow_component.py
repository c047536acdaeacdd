"""Flow component (Python side): a layer's heads as lines, as in BertViz, and the choice read from the browser.

All weights are sent once; hovering, pinning, hiding heads and the threshold are handled in the browser. Python hears
what the URL keeps: the pinned piece, the visible heads, and whether the flow follows the step's row.
"""

from collections.abc import Callable
from typing import Any

from glassformer.components.custom_component import Element, is_count, told
from glassformer.components.flow_data import Choice, Flow, Pin, flow_payload

_VIEW = Element("flow_view")


def flow_view(
    flow: Flow,
    *,
    key: str,  # names this place on the page
    alt: str,  # the view in one or two sentences, for people who cannot see it
    caption: str,  # how to read it
    choice: Choice | None = None,  # taken when it is news and the browser has not moved on meanwhile
    # Called before the page runs again when the reader chose otherwise; `last_choice(key)` tells what. Without it
    # Python is told nothing.
    on_choice: Callable[[], None] | None = None,
    file: str = "",  # what its pictures are called, without their endings; its key if not given
    table: str = "",  # a CSS selector of the button that saves its weights; without it nothing does
) -> None:
    """Draw the lines in place. What the reader chose, such as heads or a threshold, outlives a change of data."""
    payload = flow_payload(flow, choice or Choice(), name=key, file=file or key, table=table, alt=alt, caption=caption)
    payload |= {"reports": on_choice is not None, "heard": _report(key).get("stamp")}
    _VIEW.draw(payload, key=key, hears={"pin": on_choice})


def last_choice(key: str, *, n_heads: int, n_queries: int, n_keys: int) -> Choice:
    """Read what is chosen, of so many heads and pieces; for use inside an `on_choice` callback."""
    report = _report(key)
    shown = report.get("shown")
    heads = tuple(head for head in range(n_heads) if isinstance(shown, list) and head in shown)
    if len(heads) == n_heads:
        heads = ()
    side, index = report.get("side"), report.get("index")
    pin = None
    if side in ("query", "key") and is_count(index) and index < (n_queries if side == "query" else n_keys):
        pin = Pin(side, index)
    return Choice(heads, pin, following=report.get("following") is True)


def _report(key: str) -> dict[str, Any]:
    """What the browser last said; an empty dict for anything that is not a report."""
    report = told(key, "pin")
    return report if isinstance(report, dict) else {}
