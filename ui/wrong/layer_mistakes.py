"""The cards of layers: another number of heads, norms in the other place, no residual connections."""

from __future__ import annotations

from typing import Final

from ui.wrong import mistake_changes
from ui.wrong.card import Card, Code, Measure
from ui.wrong.mistake_figures import LOSS_MEASURE, likeness, likeness_by_layer, loss_by_piece, size_by_layer, stream
from words import say

HEADS: Final = Card(
    mistake="heads",
    title=say("The wrong number of heads"),
    about=say(
        "The matrices of attention have the same shape for any number of heads; only the config says into how many "
        "parts their products are cut. Parameters that are loaded with another number load without an error, and "
        "each head is made of parts of others."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say(
            "# n_heads is left at its default\n"
            "model = Transformer(d_model=d_model)\n"
            "# no complaint, as all shapes fit\n"
            "model.load_state_dict(state)"
        ),
        # For translators: code; only what follows a # is translated.
        right=say(
            "model = Transformer(\n    d_model=d_model, n_heads=config.n_heads\n)\nmodel.load_state_dict(state)"
        ),
    ),
    measure=LOSS_MEASURE,
    texts={
        "same": say(
            "The output stays, although each head is cut from others. That is why such a mistake goes unnoticed: it "
            "shows in the loss of many right outputs, and not in each sentence."
        ),
        "changed": say(
            "Each head now multiplies numbers that belong to several heads, or to a part of one, and its scores are "
            "divided by the root of another width. No error says so; only what is written does."
        ),
    },
    charts=loss_by_piece(),
    change=mistake_changes.other_heads,
    source=say("Vaswani et al. (2017), section 3.2.2."),
)
NORMS: Final = Card(
    mistake="norms",
    title=say("Pre-norm and post-norm swapped"),
    about=say(
        "Pre-norm is x + f(norm(x)), post-norm is norm(x + f(x)). The parameters of both are the same, so that the "
        "ones of a model of one kind load into the other without an error."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("# parameters of a pre-norm model, read as post-norm\nx = norm(x + sublayer(x))"),
        # For translators: code; only what follows a # is translated.
        right=say("# as such a model was trained\nx = x + sublayer(norm(x))"),
    ),
    measure=LOSS_MEASURE,
    texts={
        "same": say(
            "The output stays here. The chart says how large the stream is at each layer, the loss of the right "
            "output how sure the model still is of it."
        ),
        "changed": say(
            "Post-norm brings the stream to one size after each sum; pre-norm lets it grow from layer to layer. Each "
            "layer now reads vectors of another size and direction than the ones that it was trained with."
        ),
    },
    sites=stream,
    charts=size_by_layer,
    change=mistake_changes.swapped,
    source=say("Vaswani et al. (2017), section 5.4, for post-norm; Xiong et al. (2020), section 3, for both."),
)
RESIDUAL: Final = Card(
    mistake="residual",
    title=say("No residual connections"),
    about=say(
        "Each sub-layer should add something to a token’s vector. Without the addition its output takes the place of "
        "the vector: what a token is and where it stands has to pass through every attention, which mixes tokens."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("x = attention(norm(x))"),
        # For translators: code; only what follows a # is translated.
        right=say("x = x + attention(norm(x))"),
    ),
    measure=Measure(
        say("Mean cosine between the vectors of two tokens after the last layer: 1 if all are alike"),
        likeness,
    ),
    sites=stream,
    texts={
        "same": say(
            "The output stays, though no token’s own vector reaches the end except through attention. The chart says "
            "how alike the tokens have become on the way."
        ),
        "changed": say(
            "A token’s own vector reaches the next layer only as far as attention lets it through. Trained layers "
            "counted on adding to it. The chart says how alike the tokens have become on the way, with the additions "
            "and without; in training the gradient takes the same way back."
        ),
    },
    charts=likeness_by_layer,
    change=mistake_changes.no_residual,
    source=say(
        "He et al. (2016), section 3.1; Dong, Cordonnier and Loukas (2021), section 2, for tokens that grow alike."
    ),
)
