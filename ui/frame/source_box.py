"""The source box, and the examples beside it."""

from __future__ import annotations

from typing import Final

from charts.theme import shortened
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from ui.shared import drawing
from ui.shared.choices import KEEP
from ui.shared.door import st
from ui.state import session
from words import say

MOST_EXAMPLES: Final = 4  # more are in a menu: beside the sentence there is one line for them
EXAMPLE_CHARACTERS: Final = 60
EXAMPLE: Final = "example"


def source_box(checkpoint: Checkpoint, *, folded: bool = False) -> None:
    """Draw the source box with its examples.

    Args:
        checkpoint: Whose examples are offered.
        folded: The examples are in a menu beside the box, where the page has other things to show.
    """
    if st.session_state.get(session.SOURCE) is None:
        st.session_state[session.SOURCE] = checkpoint.card.first_example()
    language = checkpoint.card.source_language
    label, go = _wording(checkpoint)
    with st.container(horizontal=True, vertical_alignment="bottom", key="source_row"):
        st.text_input(
            label,
            key=session.SOURCE,
            on_change=session.new_run,
            placeholder=say("Type {language}, then press Enter", language=language)
            if language
            else say("Type, then press Enter"),
            persist_state=KEEP,
        )
        st.button(go, type="primary", key="translate")
        if folded and checkpoint.card.tried():
            with st.popover(say("Examples"), key=f"{EXAMPLE}_menu"):
                for index, example in enumerate(checkpoint.card.tried()):
                    _example(example, index)
    if not folded:
        _examples(checkpoint)


def _wording(checkpoint: Checkpoint) -> tuple[str, str]:
    """What the box and its button are called: only a model with both stacks translates."""
    parts = anatomy(checkpoint.config)
    if not parts.reads:
        return say("Prompt"), say("Run")
    if parts.writes and checkpoint.card.source_code:
        return say("Sentence to translate"), say("Translate")
    return say("Input"), say("Run")


def _examples(checkpoint: Checkpoint) -> None:
    """Draw the examples of the checkpoint, each one click; what has no room is in a menu."""
    found = checkpoint.card.tried()
    if not found:
        return
    shown = MOST_EXAMPLES if len(found) > MOST_EXAMPLES + 1 else len(found)  # a menu for one would save nothing
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="examples"):
        st.caption(say("Examples"), width="content")
        for index, example in enumerate(found[:shown]):
            _example(example, index)
        if len(found) > shown:
            with st.popover(say("{n} more", n=len(found) - shown), type="tertiary", key=f"{EXAMPLE}_more"):
                for index, example in enumerate(found[shown:], start=shown):
                    _example(example, index)


def _example(example: str, index: int) -> None:
    short = shortened(" ".join(example.split()), limit=EXAMPLE_CHARACTERS)
    st.button(
        drawing.plain(short),
        key=f"{EXAMPLE}_{index}",
        help=drawing.plain(example) if short.endswith("…") else None,
        type="tertiary",
        on_click=session.use_example,
        args=(example,),
    )
