"""All mistake cards, with the interventions that reproduce each mistake.

The library implements the interventions; `mistake_cards.toml` has the texts of each card.
"""

import math
from typing import Final

from glassformer.extensions.effects import mistake_figures as figures
from glassformer.extensions.effects.mistake_figures import LEAK, Card, CardMeasure, RunSides, Side
from glassformer.extensions.what_if.interventions.layer_changes import EmbeddingScale, NoResidual, SwapNorms
from glassformer.extensions.what_if.interventions.mask_changes import CausalMask, PaddingMask
from glassformer.extensions.what_if.interventions.piece_changes import NoPositions, Pads, ShiftPositions
from glassformer.extensions.what_if.interventions.score_changes import (
    FillValue,
    HeadsTold,
    NoGuard,
    ScoreScale,
    SoftmaxTwice,
)
from glassformer.runs import loading
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.snapshots import split
from transformer.errors import QueryError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention
from transformer.runs.query import Query

HEALTHY: Final = "reverse"
SEEN: Final = say("Without the mask, as in training")
UNSEEN: Final = say("With the mask, as in normal use")
PADS: Final = 4
PADDED: Final = (Pads(PADS),)  # after the source, which alone changes nothing
FILL: Final = -1e9  # of closed scores, as beginners write it: a row without open keys gets equal weights
TWICE: Final = (SoftmaxTwice("all", closed=False),)
ROWS_OF_PADDING: Final = (PaddingMask("encoder", "rows"), FillValue("encoder", FILL))


