"""What the Attention page draws around its maps: where they stand, and the cell that is looked at."""

from __future__ import annotations

from functools import partial
from typing import Final

from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig
from ui.attention.drawn_maps import ALL_SPECIAL, DrawnMap
from ui.attention.map_pictures import GRIDS, one_map, open_map
from ui.maps.grid import columns, is_long
from ui.runs.groups import mask_reason
from ui.runs.open_maps import AnyRun, OpenMaps
from ui.runs.open_run import OpenRun
from ui.runs.show import show
from ui.runs.sides import sides
from ui.shared import drawing
from ui.shared.dialect import about_scores
from ui.shared.door import st
from ui.state import session
from ui.state.view import AttentionPanel
from words import joined, say

CELL_ROW: Final = "head_cell"
EXPLAIN: Final = "head_explain"
_MEAN = say("A map of all layers together has a cell closed only where every layer closes it.")


def all_heads(run: AnyRun) -> None:
    """Draw the part "All heads": the chosen attention large, the others beside it."""
    kind = run.view.kind
    large, others = partial(_grid, run, kind), [partial(_grid, run, one) for one in run.trace.kinds if one != kind]
    if not others:
        large()
    elif is_long(run, kind):
        large()
        drawing.beside(*others, gap="medium")
    else:
        drawing.beside(large, lambda: [draw() for draw in others], widths=(5, 3), gap="medium")


def _grid(run: AnyRun, kind: Kind) -> None:
    show(GRIDS[kind], run, table=partial(columns, run.again(), kind, sides(run.looking, kind)))


def one(run: AnyRun) -> None:
    """Draw the part "One map"."""
    found = open_map(run)
    if found is None:
        st.info(ALL_SPECIAL)
        return
    show(one_map, found)
    _cell(run, found.drawn, found.cell)


def _cell(run: AnyRun, drawn: DrawnMap, cell: tuple[int, int] | None) -> None:
    """Say the number of the cell that is looked at, and lead to how it came to be."""
    if cell is None:
        return
    query = say("{piece} (row {place})", piece=drawing.plain(drawn.queries[cell[0]]), place=cell[0] + 1)
    key = say("{piece} (column {place})", piece=drawing.plain(drawn.keys[cell[1]]), place=cell[1] + 1)
    if drawn.allowed[cell]:
        weight = drawn.weights[cell]
        said = say("Looked at: {query}, {key}: weight **{weight:.4f}**", query=query, key=key, weight=weight)
    else:
        said = say(
            "Looked at: {query}, {key}: {reason}",
            query=query,
            key=key,
            reason=mask_reason(run.checkpoint, run.view.kind),
        )
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key(CELL_ROW)):
        st.markdown(said, width="content")
        if isinstance(run, OpenMaps):
            return
        st.button(
            say("How this weight came to be"),
            key=run.key(EXPLAIN),
            on_click=partial(session.replace, run.slot, panel="walk"),
            icon=":material/arrow_forward:",
        )


def otherwise(run: OpenRun) -> None:
    """Say under the controls, once for all parts, where attention is not the paper's; One weight says it itself."""
    said = about_attention(run.checkpoint.config, run.view.kind, run.view.panel, run.view.layer)
    if said and run.view.panel != "walk":
        st.caption(drawing.plain(said))


def about_attention(config: ModelConfig, kind: Kind, panel: AttentionPanel, layer: int | None) -> str:
    """How the scores of an attention are made if not as q·k / √d_head under the causal mask; "" if they are."""
    within_stack = kind != "cross"
    said: list[str] = [config.placing.in_attention] if within_stack and config.placing.in_attention else []
    said += about_scores(config)
    if not said:
        return ""
    together = panel in ("head", "flow") and layer is None
    said += [_MEAN] if any(config.windows) and anatomy(config).attention(kind).causal and together else []
    return joined(" ", [say("This model's attention is not that of the paper alone."), *said])
