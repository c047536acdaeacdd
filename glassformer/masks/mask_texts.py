"""Texts of the Masks page: batch, masks, arithmetic of a cell, rounding; verdicts of causality and padding checks."""

from collections.abc import Iterator, Sequence

import numpy as np

from glassformer.masks.scene import Batch
from transformer.analysis.mask_checks import BatchMasks, MaskName, Movement
from transformer.i18n import joined, paragraph, say, say_n
from transformer.i18n.sentence import written
from transformer.model.anatomy import Kind
from transformer.model.config import ModelConfig
from transformer.runs.query import Query

GUESSING = say(
    "Guess mode: the target is cut off after the current step, and everything below is computed from what remains. "
    "To see more, go to the next step on the page Translate."
)
# For translators: code; only what follows a # is translated.
CONVERSION = say(
    "# from bool (True = may attend) to numbers that are added to the scores, and back\nadded = "
    'torch.zeros(mask.shape).masked_fill(~mask, float("-inf"))\nmask = added == 0\n# for '
    "torch.nn.MultiheadAttention, where True = closed\ntorchs_own = ~mask"
)
TORCH = say(
    "True does not mean the same thing everywhere. In this app and in `F.scaled_dot_product_attention`, True means "
    "*may attend*; in torch's own `nn.MultiheadAttention`, True means *may not attend*. If the `~` is missing, the "
    "mask opens exactly what it should close, and no error is raised."
)
CHECKS_UNCHANGED = say("Both checks run the model without the change.")
MINUS_INFINITY = "−∞"
CLOSED_OTHERWISE = say("closed by a change to the model, or by a layer's window")
MISTAKES = joined(
    "\n",
    [
        say(
            "- **Two conventions, one inversion.** If an additive causal mask (0 = open, −∞ = closed) goes to code "
            "that closes keys where `mask == 0`, causality is reversed: query 1 sees only what comes after it, and "
            "for the last query every key is closed. If closed scores become −1e9, its weights are all equal; if "
            "they become −∞, its weights are NaN. `pad & added.bool()` does not fix that, because −∞ becomes True "
            "and 0 becomes False. Only `pad & (added == 0)` is correct."
        ),
        say(
            "- **Bool and float do not combine.** `pad & added` raises an error, because `&` does not take floats. "
            "Keep all masks bool and convert once, at the end."
        ),
        say(
            "- **Which axis?** A padding mask has to close *keys*: `(ids != pad)[:, None, None, :]`. With `[:, "
            "None, :, None]`, the mask closes the *queries* that are pads instead: real queries still read "
            "padding, and if all keys of a row are closed, its softmax is undefined."
        ),
        say(
            "- **A mask with three axes.** Broadcasting lines up the batch axis of `[batch, query, key]` with the "
            "*head* axis of `[batch, head, query, key]`. If both happen to have the same size, no error is raised, "
            "and head 2 gets sentence 2's mask."
        ),
        say(
            "- **No causal mask.** A decoder trained without it learns to copy the token it should predict: its "
            "loss is perfect and its output is useless."
        ),
    ],
)


ROUNDING = 5e-5  # of a weight that is written with four digits


@paragraph
def about_batch(batch: Batch) -> Iterator[str]:
    """How long the sentences of the batch are, and who is padded."""
    n_sentences = len(batch.traces)
    if batch.traces[0].pad_id is None:
        yield say("This model has no padding token, so no key is ever closed as padding.")
        return
    if n_sentences == 1:
        yield say("A single sentence needs no padding. Add a second sentence to see padding at work.")
        return
    source, target = ([count(i) for i in range(n_sentences)] for count in (batch.n_source, batch.n_target))
    yield say("{n} sentences run as one batch.", n=n_sentences)
    if batch.parts.reads:
        lengths = _and([*map(str, source)])
        yield say("Source lengths: {lengths} tokens, all padded to {most}.", lengths=lengths, most=max(source))
    lengths, most = _and([*map(str, target)]), max(target)
    if batch.parts.writes and batch.parts.reads:
        yield say("Target lengths: {lengths} tokens, all padded to {most}.", lengths=lengths, most=most)
    elif batch.parts.writes:
        yield say(
            "Lengths of prompt and output together: {lengths} tokens, all padded to {most}.", lengths=lengths, most=most
        )


