"""What the model writes by itself, beside the reference: where they part, and what each does after it."""

from __future__ import annotations

from typing import Final

import numpy as np

import charts
from charts.bands import place_in_bands
from charts.two_texts import HOW_TO_READ
from transformer.runs.parting import Parting
from transformer.runs.teacher_forcing import Score
from ui.forcing import reading
from ui.runs.open_run import OpenRun
from ui.shared import drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state.click import Click
from words import joined, say, say_n

TEXTS: Final = "forcing_texts"


def draw(run: OpenRun, score: Score) -> None:
    """Draw both texts, and say where they part; nothing where there is nothing to compare."""
    if score.parting is None:
        return
    trace, parted = run.trace, score.parting
    own = np.exp(trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)])
    figure = charts.two_texts_spec(
        (say("reference"), say("own output")),
        (score.pieces, trace.tgt_pieces),
        (score.probabilities.tolist(), own.tolist()),
        parts_at=parted.first,
        tail=parted.tail,
        title=say("The reference, and what the model writes by itself"),
    )
    st.markdown(joined(" ", told(run, score, parted, own)))
    key, first, lengths = run.key(TEXTS), figure["layout"]["meta"]["first"], (len(score), trace.n_steps)

    def read(click: Click) -> int | None:
        found = place_in_bands(click.index, n_rows=2, first=first)
        return found[1] if found is not None and found[1] < lengths[found[0]] else None

    drawing.chart(
        figure,
        key=key,
        alt=say("The {n} pieces of the reference above the {m} pieces of the model's own output.", n=len(score),
                m=trace.n_steps),
        how_to_read=HOW_TO_READ,
        on_click=on_click(key, read, reading.looking(run, score)),
    )  # fmt: skip


def told(run: OpenRun, score: Score, parted: Parting, own: np.ndarray) -> list[str]:
    """Where they part, how probable both are there, and whether they end alike.

    Args:
        run: What was written.
        score: Of the reference.
        parted: Where they part.
        own: Probability of each piece that was written.
    """
    trace = run.trace
    said: list[str] = []
    if trace.query.forced:
        said.append(
            say_n("You forced the first {n} piece of the output.", "You forced the first {n} pieces of the output.",
                  len(trace.query.forced))
        )  # fmt: skip
    if parted.first is None:
        said.append(say("**By itself the model writes the reference, piece for piece.**"))
    elif parted.first >= len(score):
        said.append(say("**As far as the reference goes the model writes the same by itself**, and then goes on."))
    elif parted.first >= trace.n_steps:
        said.append(
            say("**As far as the model's own output goes it is the reference**; it was cut off there, at {n} pieces.",
                n=trace.n_steps)
        )  # fmt: skip
    else:
        said += [_parting(run, score, parted.first, own), _after(run, score, parted)]
    said.append(
        say(
            "Log-probability of the reference {reference:.2f} nats over {n:,} pieces, of the own output {own:.2f} "
            "nats over {m:,}.",
            reference=score.log_prob,
            n=len(score),
            own=trace.log_prob,
            m=trace.n_steps,
        )
    )
    return said


def _parting(run: OpenRun, score: Score, place: int, own: np.ndarray) -> str:
    return say(
        "**They part at piece {n}**: the reference has {right}, p = {p:.3g}, and the model wrote {wrote}, p = "
        "{q:.3g}, after the same beginning.",
        n=place + 1,
        right=_bold(score.pieces[place]),
        p=float(score.probabilities[place]),
        wrote=_bold(run.trace.tgt_pieces[place]),
        q=float(own[place]),
    )


def _after(run: OpenRun, score: Score, parted: Parting) -> str:
    """How many pieces both end with; the end piece alone is no agreement."""
    ends = run.checkpoint.config.end_ids
    alike = parted.tail - (parted.tail > 0 and score.ids[-1] in ends)
    if not alike:
        return say("Behind that they do not end with the same pieces.")
    last = len(score) - (parted.tail - alike)
    return say_n(
        "Both end with the same {n} piece: “{pieces}”.",
        "Both end with the same {n} pieces: “{pieces}”.",
        alike,
        pieces=drawing.plain(" ".join(score.pieces[last - alike : last])),
    )


def _bold(piece: str) -> str:
    return joined("", ["**", drawing.plain(piece), "**"])
