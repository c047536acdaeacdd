"""The sidebar: which checkpoint, how it decodes, and what a class may see."""

from __future__ import annotations

import random
from collections.abc import Callable

import streamlit as st

from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.model.anatomy import anatomy
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
        chooses_head: Whether the decoder layer and head whose attention is shown are chosen here.
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
        parts = anatomy(checkpoint.config)
        if shows_run and parts.writes:
            _decoding(checkpoint)
            if chooses_head:
                _attention(parts.stack("decoder").n_layers, checkpoint.config.n_heads)
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
        session.stand(MAIN, revision="", forced=(), hypothesis=0, interventions=())
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
    own = Beam()
    _setting(st.slider, "Beams", 1, MAX_BEAM, key=session.BEAM_SIZE, value=own.size, step=1)
    _setting(
        st.slider, "Length penalty", 0.0, 2.0, key=session.LENGTH_PENALTY, value=own.length_penalty, step=0.1,
        help="0 compares bare log-probabilities; higher prefers longer outputs.",
    )  # fmt: skip


def _sampling() -> None:
    own = Sampling()
    _setting(
        st.slider, "Temperature", 0.05, 5.0, key=session.TEMPERATURE, value=own.temperature, step=0.05,
        help="Below 1 sharpens, above 1 flattens.",
    )  # fmt: skip
    _setting(
        st.number_input, "Top-k", 0, MAX_TOP_K, key=session.TOP_K, value=own.top_k, step=1, help="0 keeps all pieces."
    )
    _setting(st.slider, "Top-p", 0.01, 1.0, key=session.TOP_P, value=own.top_p, step=0.01, help="1 keeps all pieces.")
    _setting(
        st.number_input, "Seed", 0, MAX_SEED, key=session.SEED, value=own.seed, step=1,
        help="The same seed draws the same output.",
    )  # fmt: skip
    st.button("Draw again", on_click=_new_seed, icon=":material/casino:", width="stretch")


def _setting(
    widget: Callable[..., object], label: str, least: float, most: float, *, key: str, value: float, step: float,
    help: str | None = None,
) -> None:  # fmt: skip
    """Draw a number of the way of decoding; another one is another run."""
    st.session_state.setdefault(key, value)
    widget(label, least, most, step=step, key=key, on_change=session.new_run, persist_state=KEEP, help=help)


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
