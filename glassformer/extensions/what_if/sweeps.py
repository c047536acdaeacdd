"""The error that a change makes over its amount, such as a rank or a number of features; what it would save, counted.

    error of maps       half the sum of all |differences| of a row's weights: the share of weight that lies elsewhere
    error of output     the same of the next token's probabilities; of an encoder alone, |difference| / |vector|

Both are means over rows; those of maps are over all heads and layers, too. An operation is one multiplication or
addition; of attention, those of q k^T and weights V are counted, at cells that masks leave open.

Source: as for the changes, `glassformer.extensions.what_if.interventions`; Choromanski et al. (2021), section 2.3, for
the order of products in linear attention; Wang et al. (2020), section 4, for projected keys.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final

import numpy as np
import torch

from glassformer.charts import theme
from glassformer.charts.marks import Places, Scale, Series, lines
from glassformer.extensions.what_if.interventions.compression_changes import LowRankFeedForward, ProjectedKeys
from glassformer.extensions.what_if.interventions.mask_changes import LocalWindow
from glassformer.extensions.what_if.interventions.score_changes import RandomFeatures
from glassformer.runs.picture import Plot
from transformer.errors import QueryError
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.array_records import ArrayRecord
from transformer.runs.interventions import Intervention
from transformer.runs.interventions.fields import spelled
from transformer.runs.query import Runnable
from transformer.runs.reading import WEIGHTS
from transformer.runs.running import replay
from transformer.runs.trace import Trace

MOST: Final = 1024  # of whole numbers
ROUNDING: Final = 1e-5  # an error below it is none


@dataclass(frozen=True, eq=False)
class Sweep(ArrayRecord):
    """The error by amount; NaN where a run has no finite numbers."""

    amounts: np.ndarray  # in order [n]
    maps: np.ndarray  # [n]
    outputs: np.ndarray  # [n]


def amounts(change: Intervention) -> list[Any]:
    """Its own amount among others, in order: tenths of a range, powers of two, or all words of a choice."""
    spelling, own = spelled(change)[change.swept][1], getattr(change, change.swept)
    if spelling.options:
        return sorted(spelling.options, key=float)
    if spelling.what == "number":
        return sorted({own, *(round(float(one), 6) for one in np.linspace(spelling.least, spelling.most, 11))})
    powers = takewhile(lambda n: n <= min(spelling.most, MOST), (2**n for n in range(64)))
    return sorted({own, *(n for n in powers if n >= spelling.least)})


def sweep(checkpoint: Runnable, trace: Trace, change: Intervention, pause: Callable[[], None] = lambda: None) -> Sweep:
    """Measure a change alone on an unchanged run's tokens; numbers beyond one that changes nothing are left out."""
    before, found = _maps_and_output(checkpoint, trace, ()), list[tuple[Any, ...]]()
    for amount in amounts(change):
        pause()
        try:
            changed: Intervention = replace(change, **{change.swept: amount})  # type: ignore[arg-type]
            after = _maps_and_output(checkpoint, trace, (changed,))
            errors = [float(np.mean(list(map(_elsewhere, *pair)))) for pair in zip(before, after, strict=True)]
        except QueryError:
            errors = [np.nan, np.nan]
        found.append((float(amount), *errors))
        if type(amount) is int and amount >= getattr(change, change.swept) and _goes_on_alike(found):
            break
    return Sweep(*map(np.array, zip(*found, strict=True)))


def _goes_on_alike(found: list[tuple[Any, ...]]) -> bool:
    """Whether the last errors are 0 or those before, as a larger number then makes no difference."""
    *_, maps, output = found[-1]
    before = found[-2][1:] if len(found) > 1 else (np.inf, np.inf)
    return max(maps, output) < ROUNDING or max(abs(maps - before[0]), abs(output - before[1])) < ROUNDING


