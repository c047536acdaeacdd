"""The choice of a part of the page, and why there is none of a model that writes nothing."""

from __future__ import annotations

from typing import Any, Final

from transformer.model.anatomy import anatomy
from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.shared.door import st
from ui.state.view import SearchPanel
from words import say

PARTS: Final[dict[SearchPanel, str]] = {
    "tree": say("Beam tree"),
    "sampling": say("Before the draw"),
    "draws": say("Many draws"),
}
WRITES_NOTHING = say("This model is an encoder alone: it reads, and writes no pieces, so that none are chosen.")


def draw(run: OpenRun) -> Any:
    """Draw it in a row, which is returned: the part adds its own controls. None where nothing is chosen."""
    if not anatomy(run.checkpoint.config).writes:
        st.info(WRITES_NOTHING, icon=":material/info:")
        return None
    row = choices.bar(run.slot)
    with row:
        choices.choose(choices.field(run.slot, "search_panel"), say("Part"), PARTS, bare=True)
    return row
