"""The sidebar: which checkpoint, how it decodes, and what a class may see."""

from __future__ import annotations

import random

import streamlit as st

from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.runs.query import MAX_BEAM, MAX_NEW, MAX_SEED, MAX_SOURCE_CHARACTERS, MAX_TOP_K, Beam, Sampling
from ui.runs import loading
from ui.shared import choices, drawing
from ui.shared.choices import KEEP
from ui.state import session
from ui.state.link import DEFAULT_NEW
from ui.state.view import MAIN

HOW_NAMES = {"greedy": "Greedy", "beam": "Beam", "sampling": "Sampling"}


def sidebar(*, shows_run: bool = False, chooses_head: bool = False) -> Checkpoint:
    """Draw the sidebar and open the checkpoint that it names; stops the page if there is none.

    Args:
        shows_run: Whether the page shows a run: then decoding and what is hidden can be chosen.
        chooses_head: Whether the decoder layer and head whose cross-attention is shown are chosen here.
    """
    usable = loading.usable()
    if not usable:
        st.error("No checkpoint can be opened. The page Checkpoints says why.")
        st.stop()
    _settle_model(list(usable))
    st.session_state[session.DEFAULT_MODEL] = next(iter(usable))
    with st.sidebar:
        name = st.selectbox(
            "Checkpoint",
            list(usable),
            key=session.MODEL,
            format_func=lambda name: f"{usable[name].title or name} ({name})" if name in usable else name,
            on_change=session.change_model,
            persist_state=KEEP,
        )
    checkpoint = _open(usable[name])
    with st.sidebar:
        st.caption(drawing.plain(checkpoint.card.description))
        _mention_broken()
        if shows_run:
            _decoding(checkpoint)
            if chooses_head:
                _attention(checkpoint.config.n_decoder_layers, checkpoint.config.n_heads)
            _class_room()
    return checkpoint


def _open(entry: Entry) -> Checkpoint:
    """Open a checkpoint; if that fails say why in the page, as the sidebar may be closed."""
    try:
        return loading.open_checkpoint(entry)
    except (GlassformerError, OSError) as error:
        said = str(error) if isinstance(error, GlassformerError) else "Its folder cannot be read."
        st.error(drawing.plain(f"{entry.name} cannot be opened. {said} Choose another checkpoint."))
        st.stop()


def _settle_model(names: list[str]) -> None:
    """Put the default in the place of a checkpoint that is not there."""
    name = st.session_state.get(session.MODEL)
    if name in names:
        return
    if name:
        note = f"There is no checkpoint “{name[:60]}” that can be opened; {names[0]} is shown."
        session.add_note(note)
        session.stand(MAIN, revision="", forced=(), hypothesis=0)
        st.session_state[session.SOURCE] = None
    st.session_state[session.MODEL] = names[0]


def _mention_broken() -> None:
    broken = sum(entry.error is not None for entry in loading.entries())
    if broken:
        folders = "1 folder" if broken == 1 else f"{broken} folders"
        st.caption(f"{folders} cannot be opened: see the page Checkpoints.")


def _decoding(checkpoint: Checkpoint) -> None:
    st.subheader("Decoding", divider=False)
    choices.keep_label(session.HOW, HOW_NAMES.values())
    how = st.segmented_control(
        "How the next piece is chosen",
        list(HOW_NAMES),
        key=session.HOW,
        format_func=lambda name: HOW_NAMES[name],
        required=True,
        on_change=session.new_run,
        persist_state=KEEP,
    )
    if how == "beam":
        _beam()
    elif how == "sampling":
        _sampling()
    most = min(MAX_NEW, checkpoint.config.max_len)
    _limit_output(checkpoint, most)
    st.slider(
        "Most pieces to write",
        1,
        most,
        key=session.MAX_NEW,
        on_change=session.new_run,
        persist_state=KEEP,
        help=f"The source may have {MAX_SOURCE_CHARACTERS:,} characters and {checkpoint.config.max_len} pieces.",
    )


def _attention(n_layers: int, n_heads: int) -> None:
    """Draw the choice of a layer and a head, or of all together."""
    view = session.view()
    for name, asked, count in (("Layer", view.layer, n_layers), ("Head", view.head, n_heads)):
        if asked is not None and asked >= count:
            session.add_note(f"{name} {asked + 1} was asked for; this model has {count}. The mean is shown.")
    st.subheader("Attention shown", divider=False)
    choices.layer_and_head(MAIN, "Decoder layer", n_layers, n_heads)


def _class_room() -> None:
    st.subheader("In class", divider=False)
    choices.switch(
        choices.field(MAIN, "guess"),
        "Hide candidates until I guess",
        help="What comes next stays hidden until somebody has guessed it.",
    )


def _beam() -> None:
    st.session_state.setdefault(session.BEAM_SIZE, Beam().size)
    st.session_state.setdefault(session.LENGTH_PENALTY, Beam().length_penalty)
    st.slider("Beams", 1, MAX_BEAM, key=session.BEAM_SIZE, on_change=session.new_run, persist_state=KEEP)
    st.slider(
        "Length penalty",
        0.0,
        2.0,
        step=0.1,
        key=session.LENGTH_PENALTY,
        on_change=session.new_run,
        persist_state=KEEP,
        help="0 compares bare log-probabilities; higher prefers longer outputs.",
    )


def _sampling() -> None:
    for key, value in (
        (session.TEMPERATURE, Sampling().temperature),
        (session.TOP_K, Sampling().top_k),
        (session.TOP_P, Sampling().top_p),
        (session.SEED, Sampling().seed),
    ):
        st.session_state.setdefault(key, value)
    st.slider(
        "Temperature",
        0.05,
        5.0,
        step=0.05,
        key=session.TEMPERATURE,
        on_change=session.new_run,
        persist_state=KEEP,
        help="Below 1 sharpens, above 1 flattens.",
    )
    st.number_input(
        "Top-k",
        0,
        MAX_TOP_K,
        key=session.TOP_K,
        on_change=session.new_run,
        persist_state=KEEP,
        help="0 keeps all pieces.",
    )
    st.slider(
        "Top-p",
        0.01,
        1.0,
        step=0.01,
        key=session.TOP_P,
        on_change=session.new_run,
        persist_state=KEEP,
        help="1 keeps all pieces.",
    )
    st.number_input(
        "Seed",
        0,
        MAX_SEED,
        key=session.SEED,
        on_change=session.new_run,
        persist_state=KEEP,
        help="The same seed draws the same output.",
    )
    st.button("Draw again", on_click=_new_seed, icon=":material/casino:", width="stretch")


def _new_seed() -> None:
    st.session_state[session.SEED] = random.randrange(10_000)
    session.new_run()


def _limit_output(checkpoint: Checkpoint, most: int) -> None:
    wanted = st.session_state.get(session.MAX_NEW, DEFAULT_NEW)
    if wanted > most and wanted != DEFAULT_NEW:
        session.add_note(
            f"An output of up to {wanted} pieces was asked for; {checkpoint.name} writes at most {most}."
        )
    st.session_state[session.MAX_NEW] = min(max(wanted, 1), most)
