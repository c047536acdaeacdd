"""The card of the leak: a model that was trained without the causal mask, beside one that was trained with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from transformer.checkpoint.load import Checkpoint
from transformer.errors import QueryError
from transformer.runs.query import Query
from ui.runs import loading
from ui.wrong import mistake_changes
from ui.wrong.card import LEAK, Card, Code, Measure, Side, Sides
from ui.wrong.mistake_figures import LOSS, loss, loss_by_piece
from words import Sentence, say

HEALTHY: Final = "reverse"
SEEN: Final = say("Without the mask, as in its training")
UNSEEN: Final = say("With the mask, as in use")


def unfit(checkpoint: Checkpoint) -> Sentence | None:
    """Only two models of one task tell the leak from everything else."""
    if {HEALTHY, LEAK} - loading.usable().keys():
        return say("The two checkpoints that this takes, {healthy} and {leak}, are not both here.", healthy=HEALTHY,
                   leak=LEAK)  # fmt: skip
    if checkpoint.name not in (HEALTHY, LEAK):
        return say(
            "A leak is made in training, and this model was not trained with one: “{leak}” was, on letters.",
            leak=LEAK,
        )
    return None


def sides(side: Side) -> Sides:
    """Both models write; then the leak reads the right output, once with the future open and once as it is in use."""
    healthy, leak = (_of(name, side.query) for name in (HEALTHY, LEAK))
    sees = replace(leak, query=replace(leak.query, interventions=mistake_changes.future_open(leak.checkpoint.config)))
    return Sides(healthy, leak, sees, leak)


def _of(name: str, query: Query) -> Side:
    entry = loading.usable().get(name)
    if entry is None:
        raise QueryError("{name} is no checkpoint here any more.", name=name)
    checkpoint = loading.open_checkpoint(entry)
    here = Query(
        checkpoint=checkpoint.content_hash, source=query.source, decoding=query.decoding, max_new=query.max_new
    )
    return Side(checkpoint, here)


CARD: Final = Card(
    mistake="leak",
    title=say("The leak: trained without the causal mask"),
    about=say(
        "In training the decoder is given the whole right output at once, and each row has to guess the next piece "
        "of it. Without the causal mask that piece stands in front of its eyes. The model learns to look it up: the "
        "loss is near 0, and nothing was learned that helps to write."
    ),
    code=Code(
        # For translators: code; only what follows a # is translated.
        wrong=say("# no mask: each row sees all of tgt_in\nlogits = model(src, tgt_in)"),
        # For translators: code; only what follows a # is translated.
        right=say(
            "# True = may attend\n"
            "causal = torch.ones(T, T).tril().bool()\n"
            "logits = model(src, tgt_in, tgt_mask=causal)"
        ),
    ),
    measure=Measure(LOSS, loss, form=".2g", labels=(SEEN, UNSEEN), model=LEAK),
    texts={
        "same": say(
            "Here the model that was trained on the leak writes what the other one writes. It does so by chance: the "
            "loss of the right output shows how much worse it knows it once the future is closed."
        ),
        "changed": say(
            "With the right output before its eyes it knows every piece of it, so that the loss in training looked "
            "perfect. When it writes, the piece after the last one is not there yet, and there is nothing to look "
            "up. A loss near 0 on a task that is not trivial is a reason to look for a leak."
        ),
        "nothing": say(
            "With the right output before its eyes it knows every piece of it, so that the loss in training looked "
            "perfect. When it writes, no piece follows the last one; in training that was so only at the end of a "
            "word, and so it ends at once."
        ),
    },
    charts=loss_by_piece((SEEN, UNSEEN), model=LEAK),
    change=mistake_changes.future_open,
    unfit=unfit,
    seen_on=LEAK,
    sides=sides,
    labels=(
        say("“{model}”, trained with the mask, writes", model=HEALTHY),
        say("“{model}”, trained without it, writes", model=LEAK),
    ),
    source=say("Vaswani et al. (2017), section 3.2.3; the checkpoint reverse-leak was trained for this card."),
)