def _and(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return say("{first} and {last}", first=joined(", ", parts[:-1]), last=parts[-1])


def about_mask(name: MaskName, masks: BatchMasks, *, n_heads: int) -> str:
    """Shapes of a mask, and who takes it."""
    own, (n_batch, n_queries, n_keys) = masks.own(name).shape, masks.whole(name).shape
    shared = [say_n("the one head", "all {n} heads", n_heads)]
    shared += [say("all queries")] if own[2] == 1 < n_queries else []
    shared += [say("all sentences")] if own[0] == 1 < n_batch else []
    said = say("The mask has shape {own} and is broadcast to [batch {batch}, head {head}, query {query}, key "
               "{key}]; it is the same for {shared}.", own=list(own), batch=n_batch, head=n_heads, query=n_queries,
               key=n_keys, shared=_and(shared))  # fmt: skip
    return joined(" ", [said, _TAKEN_BY[name]])


_TAKEN_BY: dict[MaskName, str] = {
    "source": say("Encoder self-attention uses this mask."),
    "target": say("Decoder self-attention uses this mask together with the causal mask."),
    "causal": say("Decoder self-attention uses this mask together with the target padding mask."),
    "decoder": say(
        "Decoder self-attention uses this mask: a query sees a key only if the padding mask and the causal mask "
        "both allow it."
    ),
    "cross": say("Cross-attention uses this mask to keep the target's queries from seeing padding in the source."),
}


@paragraph
def about_special(config: ModelConfig, name: MaskName) -> Iterator[str]:
    """What this page does not draw of a model's masks; "" if it draws all."""
    if any(config.windows) and name in ("causal", "decoder"):
        yield say(
            "Some layers of this model have windows, which also close keys far before the query. The masks on "
            "this page do not include these windows."
        )
    if config.mask_fill is not None:
        yield say(
            "This model replaces the scores of closed keys with {fill:g}; wherever this page says −∞, read "
            "this number instead. The weights are those that the model computed: closed keys get 0, unless a "
            "whole row is closed.",
            fill=config.mask_fill,
        )


def agreement(cells: int, different: int) -> str:
    """Whether the masks shown are those that the run recorded."""
    if different == 0:
        return say("All {cells:,} cells match the masks that attention used in this run.", cells=cells)
    return say(
        "{different:,} of {cells:,} cells differ from the masks that attention used in this run.",
        different=different,
        cells=cells,
    )


def without_mask(batch: Batch) -> str:
    """Where decoding passes no mask at all."""
    whole = say("These are the masks used when the model reads the finished output in one pass.")
    return joined(" ", [whole, _while_it_writes(batch)])


def _while_it_writes(batch: Batch) -> str:
    if not batch.parts.reads:
        return say(
            "When the model generates with a key-value cache, None replaces every mask that would close nothing. "
            "After the prompt, self-attention gets no mask: each step has only one new query, and it may see "
            "everything so far."
        )
    if batch.is_real("source").all():
        return say(
            "When the model generates with a key-value cache, None replaces every mask that would close nothing. "
            "From the second token on, decoder self-attention gets no mask: each step has only one new query, and "
            "it may see everything so far. No source in this batch is padded, so cross-attention gets None as well."
        )
    return say(
        "When the model generates with a key-value cache, None replaces every mask that would close nothing. From "
        "the second token on, decoder self-attention gets no mask: each step has only one new query, and it may "
        "see everything so far. This batch has padded sources, so cross-attention gets its mask at every step."
    )


def filled(query: Query, config: ModelConfig, kind: Kind) -> str:
    """What a closed score becomes in a run, as it is written."""
    fill = config.mask_fill
    for change in query.interventions:
        fill = change.closed_score(kind, fill)
    return MINUS_INFINITY if fill is None else f"{fill:g}".replace("-", "−")


def added(filled: str) -> str:
    """What a mask does to a closed score, in a table of what it adds."""
    return MINUS_INFINITY if filled == MINUS_INFINITY else say("replaced")


def about_cell(
    scores: np.ndarray, allowed: np.ndarray, weights: np.ndarray, cell: tuple[int, int], *, filled: str
) -> str:
    """The arithmetic of one cell, row and column from 0: score, what the mask adds, weight, in its row [key]."""
    query, key = cell
    if np.isnan(scores[key]):
        return say(
            "Query {query} has no score for key {key}: with this change to the model, a query is computed only "
            "from the tokens up to its position, and key {key} comes later.",
            query=query + 1,
            key=key + 1,
        )
    score = _signed(float(scores[key]))
    start = say("Query {query}, key {key}: the score is {score}.", query=query + 1, key=key + 1, score=score)
    weight = float(weights[key])
    said = say("The mask adds −∞, and exp(−∞) = 0, so the weight is exactly 0, whatever the score.")
    if not allowed[key] and filled != MINUS_INFINITY:
        said = say(
            "The key is closed: its score is replaced with {fill}, which still goes into the softmax, so the "
            "weight is {weight:.4f}.",
            fill=filled,
            weight=weight,
        )
    if not allowed[key]:
        return joined(" ", [start, said])
    opened = scores[allowed].astype(np.float64)
    top = float(opened.max())
    total, largest = float(np.exp(opened - top).sum()), _signed(top)
    if np.isclose(np.exp(float(scores[key]) - top) / total, weight, atol=ROUNDING):
        said = say("The mask adds 0. The largest score of an open key is {largest}, and Σ exp(score − {taken_away}) "
                   "= {total:.4f} over the {keys}, so the weight is exp({score} − {taken_away}) / {total:.4f} = "
                   "{weight:.4f}.", largest=largest, taken_away=f"({largest})" if top < 0 else largest, total=total,
                   keys=say_n("{n} open key", "{n} open keys", len(opened)), score=score, weight=weight)  # fmt: skip
    else:
        said = say(
            "The weight is {weight:.4f}, which is not simply the softmax of the open keys' scores.", weight=weight
        )
    return joined(" ", [start, said])


def _signed(number: float) -> str:
    return f"{number:.4f}".replace("-", "−")


def about_rounding(moved: Movement) -> str:
    """Which difference counts as rounding, and why."""
    spacing, rounding = (written(f"{number:.1e}") for number in (moved.spacing, moved.rounding))
    largest = say(
        "The largest number in this check is {largest:.2f}; neighbouring float32 numbers of that size are {spacing} "
        "apart.",
        largest=moved.largest,
        spacing=spacing,
    )
    steps = say(
        "When a sum is computed in a different order, the result changes by a few such spacings. Differences of up "
        "to 16 spacings ({rounding}) therefore count as rounding error.",
        rounding=rounding,
    )
    return joined(" ", [largest, steps])


def nothing_later(batch: Batch) -> str:
    """Why there is no later piece to change."""
    if not batch.parts.writes:
        return say("This encoder-only model has no causal mask, so every row may see what comes later.")
    if not batch.parts.reads:
        return say(
            "There is no later token to change, because the prompt is a single token and the model reads nothing "
            "after it."
        )
    return say("There is no later token to change, because the decoder reads only the start mark.")


def no_pad_fits(batch: Batch, most: int) -> str:
    """Why no pad can be added to what has `most` pieces."""
    if not batch.parts.reads:
        return say(
            "There is no room for a pad: the model reads at most {most} tokens, and the prompt and output already "
            "have that many. Let the model write fewer tokens.",
            most=most,
        )
    return say(
        "There is no room for a pad: the model reads at most {most} tokens, and this sentence already has that "
        "many. Choose a shorter sentence.",
        most=most,
    )


def causality_verdict(moved: Movement, *, place: int, n_rows: int, n_sentences: int) -> tuple[bool, str]:
    """Whether the past is unchanged when `place`, from 0, changed, and the numbers; `n_rows` without padding."""
    before, after = moved.kept[:place].max(), moved.kept[place:n_rows]
    held = bool(max(before, moved.elsewhere) <= moved.rounding)
    earlier = say("Row 1") if place == 1 else say("Rows 1 to {last}", last=place)
    low, high = amount(after.min()), amount(after.max())
    moved_by = low if low == high else say("{low} to {high}", low=low, high=high)
    said = [
        say(
            "{earlier} changed by {before}, {later} by {after}.",
            earlier=earlier,
            before=amount(before),
            later=_rows(place, n_rows),
            after=moved_by,
        )
    ]
    if n_sentences > 1:
        said.append(say("Rows of the other sentences changed by {amount}.", amount=amount(moved.elsewhere)))
    if not held:
        said.append(say("That is more than rounding error, so earlier rows can see what comes later."))
    elif before == 0:
        said.append(say("No earlier row changes, so the mask does hide what comes later."))
    else:
        said.append(say("That is only rounding error, so the mask does hide what comes later."))
    return held, joined(" ", [*said, without_causal_mask(moved, place)])


def without_causal_mask(moved: Movement, place: int) -> str:
    """By how much earlier rows move when `place` changes and nothing is hidden."""
    rows, most = _rows(0, place), amount(moved.taken[:place].max())
    return say("Without the causal mask, {earlier} would change by up to {amount}.", earlier=rows, amount=most)


def about_pads(*, of_source: bool, n_pads: int) -> str:
    """The title of a chart of what pads on one side move."""
    pads = say_n("{n} pad", "{n} pads", n_pads)
    if of_source:
        return say("{pads} after the source: how much each row changes", pads=pads)
    return say("{pads} after the target: how much each row changes", pads=pads)


def padding_verdict(moved: Movement, *, of_source: bool, n_pads: int) -> tuple[bool, str]:
    """Whether pads after one side change no logits, or vectors of an encoder-only model, and the numbers."""
    most = moved.kept.max()
    held = bool(most <= moved.rounding)
    pads = say_n("{n} pad", "{n} pads", n_pads)
    side = say("source", about="side") if of_source else say("target", about="side")
    said = [
        say("With {pads} added to the {side}, numbers change by at most {amount}.", pads=pads, side=side,
            amount=amount(most))
        if most
        else say("With {pads} added to the {side}, every number stays the same to the last bit.", pads=pads, side=side)
    ]  # fmt: skip
    if most and held:
        said.append(say("That is only rounding error: pads change only the order of summation."))
    elif most:
        said.append(say("That is more than rounding error, so the model reads the pads."))
    return held, joined(" ", [*said, _without_padding_mask(moved, side=side, of_source=of_source)])


def _without_padding_mask(moved: Movement, *, side: str, of_source: bool) -> str:
    without = moved.taken.max()
    if of_source or without > moved.rounding:
        return say(
            "Without the {side} padding mask, the largest change would be {amount}.", side=side, amount=amount(without)
        )
    return say(
        "Without the {side} padding mask, the largest change would be {amount}: pads come after every real token, "
        "so the causal mask alone hides them.",
        side=side,
        amount=amount(without),
    )


def amount(value: float) -> str:
    """A difference as the page writes it; only 0 itself is called so."""
    return say("exactly 0") if value == 0 else written(f"{value:.2g}")


def _rows(first: int, end: int) -> str:
    if end - first == 1:
        return say("row {n}", n=end)
    return say("rows {first} to {last}", first=first + 1, last=end)


def about_changed(changed: np.ndarray, allowed: np.ndarray) -> str:
    """What a change of the run does to a mask, cells [query, key] that it changes and that are open now."""
    opened, closed = int((changed & allowed).sum()), int((changed & ~allowed).sum())
    if not changed.any():
        return say("The change leaves this mask as it was.")
    if not closed:
        return say_n(
            "The ring marks the cell that the change opens.", "Rings mark the {n} cells that the change opens.", opened
        )
    if not opened:
        return say_n(
            "The ring marks the cell that the change closes.",
            "Rings mark the {n} cells that the change closes.",
            closed,
        )
    return say("Rings mark what the change opens ({opened}) and closes ({closed}).", opened=opened, closed=closed)
