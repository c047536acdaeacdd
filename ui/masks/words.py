"""What the Masks page says about masks, in sentences.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import numpy as np

from transformer.analysis.mask_checks import BatchMasks, Movement
from ui.masks.batch import Batch
from ui.runs.sides import KIND_NAMES
from ui.shared.numbers import powers
from ui.state.view import MaskName

GUESSING = (
    "Guess mode: the target side is cut after the current step, and everything below is computed from what is left. "
    "To see more, go on to the next step on the page Step through decoding."
)
CONVERSION = """
# bool, True = may attend, to numbers that are added to the scores, and back
added = torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))
mask = added == 0
# to torch.nn.MultiheadAttention, where True = closed
torchs_own = ~mask
""".strip()
TORCH = (
    "The bool sign is not the same everywhere. Here, and in `F.scaled_dot_product_attention`, True means *may "
    "attend*; in torch's own `nn.MultiheadAttention` True means *may not attend*. A mask handed over without `~` "
    "opens exactly what it should close, and nothing raises an error."
)
MISTAKES = """
- **Two conventions, one inversion.** An additive causal mask (0 open, −∞ closed) given to code that closes where
  `mask == 0` turns causality round: query 1 sees only what comes after it, and the last query sees nothing.
  `pad & added.bool()` does not repair that: −∞ is True, 0 is False. Only `pad & (added == 0)` is right.
- **Bool and float do not combine.** `pad & added` raises an error, as `&` is for bool. Keep all masks bool and
  convert once, at the end.
- **Which axis?** Padding closes *keys*: `(ids != pad)[:, None, None, :]`. With `[:, None, :, None]` it closes the
  *queries* that are pads: real queries still read padding, and a row with every key closed has no softmax.
- **A mask of three axes.** `[batch, query, key]` lines its batch axis up with the *heads* of `[batch, head, query,
  key]`. If both happen to have the same size nothing raises an error, and head 2 gets sentence 2's mask.
- **No mask at all.** A decoder that is trained without the causal mask learns to copy the piece it should predict:
  its loss is perfect and its translations are useless.