def other_heads(config: ModelConfig) -> tuple[Intervention, ...]:
    """Twice as many heads, where the width can be cut so; else fewer."""
    own, width = config.n_heads, config.n_heads * config.d_head
    found = next((n for n in (2 * own, own // 2, 1, width) if n >= 1 and n != own and width % n == 0), own)
    return (HeadsTold(found),)


def _drowned(config: ModelConfig) -> tuple[Intervention, ...]:
    """Embeddings are sqrt(d_model) times as large as the model was trained with."""
    root = math.sqrt(config.d_model)
    return (EmbeddingScale("all", root * (root if config.scale_embedding else 1.0)),)


# ---------------------------------------------------------------- what is compared


def _padded(side: Side) -> RunSides:
    """Both sides read padding after the source, as in a batch with a longer sentence; one of them masks its rows."""
    right, wrong = (side.changed((*PADDED, *more)) for more in ((), ROWS_OF_PADDING))
    return RunSides(right, wrong, right, wrong)


def _two_models(side: Side) -> RunSides:
    """Both models write; then the leak reads the right output, once with the future open and once as it is in use."""
    healthy, leak = (_of(name, side.query) for name in (HEALTHY, LEAK))
    return RunSides(healthy, leak, leak.changed((CausalMask("off"),)), leak)


def _of(name: str, query: Query) -> Side:
    entry = loading.found(name)
    if entry is None:
        raise QueryError("The checkpoint {name} is no longer available here.", name=name)
    checkpoint = loading.open_checkpoint(entry)
    here = Query(
        checkpoint=checkpoint.content_hash, source=query.source, decoding=query.decoding, max_new=query.max_new
    )
    return Side(checkpoint, here)


# ---------------------------------------------------------------- where a mistake cannot be made


def _no_leak(checkpoint: Checkpoint) -> Sentence | None:
    """Only two models of one task tell the leak from everything else."""
    if {HEALTHY, LEAK} - loading.usable().keys():
        return say(
            "This mistake needs two checkpoints, {healthy} and {leak}; at least one of them is missing here.",
            healthy=HEALTHY,
            leak=LEAK,
        )
    if (named := split(checkpoint.name)) is not None and named[0] in (HEALTHY, LEAK):
        return say(
            "This mistake compares two finished checkpoints, and {name} is a snapshot of a training. Move the slider "
            "of the training to its right end.",
            name=checkpoint.name,
        )
    if checkpoint.name not in (HEALTHY, LEAK):
        return say(
            "A leak arises in training, but this model was trained without one. The model “{leak}”, which works on "
            "letters, was trained with a leak.",
            leak=LEAK,
        )
    return None


def _no_padding(checkpoint: Checkpoint) -> Sentence | None:
    if not anatomy(checkpoint.config).reads:
        return say(
            "This model reads one text without padding, so it has no padding mask that could be on the wrong axis."
        )
    if checkpoint.config.pad_id is None:
        return say("This model has no padding token, so it has no padding mask.")
    return None


def _is_unscaled(checkpoint: Checkpoint) -> Sentence | None:
    if checkpoint.config.score_scale == 1.0:
        return say(
            "This model was trained without dividing its scores by √d_head, so there is no division to leave out."
        )
    return None


def _counts_distances(checkpoint: Checkpoint) -> Sentence | None:
    if checkpoint.config.placing.adds in ("turn", "bias"):
        return say(
            "This model uses positions only inside attention, where only distances count, so a shift changes nothing."
        )
    return None


def _has_no_table(checkpoint: Checkpoint) -> Sentence | None:
    if checkpoint.config.placing.adds != "table":
        return say("This model adds no position vectors, so its embeddings cannot drown them.")
    return None


# ---------------------------------------------------------------- the cards

CARDS: Final[tuple[Card, ...]] = (
    Card(
        "leak",
        CardMeasure(figures.LOSS, figures.loss, form=".2g", labels=(SEEN, UNSEEN), model=LEAK),
        figures.loss_by_piece((SEEN, UNSEEN), model=LEAK),
        lambda _: (CausalMask("off"),),
        unfit=_no_leak,
        seen_on=LEAK,
        sides=_two_models,
        labels=(
            say("Output of “{model}”, trained with the mask", model=HEALTHY),
            say("Output of “{model}”, trained without the mask", model=LEAK),
        ),
    ),
    Card(
        "inverted",
        CardMeasure(
            say("Mean weight that a row of decoder self-attention gives to later tokens"), figures.on_later, form=".1%"
        ),
        figures.first_maps,
        lambda _: (CausalMask("inverted"), FillValue("decoder", FILL)),
        sites=figures.decoder_maps,
    ),
    Card(
        "axis",
        CardMeasure(say("Mean weight that a real source token gives to padding"), figures.on_pads, form=".1%"),
        figures.pads_by_row,
        lambda _: (*PADDED, *ROWS_OF_PADDING),
        sites=figures.reading_maps,
        unfit=_no_padding,
        sides=_padded,
    ),
    Card(
        "scale",
        figures.LARGEST,
        figures.one_row,
        lambda _: (ScoreScale("all", "off"),),
        sites=figures.weights_of,
        unfit=_is_unscaled,
    ),
    Card("twice", figures.LARGEST, figures.one_row, lambda _: TWICE, sites=figures.weights_of),
    Card("positions", figures.LOSS_MEASURE, figures.loss_by_piece(), lambda _: (NoPositions("all"),)),
    Card(
        "shifted",
        figures.LOSS_MEASURE,
        figures.loss_by_piece(),
        lambda _: (ShiftPositions("decoder", 1),),
        unfit=_counts_distances,
    ),
    Card("heads", figures.LOSS_MEASURE, figures.loss_by_piece(), other_heads),
    Card("norms", figures.LOSS_MEASURE, figures.size_by_layer, lambda _: (SwapNorms("all"),), sites=figures.stream),
    Card(
        "nan",
        CardMeasure(
            say("Share of tokens in the output without the mistake whose probability is NaN"),
            figures.lost,
            form=".0%",
            finite=False,
        ),
        figures.spreading,
        # The diagonal is closed too: the first row sees nothing, and nothing guards minus infinity.
        lambda _: (CausalMask("hidden"), NoGuard("decoder")),
        sites=figures.decoder_maps,
    ),
    Card(
        "residual",
        CardMeasure(
            say(
                "Mean cosine between the vectors of two tokens after the last layer; 1 means that all vectors "
                "point in the same direction"
            ),
            figures.likeness,
        ),
        figures.likeness_by_layer,
        lambda _: (NoResidual("all", None, "all"),),
        sites=figures.stream,
    ),
    Card(
        "embedding",
        CardMeasure(
            say("Size of a token’s embedding divided by the size of its position vector, averaged over all tokens"),
            figures.ratio,
            form=".1f",
        ),
        figures.ratio_by_token,
        _drowned,
        sites=figures.embeddings,
        unfit=_has_no_table,
    ),
)
