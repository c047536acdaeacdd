"""Decoding line of a run with its menu: greedy, beam or sampling, settings, output length, hidden candidates.

It is drawn where decoding is looked at, and counts for every page.
"""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

from glassformer.shared import controls
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import page_blocks
from glassformer.state import session
from glassformer.state.link import DEFAULT_NEW, WAYS
from glassformer.state.view import MAIN
from transformer.i18n import say
from transformer.model.anatomy import anatomy
from transformer.runs.query import MAX_NEW, MAX_SOURCE_CHARACTERS

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

HOW_NAMES = {"greedy": say("Greedy"), "beam": say("Beam"), "sampling": say("Sampling")}


def decoding_line(checkpoint: Checkpoint, *, short: bool = False) -> None:
    """Draw how the run is decoded, with what changes it, and whether a class has to guess first; folded if `short`."""
    if not anatomy(checkpoint.config).writes:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="decoding"):
        how = HOW_NAMES.get(st.session_state.get(session.HOW) or "greedy", HOW_NAMES["greedy"])
        said = say("{how}, up to {n} tokens", how=how, n=st.session_state[session.MAX_NEW])
        # No popover: the browser would go on sending what was chosen in a closed one, whatever an address says since.
        with st.expander(said, icon=":material/tune:", type="compact", key="decoding_menu"):
            _decoding(checkpoint)
            if short:
                _hide_candidates()
        in_class(hides=not short)


def in_class(*, hides: bool) -> None:
    """Draw what a class may see: whether it `hides` candidates, and what extensions add, such as covered parts."""
    if hides:
        _hide_candidates()
    for blocks in page_blocks():
        if (draw := blocks.in_class()) is not None:
            draw()


def _hide_candidates() -> None:
    """Draw whether the next piece stays hidden until it is guessed."""
    controls.switch(
        controls.field(MAIN, "guess"),
        say("Hide candidates until I guess"),
        help=say("The next token stays hidden until someone guesses it."),
    )


def hidden_while_guessing(hides: bool) -> bool:
    """Whether a part about whole outputs `hides` them while a class guesses; then the way out is drawn instead."""
    if hides:
        said = say("This shows whole outputs, so it would give away what comes next.")
        st.info(said, icon=":material/visibility_off:")
        st.button(say("Show candidates"), key="show_candidates", on_click=partial(session.replace, MAIN, guess=False))
    return hides


def _decoding(checkpoint: Checkpoint) -> None:
    """Draw all that can be chosen."""
    controls.keep_label(session.HOW, HOW_NAMES.values())
    how = st.segmented_control(
        say("How the next token is chosen"),
        list(HOW_NAMES),
        key=session.HOW,
        format_func=lambda name: HOW_NAMES[name],
        required=True,
        on_change=session.new_run,
        persist_state=KEEP,
    )
    if how in WAYS:
        _settings(how)
    st.slider(
        say("Maximum output length"),
        1,
        min(MAX_NEW, checkpoint.config.max_len),
        key=session.MAX_NEW,
        on_change=session.new_run,
        persist_state=KEEP,
        help=say(
            "The source may have at most {characters:,} characters and {pieces} tokens.",
            characters=MAX_SOURCE_CHARACTERS,
            pieces=checkpoint.config.max_len,
        ),
    )


def _settings(how: str) -> None:
    """Draw the numbers of a way of decoding; another one is another run."""
    kind, settings = WAYS[how]
    for one in settings:
        st.session_state.setdefault(one.key, getattr(kind, one.field))
        widget = st.number_input if one.field in ("top_k", "seed") else st.slider
        widget(
            one.label,
            one.least,
            one.most,
            step=one.step,
            key=one.key,
            on_change=session.new_run,
            persist_state=KEEP,
            help=one.help,
        )
    if how == "sampling":
        st.button(say("Draw again"), on_click=_new_seed, icon=":material/casino:", width="stretch")


def _new_seed() -> None:
    st.session_state[session.SEED] = random.randrange(10_000)
    session.new_run()


def limit_output(checkpoint: Checkpoint) -> None:
    """Have the session ask for no more than a checkpoint writes, with a note if it did."""
    most = min(MAX_NEW, checkpoint.config.max_len)
    wanted = st.session_state.get(session.MAX_NEW, DEFAULT_NEW)
    if wanted > most and wanted != DEFAULT_NEW:
        said = say(
            "Up to {wanted} tokens were requested, but {name} writes at most {most}.",
            wanted=wanted,
            name=checkpoint.name,
            most=most,
        )
        session.add_note(said)
    st.session_state[session.MAX_NEW] = min(max(wanted, 1), most)
