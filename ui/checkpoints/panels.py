"""The parts of the Checkpoints page: the card, the model's features, the list of folders."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd
import streamlit as st

from charts.theme import shortened
from transformer.checkpoint.load import Checkpoint
from transformer.model.config import ModelConfig
from ui.checkpoints import training
from ui.frame.source_box import EXAMPLE_CHARACTERS
from ui.runs import loading
from ui.shared import drawing, style

MOST_EXAMPLES = 8
BROKEN = "cannot be opened: see the top of the page."


def card(checkpoint: Checkpoint) -> None:
    """Draw what the chosen checkpoint is, with its licence and what was odd about its files."""
    about = checkpoint.card
    st.subheader(drawing.plain(about.title or checkpoint.name))
    st.write(drawing.plain(about.description))
    for warning in checkpoint.warnings:
        st.warning(drawing.plain(warning), icon=":material/warning:")
    attribution = about.other.get("attribution")
    rows = {
        "Languages": " → ".join(filter(None, (about.source_language, about.target_language))),
        "Model": in_short(checkpoint.config),
        "Parameters": f"{checkpoint.config.count_parameters():,}",
        "Trained for": training.effort(about.training),
        "Data and attribution": about.data,
        "Attribution": attribution if isinstance(attribution, str) else "",
        "Licence": about.licence,
        "Examples": _examples(checkpoint),
        "Content hash": checkpoint.content_hash[:12],
    }
    with st.container(key=style.CARD):
        st.table(_table(rows), hide_header=True)


def in_short(config: ModelConfig) -> str:
    """A model in one sentence."""
    c = config
    source, target = f"{c.src_vocab_size:,}", f"{c.tgt_vocab_size:,}"
    pieces = (
        f"one vocabulary of {source} pieces for both sides"
        if c.shared_vocab
        else f"vocabularies of {source} source and {target} target pieces"
    )
    return (
        f"{c.n_encoder_layers} encoder and {c.n_decoder_layers} decoder layers of width {c.d_model}, "
        f"{c.n_heads} heads in each attention, {pieces}, at most {c.max_len} pieces a side"
    )


def _examples(checkpoint: Checkpoint) -> str:
    found = checkpoint.card.tried()
    some = [shortened(" ".join(example.split()), limit=EXAMPLE_CHARACTERS) for example in found]
    more = len(some) - MOST_EXAMPLES
    return " · ".join(some[:MOST_EXAMPLES]) + (f" · and {more} more" if more > 0 else "")


def features(checkpoint: Checkpoint) -> None:
    """Draw the features of the chosen checkpoint's model, as config.json has them."""
    with st.expander("Features of the model (config.json)"):
        st.table(_table({name: _shown(value) for name, value in asdict(checkpoint.config).items()}), hide_header=True)


def broken() -> None:
    """Draw why folders cannot be opened; whoever comes for that finds it on top."""
    for entry in loading.entries():
        if entry.error is not None:
            st.error(f"**{drawing.plain(entry.name)}** {drawing.plain(entry.error)}", icon=":material/error:")


def folders() -> None:
    """Draw every folder that was found."""
    st.subheader("Folders")
    for entry in loading.entries():
        icon, said = (":material/check_circle:", entry.title) if entry.error is None else (":material/error:", BROKEN)
        st.markdown(f"{icon} **{drawing.plain(entry.name)}** {drawing.plain(said)}")
    st.caption(
        f"Your own checkpoints appear here when the app is started with `-- {loading.OPTION} DIR` or with the "
        f"environment variable `{loading.ENVIRONMENT}`."
    )


def _table(rows: dict[str, str]) -> pd.DataFrame:
    kept = {name: drawing.plain(value) for name, value in rows.items() if value}
    return pd.DataFrame({"": list(kept.values())}, index=list(kept))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
