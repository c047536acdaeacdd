"""The parts of the Checkpoints page: the card, the model's features, the list of folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import pandas as pd
import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import loading, panels


def card(checkpoint: Checkpoint) -> None:
    """Draw what the chosen checkpoint is, with its licence and what was odd about its files."""
    st.subheader(panels.plain(checkpoint.card.title or checkpoint.name))
    st.write(panels.plain(checkpoint.card.description))
    for warning in checkpoint.warnings:
        st.warning(panels.plain(warning), icon=":material/warning:")
    rows = {
        "Languages": " → ".join(filter(None, (checkpoint.card.source_language, checkpoint.card.target_language))),
        "Parameters": f"{checkpoint.config.count_parameters():,}",
        "Data": checkpoint.card.data,
        "Licence": checkpoint.card.licence,
        "Scores": "; ".join(map(_score, checkpoint.card.scores)),
        "Content hash": checkpoint.content_hash[:12],
    }
    st.table(_table(rows), hide_header=True)


def features(checkpoint: Checkpoint) -> None:
    """Draw the features of the chosen checkpoint's model, as config.json has them."""
    with st.expander("Features of the model (config.json)"):
        st.table(_table({name: _shown(value) for name, value in asdict(checkpoint.config).items()}), hide_header=True)


def folders() -> None:
    """Draw every folder that was found, the broken ones with their error."""
    st.subheader("Folders")
    entries = loading.entries()
    for entry in entries:
        if entry.error is None:
            st.markdown(f":material/check_circle: **{panels.plain(entry.name)}** {panels.plain(entry.title)}")
        else:
            st.error(f"**{panels.plain(entry.name)}** {panels.plain(entry.error)}", icon=":material/error:")
    st.caption(
        f"Your own checkpoints appear here when the app is started with `-- {loading.OPTION} DIR` or with the "
        f"environment variable `{loading.ENVIRONMENT}`."
    )


def _table(rows: dict[str, str]) -> pd.DataFrame:
    kept = {name: panels.plain(value) for name, value in rows.items() if value}
    return pd.DataFrame({"": list(kept.values())}, index=list(kept))


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _score(score: Mapping[str, object]) -> str:
    """One scoring in a line; BLEU of 0 is that of targets too short to have one."""
    numbers = [f"{name} {score[key]}" for key, name in (("bleu", "BLEU"), ("chrf", "chrF")) if score.get(key)]
    exact = score.get("exact")
    if isinstance(exact, float):
        numbers.append(f"{exact:.1%} exact")
    return f"{score.get('file', '')} ({score.get('decoding', '')}): {', '.join(numbers)}"
