"""What the Attention page says where a model's attentions are not the paper's."""

from __future__ import annotations

from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig
from ui.runs.open_run import OpenRun
from ui.shared import drawing
from ui.shared.dialect import IN_ATTENTION, about_scores
from ui.shared.door import st
from ui.state.view import AttentionPanel
from words import joined, say

_MEAN = say("A map of all layers together has a cell closed only where every layer closes it.")


def draw(run: OpenRun) -> None:
    """Say it under the controls, once for all parts; One weight says it where its numbers are."""
    said = about_attention(run.checkpoint.config, run.view.kind, run.view.panel, run.view.layer)
    if said and run.view.panel != "walk":
        st.caption(drawing.plain(said))


def about_attention(config: ModelConfig, kind: Kind, panel: AttentionPanel, layer: int | None) -> str:
    """How the scores of an attention are made if not as q·k / √d_head under the causal mask; "" if they are."""
    within_stack = kind != "cross"
    said = [IN_ATTENTION[config.positions]] if within_stack and config.positions in IN_ATTENTION else []
    said += about_scores(config)
    if not said:
        return ""
    together = panel in ("head", "flow") and layer is None
    said += [_MEAN] if any(config.windows) and anatomy(config).attention(kind).causal and together else []
    return joined(" ", [say("This model's attention is not that of the paper alone."), *said])
