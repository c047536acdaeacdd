"""The cards of masks: the causal mask inverted, the padding mask on the wrong axis, rows of minus infinity."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention
from ui.wrong import mistake_changes
from ui.wrong.card import Card, Code, Measure, Side, Sides
from ui.wrong.mistake_figures import (
    decoder_maps,
    first_maps,
    lost,
    on_later,
    on_pads,
    pads_by_row,
    reading_maps,
    spreading,
)
from words import Sentence, say

INVERTED: Final = Card(
    mistake="inverted",
    title=say("The inverted causal mask"),
    about=say(
        "Two conventions are about: in one mask 0 means “add nothing, may attend”, in the other 0 or False means "
        "“may not attend”. A mask of the one kind that is read as the other closes the past and opens the future."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say(
            "# made to be added: 0 = may attend\n"
            "mask = torch.full((T, T), -torch.inf).triu(1)\n"
            "# read as: 0 = may not attend\n"
            "scores = scores.masked_fill(mask == 0, -1e9)"
        ),
        # For translators: code; only what follows a # is translated.
        right=say(
            "# one convention: True = may attend\n"
            "mask = torch.ones(T, T).tril().bool()\n"
            "scores = scores.masked_fill(~mask, -torch.inf)"
        ),
    ),
    measure=Measure(
        say("Weight that a row of decoder self-attention gives to later tokens, on average"),
        on_later,
        form=".1%",
    ),
    sites=decoder_maps,
    texts={
        "same": say(
            "The row that writes sees only what comes after it, and nothing does: its self-attention takes nothing "
            "from what was written before, and only the last piece itself comes in. That this output stays says "
            "that no more was needed for it."
        ),
        "changed": say(
            "The row that writes sees only what comes after it, and nothing does: its self-attention takes nothing "
            "from what was written before, and only the last piece itself comes in. What hung on the pieces before "
            "it is gone."
        ),
    },
    charts=first_maps,
    change=mistake_changes.inverted,
    source=say("Vaswani et al. (2017), section 3.2.3, for the mask."),
)


def _no_padding(checkpoint: Checkpoint) -> Sentence | None:
    parts = anatomy(checkpoint.config)
    if not parts.reads:
        return say("This model reads one text without padding, so that no padding mask can be on the wrong axis.")
    if checkpoint.config.pad_id is None:
        return say("This model has no padding piece, and so no padding mask.")
    return None


def _padded(side: Side) -> Sides:
    """Both sides read padding behind the source, as in a batch with a longer sentence; one of them masks its rows."""
    config = side.checkpoint.config
    pads = mistake_changes.pads(config)
    right, wrong = (_with(side, extra) for extra in (pads, (*pads, *mistake_changes.rows_of_padding(config))))
    return Sides(right, wrong, right, wrong)


def _with(side: Side, extra: tuple[Intervention, ...]) -> Side:
    return replace(side, query=replace(side.query, interventions=(*side.query.interventions, *extra)))


def _pads_and_rows(config: ModelConfig) -> tuple[Intervention, ...]:
    return (*mistake_changes.pads(config), *mistake_changes.rows_of_padding(config))


AXIS: Final = Card(
    mistake="axis",
    title=say("The padding mask on the wrong axis"),
    about=say(
        "Short sentences of a batch are filled up with padding, and the mask keeps everybody from reading it. That "
        "closes columns, the keys. Closing rows, the queries, looks alike in code and does something else. A "
        "sentence alone has no padding, so here both sides get some behind the source."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("# [batch, 1, query, 1]: closes rows\nmask = (src != pad_id)[:, None, :, None]"),
        # For translators: code; only what follows a # is translated.
        right=say("# [batch, 1, 1, key]: closes columns\nmask = (src != pad_id)[:, None, None, :]"),
    ),
    measure=Measure(
        say("Weight that a real token of the source gives to padding, on average"),
        on_pads,
        form=".1%",
    ),
    sites=reading_maps,
    texts={
        "same": say(
            "The tokens of the source now read padding as if it were words, and here the decoder still chose the "
            "same pieces. Another amount of padding can change that: then the output depends on the company in a "
            "batch."
        ),
        "changed": say(
            "The tokens of the source now read padding as if it were words, so that their vectors, and with them the "
            "output, depend on how long the other sentences of the batch are."
        ),
    },
    charts=pads_by_row,
    change=_pads_and_rows,
    unfit=_no_padding,
    sides=_padded,
    source=say(
        "Vaswani et al. (2017), section 3.2.3, for masks; which axis is padded follows from the shape of q·kᵀ."
    ),
)

NAN: Final = Card(
    mistake="nan",
    title=say("Rows of minus infinity"),
    about=say(
        "Closed scores become −∞, so that their weight is exactly 0. If all scores of a row are closed, the softmax "
        "divides 0 by 0, and the row is not a number (NaN). Here a causal mask that hides each token from itself, "
        "too, leaves the first row with nothing to see."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say(
            "# the first row is closed throughout\n"
            "mask = torch.ones(T, T).tril(-1).bool()\n"
            "scores = scores.masked_fill(~mask, -torch.inf)\n"
            "weights = scores.softmax(dim=-1)"
        ),
        # For translators: code; only what follows a # is translated.
        right=say(
            "# each token sees itself at least\n"
            "mask = torch.ones(T, T).tril().bool()\n"
            "assert mask.any(dim=-1).all()\n"
            "scores = scores.masked_fill(~mask, -torch.inf)\n"
            "weights = scores.softmax(dim=-1)"
        ),
    ),
    measure=Measure(
        say("Pieces of the right output whose probability is not a number"),
        lost,
        form=".0%",
        finite=False,
    ),
    sites=decoder_maps,
    texts={
        "same": say("No row of this run is closed throughout, so that nothing is divided by 0."),
        "changed": say(
            "No number is lost, as no row is closed throughout; but each token is hidden from itself, and that "
            "changes what is written."
        ),
        "not_finite": say(
            "A NaN spreads: whatever it is added to or multiplied by is NaN, so that one row is enough to lose "
            "every row that reads it, and in the end all probabilities. The first site says where it began. A large "
            "negative number instead of −∞ gives equal weights: finite, and just as wrong."
        ),
    },
    charts=spreading,
    change=mistake_changes.closed_rows,
    source=say("Vaswani et al. (2017), section 3.2.3, for −∞ in closed cells."),
)
