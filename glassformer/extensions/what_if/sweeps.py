"""Sweep of a change over its amounts (rank, features): plot of errors of maps and output; operations it saves.

    error of maps       half the sum of a row's |differences|: the share of weight that lies elsewhere
    error of output     the same of the next token's probabilities; of an encoder-only model |difference| / |vector|

Source: as of the changes; Choromanski et al. (2021), section 2, and Wang et al. (2020), section 4, for fewer products.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch

from glassformer.charts import theme
from glassformer.charts.grammar import stroke
from glassformer.charts.marks import Places, Scale, Series, lines
from glassformer.extensions.what_if.interventions.compression_changes import ProjectedKeys
from glassformer.extensions.what_if.interventions.mask_changes import LocalWindow
from glassformer.extensions.what_if.interventions.score_changes import RandomFeatures
from glassformer.runs.picture import Plot
from transformer.errors import QueryError
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention
from transformer.runs.interventions.fields import spelled
from transformer.runs.query import Query, Runnable
from transformer.runs.reading import WEIGHTS
from transformer.runs.running import replay
from transformer.runs.trace import Trace

MOST: Final = 1024  # of whole numbers
ROUNDING: Final = 1e-5  # an error below it is none
HOW_TO_READ: Final = say(
    "Maps: the share of a row's weight that this change alone moves elsewhere, on average. Output: the same of the "
    "next token's probabilities (in an encoder-only model, how far its vectors move, as a share of their length), on "
    "the tokens of the unchanged run. The larger mark is the chosen amount."
)


def amounts(change: Intervention) -> list[Any]:
    """Its own amount among others, in order: all words of a choice, tenths of a range, or powers of two."""
    spelling, own = spelled(change)[change.swept][1], getattr(change, change.swept)
    if spelling.options:
        return sorted(spelling.options, key=float)
    tenths = [round(float(one), 6) for one in np.linspace(spelling.least, spelling.most, 11)]
    powers = [n for n in (2**n for n in range(64)) if spelling.least <= n <= min(spelling.most, MOST)]
    return sorted({own, *(tenths if spelling.what == "number" else powers)})


def sweep(checkpoint: Runnable, trace: Trace, change: Any, pause: Callable[[], None] = lambda: None) -> np.ndarray:
    """Amounts of a change alone, with errors of maps and output on an unchanged run's tokens [3, n]; NaN for no number.

    It ends at a number beyond which nothing changes any more.
    """
    before, found = readings(checkpoint, trace, trace.query), [(0.0, np.inf, np.inf)]
    for amount in amounts(change):
        pause()
        changed = replace(trace.query, interventions=(replace(change, **{change.swept: amount}),))
        try:
            maps, output = map(apart, before, readings(checkpoint, trace, changed))
        except QueryError:
            maps = output = np.nan
        moved = max(abs(maps - found[-1][1]), abs(output - found[-1][2]))
        found.append((float(amount), maps, output))
        if type(amount) is int and amount >= getattr(change, change.swept) and min(maps + output, moved) < ROUNDING:
            break
    return np.array(found[1:]).T


def readings(checkpoint: Runnable, trace: Trace, query: Query) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """A query's maps of a run's tokens [H, Q, K], and probabilities of its steps [T, V], or an encoder's vectors."""
    output = "logits" if anatomy(checkpoint.config).writes else "encoder.output"
    values = replay(checkpoint, replace(trace, query=query), [WEIGHTS, output])
    rows = torch.tensor(values.pop(output)[trace.first_row :], dtype=torch.float64)
    return [values[site] for site in sorted(values)], [(rows.softmax(-1) if output == "logits" else rows).numpy()]


def apart(before: list[np.ndarray], after: list[np.ndarray]) -> float:
    """The mean error of rows: shares that lie elsewhere; of vectors, which may be negative, the relative distance."""
    order, share = (2, 1.0) if any((one < 0).any() for one in before) else (1, 0.5)
    pairs = [np.linalg.norm([b - a, a], order, axis=-1) for a, b in zip(before, after, strict=True)]
    return share * float(np.mean([(moved / np.maximum(length, ROUNDING)).mean() for moved, length in pairs]))


def error_plot(found: np.ndarray, change: Intervention) -> Plot:
    """The error of maps and of the output by amount."""
    spelling, own = spelled(change)[change.swept][1], float(getattr(change, change.swept))
    at, maps, output = found
    whole = spelling.what == "whole" and at[0] > 0
    look: dict[str, Any] = {"type": "log", "tickvals": at} if whole else {"tickformat": "~g"}
    colours = {say("Maps"): (maps, theme.SOURCE_COLOR), say("Output"): (output, theme.TARGET_COLOR)}
    series = [
        Series(name, values, stroke(colour, 2, size=7), chosen=at.tolist().index(own))
        for name, (values, colour) in colours.items()
    ]
    across = Places(spelling.label, at, say("{what}: {amount}", what=spelling.label, amount="%{x}"), look)
    up = Scale(say("Error"), {"rangemode": "tozero"})
    return Plot(**lines(say("Error by amount"), across, up, series, height=280, top=78), how_to_read=HOW_TO_READ)


def costs(change: Intervention, trace: Trace, config: ModelConfig) -> np.ndarray | None:
    """Operations and numbers in memory [2] of the changed attentions, before and after [2]; None if not counted.

    An operation is one multiplication or addition of q k^T or weights V, at cells that masks leave open.
    """
    if not isinstance(change, LocalWindow | RandomFeatures | ProjectedKeys):
        return None
    total = np.zeros((2, 2), np.int64)
    for one, layer in ((each, n) for each in change.chosen(config) for n in range(each.n_layers)):
        mask, d = torch.tensor(trace.mask(one.kind, layer)), config.of(one.stack).d_head
        (n_queries, n_keys), pairs = mask.shape, int(mask.sum())
        if isinstance(change, LocalWindow):
            seen = int((mask & change.sees(torch.arange(n_queries)[:, None], torch.arange(n_keys))).sum())
            after = 4 * seen * d, seen
        else:  # both make r numbers for each query, and with all keys r rows of d
            r, state = (change.n, n_keys + d) if isinstance(change, RandomFeatures) else (change.rows, 2 * d)
            after = 4 * r * d * (n_queries + n_keys), r * (n_queries + state)
        total += config.of(one.stack).n_heads * np.array([(4 * pairs * d, pairs), after])
    return total


def costs_in_words(change: Intervention, trace: Trace, config: ModelConfig) -> Sentence | None:
    """What a change would save at this length, or cost."""
    found = costs(change, trace, config)
    if found is None or not found[0].all():
        return None
    (before, kept), (after, left) = found.tolist()
    said = say(
        "Counted at this length, in the attentions that change: {before:,} → {after:,} operations ({share:.0%}), "
        "{kept:,} → {left:,} numbers in memory ({rest:.0%}). The app itself computes whole maps and gets no faster.",
        before=before,
        after=after,
        share=after / before,
        kept=kept,
        left=left,
        rest=left / kept,
    )
    more = say("At {n:.1f} times this length, both would take as many operations.", n=after / before)
    return joined(" ", [said, *[more] * (after > before)])
