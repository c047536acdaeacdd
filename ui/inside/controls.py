"""The choice of a part of the Inside page."""

from __future__ import annotations

from typing import Any

from ui.frame.sentence import Still, one_token
from ui.inside.looked_at import INSIDE, sides_of
from ui.runs.open_run import OpenRun
from ui.runs.show import choose_part
from ui.shared import choices


def draw(run: OpenRun) -> Any:
    """Draw it in a row, which is returned: the part adds its own controls."""
    row = choices.bar(run.slot)
    with row:
        choose_part(INSIDE, run.slot)
    return row


def still(run: OpenRun) -> Still | None:
    """What a part looks at in which nothing moves with the step: the model as such, and the source."""
    panel, sides = run.view.inside_panel, sides_of(run.checkpoint.config)
    if panel == "model":
        return Still()
    on_source = "target" not in sides or run.view.side == "source"
    return one_token(run, run.view.key or 0) if on_source and panel != "lens" else None