"""


def about_batch(batch: Batch) -> str:
    """How long the sentences of the batch are, and who is padded."""
    n_sentences = len(batch.traces)
    if n_sentences == 1:
        return "One sentence alone needs no padding; put another one beside it to see padding at work."
    source = [batch.n_source(i) for i in range(n_sentences)]
    target = [batch.n_target(i) for i in range(n_sentences)]
    return (
        f"{n_sentences} sentences run as one batch. Source pieces: {_list(source)}, padded to {max(source)}. "
        f"Target positions: {_list(target)}, padded to {max(target)}."
    )


def _list(numbers: list[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def about_mask(name: MaskName, masks: BatchMasks, *, n_heads: int) -> str:
    """Shapes of a mask, and who takes it."""
    own, (n_batch, n_queries, n_keys) = masks.own(name).shape, masks.whole(name).shape
    whole = f"[batch {n_batch}, head {n_heads}, query {n_queries}, key {n_keys}]"
    shared = [f"all {n_heads} heads"]
    shared += ["all queries"] if own[2] == 1 < n_queries else []
    shared += ["all sentences"] if own[0] == 1 < n_batch else []
    who = {
        "source": f"{KIND_NAMES['encoder']} takes it",
        "target": f"{KIND_NAMES['decoder']} takes it together with the causal mask",
        "causal": f"{KIND_NAMES['decoder']} takes it together with the target padding mask",
        "decoder": f"{KIND_NAMES['decoder']} takes it: a key is seen where both masks allow it",
        "cross": f"{KIND_NAMES['cross']} takes it: source padding, seen by the queries of the target",
    }[name]
    return f"Own shape {list(own)}, broadcast to {whole}: the same for {_and(shared)}. {who}."


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def agreement(cells: int, different: int) -> str:
    """Whether the masks shown are those that the run recorded."""
    if different == 0:
        return f"Compared with the masks that attention recorded in this run: {cells:,} cells, none differs."
    return f"Compared with the masks that attention recorded in this run: {different:,} of {cells:,} cells differ."


def without_mask(batch: Batch) -> str:
    """Where decoding passes no mask at all."""
    padded = not batch.is_real("source").all()
    cross = (
        "this batch has padded sources, so cross-attention gets its mask at every step"
        if padded
        else "no source here is padded, so cross-attention gets None as well"
    )
    return (
        "These masks are those of the pass that reads the finished output at once. While it writes, with a key-value "
        "cache, the model passes None where nothing is closed: from the second piece on decoder self-attention gets "
        f"no mask, as the one new query sees all that was written; {cross}."
    )


def about_cell(scores: np.ndarray, allowed: np.ndarray, weights: np.ndarray, cell: tuple[int, int]) -> str:
    """The arithmetic of one cell: its score, what the mask adds, its weight.

    Args:
        scores, allowed, weights: `[key]`, of the cell's row.
        cell: Row and column, from 0.
    """
    query, key = cell
    score = float(scores[key])
    start = f"Query {query + 1}, key {key + 1}: the score is {_signed(score)}."
    if not allowed[key]:
        return f"{start} The mask adds −∞, exp(−∞) = 0, and so the weight is exactly 0, whatever the score."
    opened = scores[allowed].astype(np.float64)
    largest = float(opened.max())
    total = float(np.exp(opened - largest).sum())
    return (
        f"{start} The mask adds 0. With the largest open score {_signed(largest)} and Σ exp(score − "
        f"{_bracketed(largest)}) = {total:.4f} over the {len(opened)} open keys, the weight is "
        f"exp({_signed(score)} − {_bracketed(largest)}) / {total:.4f} = {float(weights[key]):.4f}."
    )


def _signed(number: float) -> str:
    return f"{number:.4f}".replace("-", "−")


def _bracketed(number: float) -> str:
    """A number to take away; a negative one in brackets."""
    return f"({_signed(number)})" if number < 0 else _signed(number)


def about_rounding(moved: Movement) -> str:
    """What difference counts as rounding, and why."""
    spacing, rounding = (powers(f"{number:.1e}") for number in (moved.spacing, moved.rounding))
    return (
        f"The largest logit here is {moved.largest:.2f}; float32 numbers of that size lie {spacing} apart. Sums "
        f"taken in another order differ by a few such steps, so up to 16 steps, {rounding}, count as rounding."
    )


def causality_verdict(moved: Movement, *, place: int, n_rows: int, n_sentences: int) -> tuple[bool, str]:
    """Whether the past stayed as it was, and the numbers.

    Args:
        moved: What the check found, all rows.
        place: The changed position, from 0.
        n_rows: Rows that are no padding.
        n_sentences: Sentences in the batch.
    """
    before, after = moved.kept[:place].max(), moved.kept[place:n_rows]
    held = bool(max(before, moved.elsewhere) <= moved.rounding)
    others = f" Rows of the other sentences moved by {amount(moved.elsewhere)}." if n_sentences > 1 else ""
    end = (
        "No earlier row knows of the change: the mask keeps the future closed."
        if held and before == 0
        else "That is rounding: the mask keeps the future closed."
        if held
        else "That is more than rounding: earlier rows see what comes later."
    )
    return held, (
        f"{_rows(0, place)} moved by {amount(before)}, {_rows(place, n_rows, 'row')} by "
        f"{_span(after)}.{others} {end} Without the causal mask "
        f"{_rows(0, place, 'row')} would move by up to {amount(moved.taken[:place].max())}."
    )


def padding_verdict(moved: Movement, *, side: str, n_pads: int) -> tuple[bool, str]:
    """Whether pads change nothing, and the numbers."""
    most, without = moved.kept.max(), moved.taken.max()
    held = bool(most <= moved.rounding)
    pads = "1 pad" if n_pads == 1 else f"{n_pads} pads"
    if most == 0:
        found = "every logit stays exactly as it was, to the last bit."
    else:
        end = (
            "That is rounding: pads change nothing but the order of sums."
            if held
            else "That is more than rounding: pads are read."
        )
        found = f"logits move by at most {amount(most)}. {end}"
    if without <= moved.rounding:
        why = ": pads come after every real piece, so the causal mask alone hides them" if side == "target" else ""
        taken = f"Without the {side} padding mask it would be {amount(without)} as well{why}"
    else:
        taken = f"Without the {side} padding mask they would move by up to {amount(without)}"
    return held, f"With {pads} added to the {side} {found} {taken}."


def amount(value: float) -> str:
    """A difference as the page writes it; only 0 itself is called so."""
    return "exactly 0" if value == 0 else powers(f"{value:.2g}")


def _span(values: np.ndarray) -> str:
    low, high = amount(values.min()), amount(values.max())
    return low if low == high else f"{low} to {high}"


def _rows(first: int, end: int, word: str = "Row") -> str:
    return f"{word} {first + 1}" if end - first == 1 else f"{word}s {first + 1} to {end}"
