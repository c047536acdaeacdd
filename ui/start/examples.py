"""The examples on the start page: some of the checkpoint at hand, and the first one of each other."""

from __future__ import annotations

from transformer.checkpoint.load import Checkpoint
from ui.frame.source_box import EXAMPLE, glossed
from ui.runs import loading
from ui.shared import drawing
from ui.shared.door import st
from ui.state import session
from words import say

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
        key=f"start_{EXAMPLE}_{place}",
        type="tertiary",
        on_click=session.read_with,
        args=(model, example),
    )
    if taken:
        st.rerun()  # the whole page: it may be another checkpoint's
