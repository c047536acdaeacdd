"""The examples on the start page, some of the checkpoint at hand and the first one of each other, and the ways on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassformer.frame.source_box import glossed
from glassformer.runs import loading
from glassformer.runs.open_run import address
from glassformer.shared import drawing, menu, page_style
from glassformer.shared.door import st
from glassformer.state import session
from transformer.i18n import say
from transformer.model.anatomy import anatomy

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

OWN, OTHERS = 2, 1


def draw(checkpoint: Checkpoint) -> None:
    """Draw them, each one click."""
    own = str(st.session_state.get(session.MODEL) or checkpoint.name)  # what was handed in has another name there
    others = [(name, entry) for name, entry in loading.usable().items() if name != checkpoint.name and entry.examples]
    others.sort(key=lambda one: not one[1].language)  # a sentence before letters
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="examples"):
        st.caption(say("Examples"), width="content")
        for place, example in enumerate(checkpoint.card.tried()[:OWN]):
            _example(own, example, glossed(example, checkpoint.card.glosses.get(example, "")), place)
        for place, (name, entry) in enumerate(others[:OTHERS], start=OWN):
            first = entry.examples[0]
            _example(
                name, first, say("{title}: {example}", title=entry.title, example=glossed(first, entry.gloss)), place
            )


def _example(model: str, example: str, label: str, place: int) -> None:
    taken = st.button(
        drawing.plain(label),
        key=f"start_example_{place}",
        type="tertiary",
        on_click=session.read_with,
        args=(model, example),
    )
    if taken:
        st.rerun()  # the whole page: it may be another checkpoint's


def ways(checkpoint: Checkpoint) -> None:
    """Draw the three ways on from the page."""
    link = session.asked()
    steps = say("Step through a translation") if checkpoint.card.source_code else say("Step through a run")
    with st.container(key=page_style.WAYS, horizontal=True):
        if anatomy(checkpoint.config).writes:
            menu.link("step", steps, address(checkpoint, link), icon=":material/play_circle:")
        menu.link("attention", say("Look at attention"), address(checkpoint, link), icon=":material/visibility:")
        menu.link(
            "checkpoints",
            say("Examine your own checkpoint"),
            address(checkpoint, link),
            icon=":material/folder_open:",
        )
