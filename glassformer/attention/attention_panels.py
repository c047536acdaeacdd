"""The Attention page: choice of a part, menus of attention, layer, head and colours, a note on unusual scores."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from glassformer.attention import AttentionLook, AttentionPanel
from glassformer.attention.drawn_maps import ATTENTION, KINDS, is_spread_thin
from glassformer.frame.sentence_stepper import Still, encoder_attention, sentence
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import AnyRun, OpenMaps, OpenRun
from glassformer.runs.show import choose_part
from glassformer.runs.viewed_run import can_roll, has_words
from glassformer.shared import controls, cover_box, drawing
from glassformer.shared.i18n import st
from glassformer.shared.model_notes import about_scores
from glassformer.shared.page_blocks import page_blocks
from glassformer.state.view import Aggregate, Slot
from transformer.extensions import provided
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig

AGGREGATES: Final[dict[Aggregate, str]] = {
    "mean": say("Mean"),
    "max": say("Largest weight"),
    "rollout": say("Rollout through the layers"),
}
AGGREGATE_HELP: Final = say(
    "How several heads are combined into one map. Rollout traces the weights through the layers, up to the chosen "
    "layer; the text under the map gives the formula."
)
PIECES: Final = {
    "words": (
        say("Merge tokens into words"),
        say(
            "For a word among the keys, the weights of its tokens are added up; for a word among the queries, they "
            "are averaged. Text in scripts without spaces is not merged."
        ),
    ),
    "hide_special": (
        say("Hide special tokens"),
        say(
            "Leaves out the rows and columns of special tokens, for example `</s>`. A decoder row is left out if "
            "it predicts a special token. The remaining weights are not rescaled."
        ),
    ),
}
"""What rows and columns may be: the labels of the switches, and their help."""
_MEAN = say("In a map that combines all layers, a cell counts as closed only if every layer closes it.")


def draw(run: OpenRun) -> None:
    """Draw the sentence, the controls, and the chosen part."""
    entry = ATTENTION.entry(run)
    at_step = entry.name == "table" and any(one.at_step(run) for one in provided("heads"))
    still = Still() if entry.still else None  # it holds for the whole run
    if run.view.kind == "encoder":
        still = attempt(lambda: encoder_attention(run))
    sentence(run, compact=True, asks=at_step, still=None if at_step else still)
    chosen(run)


def chosen(run: AnyRun) -> None:
    """Draw the choice of a part, a menu of attentions and heads, and the chosen part, which adds its own to it."""
    with controls.bar(run.slot):
        choose_part(ATTENTION, run.slot, ATTENTION.offered(run))
        row = st.popover(_which(run), icon=":material/tune:", key=run.key("which"))
    with row:
        kinds = {kind: KINDS[kind] for kind in run.trace.kinds}
        kept = controls.field(run.slot, "kind")
        controls.menu(kept, say("Attention"), kinds, otherwise=run.view.kind, bare=True, folded=True)
    ATTENTION.entry(run).draw(run, row)


def _which(run: AnyRun) -> str:
    """The name of the menu: the chosen attention, layer and head."""
    view, said = run.view, [KINDS[run.view.kind]]
    if view.layer is not None:
        said.append(say("layer {n}", n=view.layer + 1))
    if view.layer is not None and view.head is not None:
        said.append(say("head {n}", n=view.head + 1))
    elif ATTENTION.entry(run).name not in ("walk", "training"):  # these choose one by themselves
        said.append(say("all heads"))
    return joined(", ", said)


def below(run: AnyRun, draw: Callable[[], object]) -> None:
    """Draw what a part has below its controls."""
    if isinstance(run, OpenMaps):
        if run.trace.of(run.view.kind).signed and ATTENTION.entry(run).name not in ("overview", "head"):
            st.info(say("These are attributions, which may be below 0. All heads and One map show them."))
        else:
            draw()
        return
    name, view = ATTENTION.entry(run).name, run.view
    # Where attention is not the paper's, it is said once for all parts; One weight says it itself.
    said = about_attention(run.checkpoint.config, view.kind, view.of(AttentionLook).panel, view.layer)
    if said and view.of(AttentionLook).panel != "walk":
        st.caption(drawing.plain(said))
    cover_box.part(lambda: attempt(draw))
    if name not in ("walk", "table"):  # these draw it by themselves
        for_head(run, view.layer, view.head)


# ------------------------------------------------------------------------------------------------ what parts share


def map_controls(run: AnyRun, row: Any, panel: AttentionPanel) -> None:
    """Draw which layer and head, and what is rarely changed."""
    with row:
        n_layers, n_heads = _sizes(run)
        layer, head = controls.menu_of_layers(controls.field(run.slot, "layer"), n_layers, width=None), None
        if panel != "flow":  # that part shows several, and has its own choice
            kept = controls.field(run.slot, "head", forgets=("heads",))
            head = controls.menu_of_heads(kept, n_heads, disabled=layer is None, width=None)
        if panel != "table":
            _more(run, panel, several=layer is None or head is None)


def for_head(run: AnyRun, layer: int | None, head: int | None) -> None:
    """Draw what can be done with a head."""
    for blocks in page_blocks() if isinstance(run, OpenRun) else ():
        blocks.for_head(run, run.view.kind, layer, head)


def _sizes(run: AnyRun) -> tuple[int, int]:
    """How many layers and heads there are to choose from; what there is not is let go, as the run has said."""
    n_layers, n_heads = run.trace.maps(run.view.kind).shape[:2]
    controls.let_go(run.slot, n_layers, n_heads)
    return n_layers, n_heads


def one_head(run: OpenRun, shown: dict[str, int], *, query: int | None = None) -> None:
    """Draw the choice of one layer and one head; what the page had chosen by itself stays where it is."""
    shown = shown if query is None else shown | {"query": query}
    layer, head, *_ = controls.together(run.slot, shown, key="one_")
    n_layers, n_heads = _sizes(run)
    controls.menu_of_layers(layer, n_layers, all_together=False, width=None)
    controls.menu_of_heads(head, n_heads, all_together=False, width=None)


def _more(run: AnyRun, panel: str, *, several: bool) -> None:
    """Draw how colours and pieces are shown, as far as a part has them."""
    slot = run.slot
    if panel == "head" and several:
        label = say("Several heads as one map")
        rolls = can_roll(run.trace, run.view.kind) if isinstance(run, OpenMaps) else run.checkpoint.config.residual
        known = {name: said for name, said in AGGREGATES.items() if rolls or name != "rollout"}
        help = AGGREGATE_HELP if rolls else None
        controls.menu(controls.field(slot, "aggregate"), label, known, help=help, folded=True)
    if panel != "flow":
        _scales(slot, log=panel == "head" and is_spread_thin(run.visible))
    # Given maps need not say where words begin, and which pieces are special.
    there: Mapping[str, object] = PIECES
    if isinstance(run, OpenMaps):
        there = {"words": has_words(run.trace), "hide_special": run.trace.special}
    for name, (label, help) in PIECES.items():
        if panel != "overview" and there[name]:
            controls.switch(controls.field(slot, name), label, help=help, folded=True)


def _scales(slot: Slot, *, log: bool) -> None:
    """Draw the choice of a colour scale; by the logarithm where the reader has not said, if `log` says so."""
    kept = controls.field(slot, "log_scale")
    kept = replace(kept, value=log if kept.value is None else kept.value)
    controls.switch(kept, say("Logarithmic colours"), folded=True)
    help = say(
        "When off, colours range from weight 0 to 1 in every map, so the same colour always means the same weight."
    )
    own = controls.field(slot, "own_scale")
    controls.switch(own, say("Scale colours to each map's largest weight"), help=help, folded=True)


def about_attention(config: ModelConfig, kind: Kind, panel: AttentionPanel, layer: int | None) -> str:
    """How the scores of an attention are made if not as q·k / √d_head under the causal mask; "" if they are."""
    within_stack = kind != "cross"
    said: list[str] = [config.placing.in_attention] if within_stack and config.placing.in_attention else []
    said += about_scores(config)
    if not said:
        return ""
    together = panel in ("head", "flow") and layer is None
    said += [_MEAN] if any(config.windows) and anatomy(config).attention(kind).causal and together else []
    return joined(" ", [say("This model's attention differs from that of the original Transformer."), *said])
