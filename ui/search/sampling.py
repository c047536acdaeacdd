"""Sampling, before the draw: what temperature, top-k and top-p make of the distribution of the step."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import charts
from charts.reshaped import HOW_TO_READ, Shares, others_named
from transformer.analysis.reshaping import Reshaped, Spread, reshaped, spread
from transformer.runs.distribution import best
from transformer.runs.query import Sampling
from ui.runs.open_run import OpenRun
from ui.search import settings
from ui.shared import drawing
from ui.shared.door import frame, st
from words import joined, say

CHART, TABLE = "search_before", "search_spreads"
MOST_ROWS: Final = 14
HIDDEN = say("What the model could write here would give the answer away: reveal the step on the Step page first.")


def draw(run: OpenRun, row: Any) -> None:
    """Draw it.

    Args:
        run: What is looked at.
        row: Where the controls of the page stand; this part adds none.
    """
    if run.looking.covered:
        st.info(HIDDEN, icon=":material/visibility_off:")
        return
    how = settings.draw(run)
    step = run.view.step
    found = reshaped(run.trace.log_probs[step], run.trace.scores_at(step), how)
    drawing.beside(lambda: _chart(run, found), lambda: _numbers(run, found), widths=(3, 2))


def _chart(run: OpenRun, found: Reshaped) -> None:
    ids = _listed(run, found)
    kept = [i for i in ids if found.cut[i] > 0]
    whole = int((found.cut > 0).sum())
    rest = len(found.raw) - len(ids)
    figure = charts.reshaped_spec(
        [_row(run, found, i) for i in ids],
        others=(rest, _others(found, ids, rest)),
        border=len(kept) if whole == len(kept) < len(ids) else None,
        title=say("Step {n}: before the draw", n=run.view.step + 1),
    )
    drawing.chart(
        figure,
        key=run.key(CHART),
        alt=say("The likeliest pieces of step {n}, with three probabilities each: the model's own, after the "
                "temperature, and after the cut.", n=run.view.step + 1),
        how_to_read=HOW_TO_READ,
        fit=True,
    )  # fmt: skip


def _listed(run: OpenRun, found: Reshaped) -> list[int]:
    """The pieces that have a row: the likeliest of what is drawn from, and the one that the run has."""
    listed = best(np.log(np.maximum(found.tempered, 1e-45)), min(MOST_ROWS, len(found.raw)))
    chosen = run.trace.tgt_ids[run.view.step]
    if _samples(run) and chosen not in listed:
        listed[-1] = chosen
    return listed


def _samples(run: OpenRun) -> bool:
    return isinstance(run.trace.query.decoding, Sampling) and run.view.step >= run.trace.n_forced


def _row(run: OpenRun, found: Reshaped, i: int) -> Shares:
    drawn = _samples(run) and i == run.trace.tgt_ids[run.view.step]
    said = [say("drawn by this run")] if drawn else []
    if found.raw[i] > 0 and found.tempered[i] == 0:
        said.append(say("closed by the model's settings, or too small to be told from 0"))
    elif found.by_k[i] == 0 < found.tempered[i]:
        said.append(say("cut off by top-k"))
    elif found.cut[i] == 0 < found.by_k[i]:
        said.append(say("cut off by top-p"))
    raw, tempered, cut = (float(one[i]) for one in (found.raw, found.tempered, found.cut))
    return Shares(run.trace.vocabulary[i], raw, tempered, cut, id=i, note=joined("; ", said), drawn=drawn)


def _others(found: Reshaped, ids: list[int], rest: int) -> Shares:
    raw, tempered, cut = (max(1.0 - float(one[ids].sum()), 0.0) for one in (found.raw, found.tempered, found.cut))
    some_left = bool((np.delete(found.cut, ids) > 0).any())
    return Shares(others_named(rest), raw, tempered, cut if some_left else 0.0)


def _numbers(run: OpenRun, found: Reshaped) -> None:
    """Draw the numbers of each distribution beside each other, and what follows from them."""
    stages = (
        (say("The model's own"), spread(found.raw)),
        (say("Tempered"), spread(found.tempered)),
        (say("Drawn from"), spread(found.cut)),
    )
    rows = [[name, f"{one.entropy:.2f}", f"{one.left:,}", f"{one.top:.4f}"] for name, one in stages]
    columns: list[str] = [
        say("Distribution"),
        say("Entropy (bits)"),
        say("Pieces left"),
        say("Probability of the likeliest"),
    ]
    st.container(key=run.key(TABLE)).table(
        frame(rows, columns=columns).set_index(frame([], columns=columns).columns[0])
    )
    st.markdown(drawing.plain(joined(" ", _said(run, found, *(one for _, one in stages)))))


def _said(run: OpenRun, found: Reshaped, raw: Spread, tempered: Spread, cut: Spread) -> list[str]:
    piece = run.trace.vocabulary
    said: list[str] = []
    if raw.best == tempered.best:
        said.append(say("“{piece}” is the likeliest at every temperature: dividing all scores by one number keeps "
                        "their order.", piece=piece[tempered.best]))  # fmt: skip
    else:
        said.append(
            say(
                "The model's own likeliest, “{closed}”, is closed or scored lower by the rules of its config; of "
                "what they leave, “{piece}” is the likeliest at every temperature.",
                closed=piece[raw.best],
                piece=piece[tempered.best],
            )
        )
    said.append(_of_temperature(found.how.temperature, raw, tempered))
    said.append(_of_cut(run, found, cut))
    return said


def _of_temperature(temperature: float, raw: Spread, tempered: Spread) -> str:
    if temperature == 1:
        return say("At temperature 1 the scores stay as they are.")
    return say(
        "At temperature {temperature:g} the entropy goes from {raw:.2f} to {tempered:.2f} bits.",
        temperature=temperature,
        raw=raw.entropy,
        tempered=tempered.entropy,
    )


def _of_cut(run: OpenRun, found: Reshaped, cut: Spread) -> str:
    away = 1 - float(found.tempered[found.cut > 0].sum())
    if not found.how.top_k and found.how.top_p == 1:
        barred = [run.trace.vocabulary[i] for i in run.trace.never_written if found.tempered[i] == 0]
        if len(barred) == 1:
            return say("Nothing is cut: every piece but “{piece}” may be drawn, which no output may hold.",
                       piece=barred[0])  # fmt: skip
        if barred:
            return say("Nothing is cut: every piece may be drawn but {n:,} that no output may hold, “{piece}” among "
                       "them.", n=len(barred), piece=barred[0])  # fmt: skip
        return say("Nothing is cut: every piece may be drawn, however improbable.")
    if cut.left == 1:
        return say("One piece is left, so that each draw gives it: as greedy decoding does.")
    by_k = int((found.by_k > 0).sum())
    if found.how.top_k and found.how.top_p < 1:
        return say("Top-k leaves {by_k:,} pieces and top-p {n:,} of these; what was cut had {away:.2%} together.",
                   by_k=by_k, n=cut.left, away=away)  # fmt: skip
    return say("{n:,} pieces are left; what was cut had {away:.2%} together.", n=cut.left, away=away)