def _maps_and_output(
    checkpoint: Runnable, trace: Trace, changes: tuple[Intervention, ...]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The maps of each attention and layer [H, Q, K], and what the error of the output is of [T, V] or [S, D]."""
    writes = anatomy(checkpoint.config).writes
    changed = replace(trace, query=replace(trace.query, interventions=changes))
    values = replay(checkpoint, changed, [WEIGHTS, "logits" if writes else "encoder.output"])
    rows = torch.tensor(values.pop("logits" if writes else "encoder.output")[trace.first_row :], dtype=torch.float64)
    return [values[site] for site in sorted(values)], [(rows.softmax(-1) if writes else rows).numpy()]


def _elsewhere(before: np.ndarray, after: np.ndarray) -> float:
    """The error of rows: shares that lie elsewhere, or of vectors, which do not sum to 1, the relative distance."""
    if (before < 0).any():
        return float((np.linalg.norm(after - before, axis=-1) / np.linalg.norm(before, axis=-1)).mean())
    return float(np.abs(after - before).sum(-1).mean() / 2)


def error_plot(found: Sweep, change: Intervention) -> Plot:
    """The error of maps and of the output by amount; the change's own has larger marks."""
    label = spelled(change)[change.swept][1].label
    own = int(np.flatnonzero(found.amounts == float(getattr(change, change.swept)))[0])
    series = [
        Series(name, values, {"marker": {"color": colour, "size": 7}, "line": {"color": colour}}, chosen=own)
        for name, values, colour in (
            (say("Maps"), found.maps, theme.SOURCE_COLOR), (say("Output"), found.outputs, theme.TARGET_COLOR)
        )
    ]  # fmt: skip
    whole = spelled(change)[change.swept][1].what == "whole" and found.amounts[0] > 0
    look: dict[str, Any] = {"type": "log", "tickvals": found.amounts} if whole else {}
    across = Places(label, found.amounts, say("{what}: {amount}", what=label, amount="%{x}"), look)
    drawn = lines(say("Error by amount"), across, Scale(say("Error"), {"rangemode": "tozero"}), series,
                  height=280, top=78)  # fmt: skip
    return Plot(**drawn, how_to_read=HOW_TO_READ)


HOW_TO_READ: Final = say(
    "Maps: the share of a row's weight that lies elsewhere than without the change, on average over all rows, heads "
    "and layers. Output: the same of the next token's probabilities (in an encoder alone, how far its vectors move, "
    "as a share of their length). Both are of this change alone, on the tokens of the unchanged run. The larger mark "
    "is the chosen amount."
)

# ------------------------------------------------------------------------------------------------ savings


def costs(change: Intervention, trace: Trace, config: ModelConfig) -> np.ndarray | None:
    """Operations and numbers in memory [2] of what is changed: before and after [2]; None if neither is counted."""
    total = np.zeros((2, 2), np.int64)
    if isinstance(change, LowRankFeedForward):
        for stack in change.stacks(config):
            full, low = config.d_model * config.of(stack).d_ff, change.rank * (config.d_model + config.of(stack).d_ff)
            n_maps = (2 + config.gated) * (anatomy(config).stack(stack).n_layers if change.layer is None else 1)
            total += [[n_maps * 2 * trace.n_tokens(stack) * n, n_maps * n] for n in (full, low)]
        return total
    if not isinstance(change, LocalWindow | RandomFeatures | ProjectedKeys):
        return None
    for one in change.chosen(config):
        own = config.of(one.stack)
        for layer in range(one.n_layers):
            mask = torch.from_numpy(trace.mask(one.kind, layer).copy())
            (n_queries, n_keys), pairs, d = mask.shape, int(mask.sum()), own.d_head
            after = 0, 0
            if isinstance(change, LocalWindow):
                seen = int((mask & change.sees(torch.arange(n_queries)[:, None], torch.arange(n_keys))).sum())
                after = 4 * seen * d, seen
            else:  # both make r numbers of each key, and read these instead
                r = change.n if isinstance(change, RandomFeatures) else change.rows
                kept = r * (n_queries + n_keys + d) if isinstance(change, RandomFeatures) else r * (n_queries + 2 * d)
                after = 4 * r * d * (n_queries + n_keys), kept
            total += own.n_heads * np.array([(4 * pairs * d, pairs), after])
    return total


def costs_in_words(change: Intervention, trace: Trace, config: ModelConfig) -> Sentence | None:
    """What a change would save at this length, or cost."""
    found = costs(change, trace, config)
    if found is None or not found[0].all():
        return None
    (before, kept), (after, left) = found.tolist()
    said = say(
        "Counted at this length, for what is changed: {before:,} → {after:,} operations ({share:.0%}), {kept:,} → "
        "{left:,} numbers in memory ({rest:.0%}). The app itself computes whole maps, so it is no faster.",
        before=before, after=after, share=after / before, kept=kept, left=left, rest=left / kept,
    )  # fmt: skip
    if after <= before or isinstance(change, LowRankFeedForward):
        return said
    more = say(
        "In a text {n:.1f} times as long, full attention would take as many operations; in a longer one, more.",
        n=after / before,
    )
    return joined(" ", [said, more])
