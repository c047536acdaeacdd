"""What the tokens of a run start from: embedding, position and their sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

import charts
from charts.embedding import HOW_TO_READ_ROWS, HOW_TO_READ_STRENGTHS, Strengths
from transformer.analysis.position_study import rms
from ui.frame.sentence import sentence
from ui.runs import loading
from ui.runs.open_run import OpenRun
from ui.runs.sides import STACKS
from ui.shared import choices, drawing
from ui.shared.clicks import on_click, place_of
from ui.state import session
from ui.state.view import Side

STRENGTHS = "embedding_strengths"
ROWS = "embedding_rows"
TOKEN = "embedding_token"

_AXES: dict[Side, str] = {"source": "Source piece", "target": "Output piece read"}
_PLACES: dict[Side, str] = {"source": "key", "target": "query"}


@dataclass(frozen=True)
class Start:
    """What the tokens of one side start from; each array is [token, d_model].

    Attributes:
        pieces: The tokens that may be seen.
        embedding: Rows of the table of embeddings.
        scale: What the model multiplies them by.
        tokens: After that.
        positions: Rows of the table of positions.
        total: Their sum, as the first layer reads it.
    """

    pieces: list[str]
    embedding: np.ndarray
    scale: float
    tokens: np.ndarray
    positions: np.ndarray
    total: np.ndarray


def start_of(run: OpenRun) -> Start:
    """What the side that is looked at starts from; in guess mode without the tokens that are still to come."""
    side, stack = run.view.side, STACKS[run.view.side]
    values = loading.replay(run.checkpoint, run.trace, [f"{stack}.embedding.*"])
    shown = len(run.trace.src_pieces) if side == "source" else run.looking.n_rows
    pieces = run.trace.src_pieces if side == "source" else run.trace.read_pieces
    tokens, positions, total = (
        values[f"{stack}.embedding.{name}"][:shown] for name in ("tokens", "positions", "output")
    )
    scale = float(getattr(run.checkpoint.model, stack).embedding.scale)
    return Start(list(pieces[:shown]), tokens / np.float32(scale), scale, tokens, positions, total)


def draw(run: OpenRun) -> None:
    """Draw the sentence, how large the vectors of its tokens are, and those of one token."""
    sentence(run, compact=True)
    start = start_of(run)
    st.markdown(drawing.plain(_who_drowns_whom(start)))
    chosen = _choose_token(run, start)
    _strengths(run, start, chosen)
    _rows(run, start, chosen)


def _who_drowns_whom(start: Start) -> str:
    raw, token, position, total = (
        float(rms(vectors).mean()) for vectors in (start.embedding, start.tokens, start.positions, start.total)
    )
    d_model = start.embedding.shape[1]
    times = f"times √{d_model} = {np.sqrt(d_model):.4g}"
    scaled = (
        f"{raw:.3f}, {times} it has {token:.3f}"
        if start.scale != 1
        else f"{raw:.3f}, and this model adds it as it is (not {times})"
    )
    without = f" Without the factor {_compare(raw, position)}." if start.scale != 1 else ""
    return (
        f"Root mean square in the mean over these tokens: the embedding has {scaled}; the position has "
        f"{position:.3f}, their sum {total:.3f}. So {_compare(token, position)}.{without}"
    )


def _compare(token: float, position: float) -> str:
    if min(token, position) <= 0:
        return "one of the two is 0"
    if token >= position:
        return f"the token is {token / position:.1f} times as large as its position"
    return f"the position is {position / token:.1f} times as large as its token"


def _choose_token(run: OpenRun, start: Start) -> int:
    """Draw the choice of a token; it is the row or column that is looked at on other pages."""
    kept = choices.field(run.slot, _PLACES[run.view.side], key=TOKEN)
    pieces = {token: f"{token}: {piece}" for token, piece in enumerate(start.pieces)}
    return choices.menu(kept, "Token at position", pieces, otherwise=min(kept.value or 0, len(pieces) - 1), width=340)


def _strengths(run: OpenRun, start: Start, chosen: int) -> None:
    slot, side, key = run.slot, run.view.side, run.key(STRENGTHS)
    strengths = [
        *([Strengths("embedding", rms(start.embedding))] if start.scale != 1 else []),
        Strengths(_scaled_name(start), rms(start.tokens)),
        Strengths("position", rms(start.positions)),
        Strengths("sum", rms(start.total)),
    ]
    figure = charts.embedding_strengths_spec(
        start.pieces,
        strengths,
        chosen=chosen,
        title="Who drowns whom",
        token_axis=_AXES[side],
        colour=side,
    )

    field = _PLACES[side]
    follow = on_click(key, place_of, lambda token: session.replace(slot, **{field: token}))
    alt = f"Root mean square of embedding, position and sum for each of {len(start.pieces)} tokens."
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ_STRENGTHS, on_click=follow)


def _scaled_name(start: Start) -> str:
    return "embedding" if start.scale == 1 else f"{start.scale:.4g} × embedding"


def _rows(run: OpenRun, start: Start, chosen: int) -> None:
    rows = {"embedding": start.embedding, _scaled_name(start): start.tokens}
    rows |= {f"position {chosen}": start.positions, "sum": start.total}
    figure = charts.embedding_rows_spec(
        np.stack([vectors[chosen] for vectors in rows.values()]),
        list(rows),
        title=f"What {start.pieces[chosen]} at position {chosen} starts from",
    )
    alt = f"Embedding, position and sum of token {start.pieces[chosen]}, one column a dimension."
    drawing.chart(figure, key=run.key(ROWS), alt=alt, how_to_read=HOW_TO_READ_ROWS)
