"""Strip of the model's blocks: a click on one swaps the picture on the Translate page.

Most pictures are those of other pages, found by their names, so a page that is not looked at is not imported.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module

from glassformer.runs.map_axes import SIDE_OF
from glassformer.runs.open_run import OpenRun, address
from glassformer.runs.picture import PICTURES
from glassformer.runs.show import show
from glassformer.shared import controls, cover_box, drawing, menu, page_style
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.step import StepLook
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind, Stack, anatomy


@dataclass(frozen=True)
class ModelBlock:
    """A part of the model."""

    name: str  # the value of the field of the view
    term: Sentence  # what it is called
    does: Sentence  # what it does, in plain words
    page: str  # the path of the page about it
    picture: str  # the module that declares its picture, and the key: "package.module:key"
    fields: Mapping[str, object] = field(default_factory=dict)  # what is looked at, by the names of fields
    kind: Kind | None = None  # the attention that its picture is of


_MAP = "glassformer.step.step_pictures:cross_map"


def stack_blocks(stack: Stack) -> Iterator[ModelBlock]:
    """The blocks of a stack, in the order of the computation."""
    name, side = stack.name, {"side": SIDE_OF[stack.name]}
    tokens, every = side | {"inside_panel": "pieces"}, {"panel": "overview", "layer": None, "head": None}
    yield ModelBlock(
        f"{name}_embedding", say("Embedding"), say("Each token becomes numbers"), "inside",
        "glassformer.inside.pieces.embeddings_pictures:piece_map", tokens,
    )  # fmt: skip
    yield ModelBlock(
        f"{name}_positions", say("Positions"), say("Each token's position is added"), "positions",
        "glassformer.positions.table.table_pictures:position_table", side | {"positions_panel": "table"},
    )  # fmt: skip
    if name == "decoder":
        yield ModelBlock(
            "mask", say("Causal mask"), say("No looking ahead"), "masks", "glassformer.masks.mask_pictures:mask_bool",
            {"masks_panel": "masks", "mask": "causal", "sentence": 0},
        )  # fmt: skip
    does = say("What each token means in context") if name == "encoder" else say("What has been written so far")
    yield ModelBlock(name, say("Self-attention"), does, "attention", _MAP, every | {"kind": name}, name)
    if "cross_attn" in stack.sublayers:
        does = say("Where to look in the source")
        yield ModelBlock("cross", say("Cross-attention"), does, "attention", _MAP, every | {"kind": "cross"}, "cross")
    yield ModelBlock(
        f"{name}_ffn", say("Feed-forward"), say("Each token is processed separately"), "inside",
        "glassformer.inside.ffn.ffn_pictures:ffn_map", side | {"inside_panel": "ffn"},
    )  # fmt: skip
    if name == "decoder":
        does, picture = say("Which token comes next"), "glassformer.step.step_pictures:entropy"
        yield ModelBlock("output", say("Output layer"), does, "search", picture)


def shown_block(run: OpenRun) -> ModelBlock:
    """The chosen block: at first the last attention, or the output where an address says how unsure is measured."""
    blocks = [one for stack in anatomy(run.checkpoint.config).stacks for one in stack_blocks(stack)]
    look = run.view.of(StepLook)
    asked = "output" if look.shown_block == "auto" and look.unsure != StepLook.unsure else look.shown_block
    named = next((one for one in blocks if one.name == asked), None)
    return named or next(one for one in reversed(blocks) if one.kind is not None)


def picture(run: OpenRun, block: ModelBlock) -> None:
    """Draw the picture of a block."""
    module, _, key = block.picture.partition(":")
    import_module(module)  # declares it
    drawn = PICTURES[key]
    if block.kind is not None:  # its part has no scene of a run without steps
        show(drawn, run)
        return
    scene = drawn.part.scene(replace(run, visible=replace(run.visible, view=run.view.but(**block.fields))))
    if scene is not None:
        show(drawn, scene)


def strip(run: OpenRun, shown: ModelBlock) -> None:
    """Draw a line of blocks for each stack, what can be chosen in the shown one, and the way to the page about it."""
    with st.container(key=run.key("model_strip"), gap="small"):
        for stack in anatomy(run.checkpoint.config).stacks:
            key = run.key(f"{page_style.BLOCKS}_{stack.name}")
            with st.container(horizontal=True, vertical_alignment="center", key=key):
                named = say("Encoder") if stack.name == "encoder" else say("Decoder")
                st.markdown(drawing.strong(named), width="content")
                for block in stack_blocks(stack):
                    st.button(
                        block.term,
                        key=run.key(f"block_{block.name}"),
                        type="primary" if block == shown else "secondary",
                        help=block.does,
                        on_click=partial(session.replace, run.slot, shown_block=block.name),
                    )
        with controls.bar(run.slot):
            if shown.kind in run.trace.kinds:
                n_layers, n_heads = run.trace.maps(shown.kind).shape[:2]
                layer = controls.menu_of_layers(controls.field(run.slot, "layer"), n_layers)
                controls.menu_of_heads(controls.field(run.slot, "head"), n_heads, disabled=layer is None)
            if not cover_box.is_on():
                leads_to = address(run.checkpoint, run.link, **shown.fields)
                label = say("{block}: open the page", block=shown.term)
                menu.link(shown.page, label, leads_to, icon=":material/open_in_new:")
