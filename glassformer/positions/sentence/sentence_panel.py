"""Part "Your sentence" of the Positions page: sizes in the sum, bias against content, or one rotary score."""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from glassformer.frame import sentence_stepper as frame
from glassformer.frame.sentence_stepper import Still, one_token
from glassformer.positions.position_controls import take_head
from glassformer.positions.positions_page import PositionScene, PositionTable
from glassformer.positions.sentence import sentence_pictures as pictures
from glassformer.positions.sentence.sentence_pictures import PLACES, InScores, Start, open_sentence
from glassformer.runs.open_run import OpenRun, attempt
from glassformer.runs.show import show
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from transformer.analysis.stream import rms
from transformer.i18n import joined, say

TOKEN = "embedding_token"
LAYER, BIAS_LAYER = "rotary_layer", "bias_layer"
HEAD = "rotary_head"
QUERY = "rotary_query"
KEY = "rotary_key"


def draw(table: PositionTable | PositionScene, run: OpenRun | None) -> None:
    """Draw the sentence, and what positions do in it."""
    if run is None:
        return
    on_source, added = run.view.side == "source", run.checkpoint.config.placing.adds == "table"
    still = one_token(run, run.view.key or 0) if on_source and added else Still() if on_source or added else None
    frame.sentence(run, compact=True, still=still)
    o = attempt(lambda: open_sentence(run))
    if isinstance(o, Start):
        _starts(o)
    elif o is not None and o.turning is None:
        _biased(o)
    elif o is not None:
        _turned(o)


# ------------------------------------------------------------------------------------------------ a table


def _starts(o: Start) -> None:
    pieces = {place: say("Token {n}: {piece}", n=place + 1, piece=piece) for place, piece in enumerate(o.pieces)}
    kept = controls.field(o.slot, PLACES[o.side], key=TOKEN)
    show(pictures.strengths, o)
    controls.menu(kept, say("Token"), pieces, otherwise=o.chosen, bare=True, width=240)
    show(pictures.rows, o)
    drawing.explain(drawing.plain(_who_drowns_whom(o)))


def _who_drowns_whom(start: Start) -> str:
    raw, token, position, total = (
        float(rms(vectors).mean()) for vectors in (start.embedding, start.tokens, start.positions, start.total)
    )
    d_model = start.embedding.shape[1]
    if start.scale == 1:
        sizes = say("Root mean square, averaged over these tokens: {raw:.3f} for the embedding (this model does "
                    "not multiply it by √{d_model} = {factor:.4g}), {position:.3f} for the position vector and "
                    "{total:.3f} for their sum.", raw=raw, d_model=d_model, factor=np.sqrt(d_model),
                    position=position, total=total)  # fmt: skip
        return joined(" ", [sizes, _compared(token, position)])
    sizes = say("Root mean square, averaged over these tokens: {raw:.3f} for the embedding ({token:.3f} after "
                "multiplying it by √{d_model} = {factor:.4g}), {position:.3f} for the position vector and "
                "{total:.3f} for their sum.", raw=raw, d_model=d_model, factor=np.sqrt(d_model), token=token,
                position=position, total=total)  # fmt: skip
    return joined(" ", [sizes, _compared(token, position), _compared_without(raw, position)])


def _compared(token: float, position: float) -> str:
    if min(token, position) <= 0:
        return say("In the sum, the embedding or the position vector is 0.")
    if token >= position:
        return say(
            "In the sum, the embedding is {times:.1f} times as large as the position vector.", times=token / position
        )
    return say(
        "In the sum, the position vector is {times:.1f} times as large as the embedding.", times=position / token
    )


def _compared_without(token: float, position: float) -> str:
    if min(token, position) <= 0:
        return say("Without the factor for the embedding, the embedding or the position vector would be 0.")
    if token >= position:
        return say(
            "Without its factor, the embedding would be {times:.1f} times as large as the position vector.",
            times=token / position,
        )
    return say(
        "Without the factor for the embedding, the position vector would be {times:.1f} times as large as the "
        "embedding.",
        times=position / token,
    )


# ------------------------------------------------------------------------------------------------ a bias


def _biased(o: InScores) -> None:
    kept = replace(controls.field(o.slot, "layer", key=BIAS_LAYER), value=o.layer)
    controls.menu_of_layers(kept, o.shape[0], all_together=False)
    found = attempt(lambda: o.spreads)
    if found is None:
        return
    show(pictures.bias_spreads, o, take=partial(take_head, o.slot))
    more = int((found.bias[o.layer] > found.content[o.layer]).sum())
    said = say("Nothing is added to the embeddings, so there is no sum of embedding and position to show. In "
               "{more} of the {n} heads of layer {layer}, this sentence's scores depend more on distance than on "
               "content.", layer=o.layer + 1, more=more, n=o.shape[1])  # fmt: skip
    drawing.explain(drawing.plain(said))


# ------------------------------------------------------------------------------------------------ rotations


def _turned(o: InScores) -> None:
    """Draw the choice of a head, a query and a key, and the curve of their score."""
    with st.container(horizontal=True, gap="small"):
        controls.menu_of_layers(_kept(o, LAYER, "layer", o.layer), o.shape[0], all_together=False)
        controls.menu_of_heads(_kept(o, HEAD, "head", o.head), o.shape[1], all_together=False)
        _menu(o, QUERY, "query", o.query, o.axes.queries, say("The step's token"))
        _menu(o, KEY, "key", o.key, o.axes.keys, say("The token before the query"))
    attempt(lambda: show(pictures.scores, o))


def _menu(
    o: InScores, widget: str, field: Literal["query", "key"], value: int, pieces: list[str], follows: str
) -> None:
    """Draw the choice of a query or a key; where there are steps its first entry goes with the step."""
    goes = o.axes.current is not None
    options: dict[int | None, str] = {None: follows} if goes else {}
    options |= dict(controls.labelled(pieces).items())
    asked = o.shown.view.get(field)
    chosen = asked if asked in options else None
    kept = replace(_kept(o, widget, field, value), value=chosen if goes else value)
    controls.menu(kept, say("Query") if field == "query" else say("Key"), options, bare=True, width=220)


def _kept(o: InScores, widget: str, field: str, value: int) -> controls.ControlBinding:
    return replace(controls.field(o.slot, field, key=widget), value=value)
