"""The cards of order: no positions, shifted positions, and an embedding so large that positions drown in it."""

from __future__ import annotations

from typing import Final

from transformer.checkpoint.load import Checkpoint
from ui.wrong import mistake_changes
from ui.wrong.card import Card, Code, Measure
from ui.wrong.mistake_figures import LOSS_MEASURE, embeddings, loss_by_piece, ratio, ratio_by_token
from words import Sentence, say

POSITIONS: Final = Card(
    mistake="positions",
    title=say("No positions"),
    about=say(
        "Attention treats its keys as a set: nothing in q·k says where a token stands. The vectors of positions say "
        "it. Whoever forgets to add them has an encoder that cannot tell a sentence from its pieces in another order."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("x = embedding(ids) * math.sqrt(d_model)"),
        # For translators: code; only what follows a # is translated.
        right=say("x = embedding(ids) * math.sqrt(d_model)\nx = x + positions[: ids.size(1)]"),
    ),
    measure=LOSS_MEASURE,
    texts={
        "same": say(
            "Which pieces there are was enough to write this: in a short sentence they often fit together in one way "
            "only, and the causal mask still tells the decoder what came before. The loss of the right output says "
            "how much less sure of it the model is, or more."
        ),
        "changed": say(
            "The encoder now gives equal pieces equal vectors wherever they stand, and turning the sentence round "
            "would only turn the rows round. What of the output hung on the order was decided without it."
        ),
    },
    charts=loss_by_piece(),
    change=mistake_changes.unplaced,
    source=say("Vaswani et al. (2017), section 3.5."),
)


def _counts_distances(checkpoint: Checkpoint) -> Sentence | None:
    if checkpoint.config.placing.adds in ("turn", "bias"):
        return say("Positions of this model act inside attention and count distances only: a shift changes nothing.")
    return None


SHIFTED: Final = Card(
    mistake="shifted",
    title=say("Positions shifted by one"),
    about=say(
        "In training the first token of the decoder had the first row of positions. If decoding counts from 1, or "
        "counts the start mark twice, each token has the row of its neighbour: all vectors are valid, and all are "
        "wrong."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("# in decoding only\nplace = torch.arange(1, T + 1)\nx = embedding(tgt) + positions[place]"),
        # For translators: code; only what follows a # is translated.
        right=say("# as in training\nplace = torch.arange(T)\nx = embedding(tgt) + positions[place]"),
    ),
    measure=LOSS_MEASURE,
    texts={
        "same": say(
            "The decoder believes that it stands one token further on, and here that was of no matter: what it has "
            "written tells it where it is, too. The loss of the right output shows what the shift did all the same."
        ),
        "changed": say(
            "The decoder believes that it stands one token further on. What it looks up by position in the source, "
            "and when it thinks that the output is long enough, moves with that."
        ),
    },
    charts=loss_by_piece(),
    change=mistake_changes.shifted,
    unfit=_counts_distances,
    source=say("Vaswani et al. (2017), section 3.5; tables that begin at another row are frequent, such as BART's."),
)


def _has_no_table(checkpoint: Checkpoint) -> Sentence | None:
    if checkpoint.config.placing.adds != "table":
        return say("No vectors of positions are added in this model, so that none can drown.")
    return None


EMBEDDING: Final = Card(
    mistake="embedding",
    title=say("An embedding that drowns the positions"),
    about=say(
        "The paper multiplies embeddings by √d_model, for rows that begin with a length of about 1. PyTorch’s "
        "nn.Embedding begins with numbers of size 1, rows √d_model times as long; multiplied again, they leave "
        "positions no say in the sum. Here the embeddings of the trained model are made √d_model times too large."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say(
            "# its numbers begin with a size of 1\n"
            "embedding = nn.Embedding(n_pieces, d_model)\n"
            "x = embedding(ids) * math.sqrt(d_model) + positions"
        ),
        # For translators: code; only what follows a # is translated.
        right=say(
            "embedding = nn.Embedding(n_pieces, d_model)\n"
            "nn.init.normal_(embedding.weight, std=d_model**-0.5)\n"
            "x = embedding(ids) * math.sqrt(d_model) + positions"
        ),
    ),
    measure=Measure(
        say("How many times as large as its position a token’s embedding is, on average over all tokens"),
        ratio,
        form=".1f",
    ),
    sites=embeddings,
    texts={
        "same": say(
            "In the sum of the two vectors the position is now a small part, and here the output did not need it. In "
            "training the same start costs time: order has to be learned from what is left of the positions."
        ),
        "changed": say(
            "In the sum of the two vectors the position is now a small part, so that what hung on the order of the "
            "tokens is decided nearly without it. What the first layers add to the stream is small beside it, too. A "
            "model that begins its training so can still learn, only later: its layers grow to that size."
        ),
    },
    charts=ratio_by_token,
    change=mistake_changes.drowned,
    unfit=_has_no_table,
    source=say("Vaswani et al. (2017), section 3.4; PyTorch’s documentation of nn.Embedding for its first values."),
)
