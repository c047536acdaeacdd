"""What the tokens of a run start from: embedding, position and their sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import charts
from charts.embedding import HOW_TO_READ_ROWS, HOW_TO_READ_STRENGTHS, Strengths
from transformer.analysis.stream import rms
from ui.frame.sentence import Still, one_token, sentence
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import STACKS
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import place_of
from ui.state.view import Side
from words import joined, say

STRENGTHS = "embedding_strengths"
ROWS = "embedding_rows"
TOKEN = "embedding_token"

_AXES: dict[Side, str] = {"source": say("Source piece"), "target": say("Output piece read")}
_PLACES: dict[Side, str] = {"source": "key", "target": "query"}


@dataclass(frozen=True)
class Start:
    """What the tokens of one side start from; each array is [token, d_model]."""

    pieces: list[str]  # the tokens that may be seen
    embedding: np.ndarray  # rows of the table of embeddings
    scale: float  # what the model multiplies them by
    tokens: np.ndarray  # after that
    positions: np.ndarray  # rows of the table of positions
    total: np.ndarray  # their sum, as the first layer reads it


def start_of(run: OpenRun) -> Start:
    """What the side that is looked at starts from; in guess mode without the tokens that are still to come.

    Raises:
        QueryError: What the run read is not finite.
        BusyError: The model has too much to do.
    """
    side, stack = run.view.side, STACKS[run.view.side]
    values = loading.replay(run.checkpoint, run.trace, [f"{stack}.embedding.*"])
    shown = len(run.trace.src_pieces) if side == "source" else run.looking.n_rows
    pieces = run.trace.src_pieces if side == "source" else run.trace.read_pieces
    tokens, positions, total = (
        values[f"{stack}.embedding.{name}"][:shown] for name in ("tokens", "positions", "output")
    )
    scale = float(run.checkpoint.model.stack(stack).embedding.scale)
    return Start(list(pieces[:shown]), tokens / np.float32(scale), scale, tokens, positions, total)


def draw(run: OpenRun) -> None:
    """Draw the sentence, how large the vectors of its tokens are, and those of one token."""
    on_source = run.view.side == "source"
    sentence(run, compact=True, still=one_token(run, run.view.key or 0) if on_source else Still())
    start = attempt(lambda: start_of(run))
    if start is None:
        return
    chosen = _choose_token(run, start)
    _strengths(run, start, chosen)
    st.markdown(drawing.plain(_who_drowns_whom(start)))
    _rows(run, start, chosen)


def _who_drowns_whom(start: Start) -> str:
    raw, token, position, total = (
        float(rms(vectors).mean()) for vectors in (start.embedding, start.tokens, start.positions, start.total)
    )
    d_model = start.embedding.shape[1]
    if start.scale == 1:
        sizes = say(
            "Root mean square, averaged over these tokens: the embedding has {raw:.3f}, and this model adds it as "
            "it is (not times √{d_model} = {factor:.4g}); the position has {position:.3f}, their sum {total:.3f}.",
            raw=raw,
            d_model=d_model,
            factor=np.sqrt(d_model),
            position=position,
            total=total,
        )
        return joined(" ", [sizes, _compared(token, position)])
    sizes = say(
        "Root mean square, averaged over these tokens: the embedding has {raw:.3f}, times √{d_model} = "
        "{factor:.4g} it has {token:.3f}; the position has {position:.3f}, their sum {total:.3f}.",
        raw=raw,
        d_model=d_model,
        factor=np.sqrt(d_model),
        token=token,
        position=position,
        total=total,
    )
    return joined(" ", [sizes, _compared(token, position), _compared_without(raw, position)])


def _compared(token: float, position: float) -> str:
    if min(token, position) <= 0:
        return say("So one of the two is 0.")
    if token >= position:
        return say("So the token is {times:.1f} times as large as its position.", times=token / position)
    return say("So the position is {times:.1f} times as large as its token.", times=position / token)


def _compared_without(token: float, position: float) -> str:
    if min(token, position) <= 0:
        return say("Without the factor one of the two is 0.")
    if token >= position:
        return say(
            "Without the factor the token is {times:.1f} times as large as its position.", times=token / position
        )
    return say("Without the factor the position is {times:.1f} times as large as its token.", times=position / token)


def _choose_token(run: OpenRun, start: Start) -> int:
    """Draw the choice of a token; it is the row or column that is looked at on other pages."""
    kept = choices.field(run.slot, _PLACES[run.view.side], key=TOKEN)
    pieces = {place: say("Token {n}: {piece}", n=place + 1, piece=piece) for place, piece in enumerate(start.pieces)}
    own = min(kept.value or 0, len(pieces) - 1)
    return choices.menu(kept, say("Token"), pieces, otherwise=own, bare=True, width=240)


def _strengths(run: OpenRun, start: Start, chosen: int) -> None:
    slot, side, key = run.slot, run.view.side, run.key(STRENGTHS)
    strengths = [
        *(Strengths(name, rms(vectors)) for name, vectors in _embeddings(start)),
        Strengths(say("position"), rms(start.positions)),
        Strengths(say("sum"), rms(start.total)),
    ]
    figure = charts.embedding_strengths_spec(
        start.pieces,
        strengths,
        chosen=chosen,
        title=say("Length of embedding and position vectors"),
        token_axis=_AXES[side],
        colour=side,
    )
    field = _PLACES[side]
    follow = on_click(key, place_of, lambda token: session.replace(slot, **{field: token}))
    n = len(start.pieces)
    alt = say("Root mean square of embedding, position and sum for each of {n} tokens.", n=n)
    drawing.chart(figure, key=key, alt=alt, how_to_read=HOW_TO_READ_STRENGTHS, fit=True, on_click=follow)


def _embeddings(start: Start) -> list[tuple[str, np.ndarray]]:
    """The embedding, and what becomes of it if the model multiplies it."""
    scaled = [(say("{scale:.4g} × embedding", scale=start.scale), start.tokens)] if start.scale != 1 else []
    return [(say("embedding"), start.embedding), *scaled]


def _rows(run: OpenRun, start: Start, chosen: int) -> None:
    position = say("position, p = {p}", p=chosen)
    rows = [*_embeddings(start), (position, start.positions), (say("sum"), start.total)]
    piece = start.pieces[chosen]
    figure = charts.embedding_rows_spec(
        np.stack([vectors[chosen] for _, vectors in rows]),
        [name for name, _ in rows],
        title=say("What token {n}, {piece}, starts from", piece=piece, n=chosen + 1),
    )
    alt = say("Embedding, position and sum of token {piece}, one column a dimension.", piece=piece)
    drawing.chart(figure, key=run.key(ROWS), alt=alt, how_to_read=HOW_TO_READ_ROWS)
