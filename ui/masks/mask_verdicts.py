"""What the Masks page says about its checks: whether each mask does what it is for, and the numbers.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import numpy as np

from transformer.analysis.mask_checks import Movement
from ui.masks.scene import Batch
from ui.shared.numbers import powers
from words import joined, say, say_n


def about_rounding(moved: Movement, *, logits: bool) -> str:
    """What difference of logits, or of the vectors of an encoder alone, counts as rounding, and why."""
    spacing, rounding = (powers(f"{number:.1e}") for number in (moved.spacing, moved.rounding))
    largest = (
        say(
            "The largest logit here is {largest:.2f}; float32 numbers of that size lie {spacing} apart.",
            largest=moved.largest,
            spacing=spacing,
        )
        if logits
        else say(
            "The largest number here is {largest:.2f}; float32 numbers of that size lie {spacing} apart.",
            largest=moved.largest,
            spacing=spacing,
        )
    )
    steps = say(
        "Sums taken in another order differ by a few such steps, so up to 16 steps, {rounding}, count as rounding.",
        rounding=rounding,
    )
    return joined(" ", [largest, steps])


def nothing_later(batch: Batch) -> str:
    """Why there is no later piece to change."""
    if not batch.parts.writes:
        return say("This model is an encoder alone: it has no causal mask, and every row may see what comes later.")
    if not batch.parts.reads:
        return say("There is no later piece to change: the prompt is one piece, and nothing after it is read.")
    return say("There is no later piece to change: the decoder reads only the start mark.")


def no_pad_fits(batch: Batch, most: int) -> str:
    """Why no pad can be added to what has `most` pieces."""
    if not batch.parts.reads:
        return say(
            "No pad fits: the model reads at most {most} pieces, and prompt and output have them. Let it "
            "write fewer.",
            most=most,
        )
    return say(
        "No pad fits: the model reads at most {most} pieces, and this sentence has them. Choose a shorter one.",
        most=most,
    )


def causality_verdict(moved: Movement, *, place: int, n_rows: int, n_sentences: int) -> tuple[bool, str]:
    """Whether the past stayed as it was when `place`, from 0, changed, and the numbers; `n_rows` are no padding."""
    before, after = moved.kept[:place].max(), moved.kept[place:n_rows]
    held = bool(max(before, moved.elsewhere) <= moved.rounding)
    said = [
        say(
            "{earlier} moved by {before}, {later} by {after}.",
            earlier=_rows_first(place),
            before=amount(before),
            later=_rows(place, n_rows),
            after=_span(after),
        )
    ]
    if n_sentences > 1:
        said.append(say("Rows of the other sentences moved by {amount}.", amount=amount(moved.elsewhere)))
    if not held:
        said.append(say("That is more than rounding: earlier rows see what comes later."))
    elif before == 0:
        said.append(say("No earlier row knows of the change: the mask keeps the future closed."))
    else:
        said.append(say("That is rounding: the mask keeps the future closed."))
    said.append(
        say(
            "Without the causal mask {earlier} would move by up to {amount}.",
            earlier=_rows(0, place),
            amount=amount(moved.taken[:place].max()),
        )
    )
    return held, joined(" ", said)


def about_pads(*, of_source: bool, n_pads: int, logits: bool) -> str:
    """The title of a chart of what pads on one side move."""
    pads = say_n("{n} pad", "{n} pads", n_pads)
    if not logits:
        return say("{pads} after the source: how far each row's vector moves", pads=pads)
    if of_source:
        return say("{pads} after the source: how far each row's logits move", pads=pads)
    return say("{pads} after the target: how far each row's logits move", pads=pads)


def padding_verdict(moved: Movement, *, of_source: bool, n_pads: int, logits: bool) -> tuple[bool, str]:
    """Whether pads after one side change no logits, or vectors of an encoder alone, and the numbers."""
    most = moved.kept.max()
    held = bool(most <= moved.rounding)
    pads = say_n("{n} pad", "{n} pads", n_pads)
    side = say("source", about="side") if of_source else say("target", about="side")
    if most == 0 and logits:
        how_far = say(
            "With {pads} added to the {side} every logit stays exactly as it was, to the last bit.",
            pads=pads,
            side=side,
        )
    elif most == 0:
        how_far = say("With {pads} added every vector stays exactly as it was, to the last bit.", pads=pads)
    elif logits:
        how_far = say(
            "With {pads} added to the {side} logits move by at most {amount}.",
            pads=pads,
            side=side,
            amount=amount(most),
        )
    else:
        how_far = say("With {pads} added vectors move by at most {amount}.", pads=pads, amount=amount(most))
    said = [how_far]
    if most and held:
        said.append(say("That is rounding: pads change nothing but the order of sums."))
    elif most:
        said.append(say("That is more than rounding: pads are read."))
    return held, joined(" ", [*said, _without_padding_mask(moved, side=side, of_source=of_source)])


def _without_padding_mask(moved: Movement, *, side: str, of_source: bool) -> str:
    without = moved.taken.max()
    if without > moved.rounding:
        return say(
            "Without the {side} padding mask they would move by up to {amount}.", side=side, amount=amount(without)
        )
    if of_source:
        return say("Without the {side} padding mask it would be {amount} as well.", side=side, amount=amount(without))
    return say(
        "Without the {side} padding mask it would be {amount} as well: pads come after every real piece, so the "
        "causal mask alone hides them.",
        side=side,
        amount=amount(without),
    )


def amount(value: float) -> str:
    """A difference as the page writes it; only 0 itself is called so."""
    return say("exactly 0") if value == 0 else powers(f"{value:.2g}")


def _span(values: np.ndarray) -> str:
    low, high = amount(values.min()), amount(values.max())
    return low if low == high else say("{low} to {high}", low=low, high=high)


def _rows_first(end: int) -> str:
    """The rows from the first on, at the beginning of a sentence."""
    return say("Row 1") if end == 1 else say("Rows 1 to {last}", last=end)


def _rows(first: int, end: int) -> str:
    if end - first == 1:
        return say("row {n}", n=end)
    return say("rows {first} to {last}", first=first + 1, last=end)
