"""Translate page of encoder-only models: predictions for a masked token, and each token's loss (MLM)."""

from dataclasses import replace
from functools import partial

import numpy as np

from glassformer.charts.candidates import HOW_TO_READ_HIDDEN as HOW_TO_READ_TURNS
from glassformer.charts.candidates import candidates_spec, hidden_pieces_spec
from glassformer.frame.sentence_stepper import ChosenToken
from glassformer.runs.error_boundary import attempt
from glassformer.runs.hidden_pieces import gap_of, hidden, hidden_place, text_of
from glassformer.runs.open_run import OpenRun
from glassformer.runs.viewed_run import N_CANDIDATES
from glassformer.shared import controls, drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.view import Click, Slot, place_of
from transformer.i18n import joined, say, say_n
from transformer.model.anatomy import anatomy

CANDIDATES = "hidden_candidates"
TURNS = "hidden_turns"
CHOICE = "hidden_choice"
WRITES_NOTHING = say(
    "This encoder-only model generates no output, so there are no steps. The Attention page shows how it reads text."
)
NO_HEAD = say("The model has no MLM head to predict hidden tokens, so no token can be hidden here.")
HOW_TO_READ_CANDIDATES = say(
    "Each bar is one token that the model could write in the gap, with its probability. ✓ marks the hidden token."
)


def take_place(slot: Slot, place: int) -> None:
    """Callback: hide another piece."""
    session.replace(slot, hidden=place)


def _clicked(slot: Slot, click: Click) -> None:
    if (place := place_of(click)) is not None:
        take_place(slot, place)


def chosen(run: OpenRun) -> ChosenToken | None:
    """The hidden piece, as the sentence shows it and lets another be clicked; None where nothing can be hidden."""
    return ChosenToken(hidden_place(run), partial(take_place, run.slot)) if gap_of(run) is not None else None


def draw(run: OpenRun) -> None:
    """Draw what fits in the gap, and what each piece costs when it is hidden; or say why nothing can be hidden."""
    if not anatomy(run.checkpoint.config).fills:
        st.info(joined(" ", [WRITES_NOTHING, NO_HEAD]))
        return
    gap = gap_of(run)
    if gap is None:
        said = say(
            "This model can predict which token fits in a gap. But its tokenizer has no token that marks a "
            "gap, for example [MASK], so nothing can be hidden."
        )
        st.info(said)
        return
    pieces, place = controls.labelled(run.trace.src_tokens), hidden_place(run)
    kept = replace(controls.field(run.slot, "hidden", key=CHOICE), value=place)
    said = say(
        "The model does not see the token chosen here. To hide a different token, click it in the sentence above, or "
        "click a bar."
    )
    controls.menu(kept, say("Hidden token"), pieces, width=240, help=said)
    drawing.beside(partial(_gap, run, gap, place), partial(_turns, run, gap, place))


def _gap(run: OpenRun, gap: int, place: int) -> None:
    found = attempt(lambda: hidden(run, [place], gap, whole=True))
    if found is None:
        return
    original, tokenizer = run.trace.src_ids[place], run.checkpoint.src_tokenizer
    ids = found.likeliest(0, N_CANDIDATES)
    ranks = list(range(1, len(ids) + 1))
    if original not in ids:
        ids, ranks = [*ids, original], [*ranks, int(found.ranks[0])]
    probabilities = np.exp(found.log_probs[0, ids]).tolist()
    piece = run.trace.src_tokens[place]
    figure = candidates_spec(
        [tokenizer.piece(i) for i in ids],
        probabilities,
        ids=ids,
        chosen=ids.index(original),
        ranks=ranks,
        how_chosen=say("hidden here"),
        title=say("Token {n}: candidates for the hidden token", n=place + 1),
    )
    drawing.chart(
        figure,
        key=run.key(CANDIDATES),
        alt=say("The most probable tokens for token {n}, where {piece} is hidden.", n=place + 1, piece=piece),
        how_to_read=HOW_TO_READ_CANDIDATES,
        fit=True,
    )
    said = say(
        "The model gives **{piece}** p = {p:.3g}: rank {rank:,} of {n:,}, a loss of −ln p = {loss:.3f} nats.",
        piece=drawing.plain(piece),
        p=probabilities[ids.index(original)],
        rank=int(found.ranks[0]),
        n=found.log_probs.shape[1],
        loss=float(found.losses[0]),
    )
    st.markdown(said)


def _turns(run: OpenRun, gap: int, place: int) -> None:
    places = text_of(run)
    if not places:
        return
    found = attempt(lambda: hidden(run, places, gap))
    if found is None:
        return
    tokenizer, key = run.checkpoint.src_tokenizer, run.key(TURNS)
    figure = hidden_pieces_spec(
        [run.trace.src_tokens[one] for one in places],
        found.losses.tolist(),
        places=places,
        ranks=found.ranks.tolist(),
        best=[tokenizer.piece(int(i)) for i in found.best],
        best_probabilities=found.best_probabilities.tolist(),
        chosen=place,
        title=say("Loss of each token, hidden in turn"),
    )
    drawing.chart(
        figure,
        key=key,
        alt=say("The loss of each token of the text when only that token is hidden, one bar per token."),
        how_to_read=HOW_TO_READ_TURNS,
        fit=True,
        on_click=partial(_clicked, run.slot),
    )
    first = int((found.ranks == 1).sum())
    written = say_n(
        "When the {all} tokens of the text are hidden one at a time, {n} of them is the model's first choice.",
        "When the {all} tokens of the text are hidden one at a time, {n} of them are the model's first choice.",
        first,
        all=len(places),
    )
    perplexity = say(
        "The mean loss is {mean:.3f} nats. The pseudo-perplexity is e to the power of this loss, {value:.4g}: the "
        "model is as unsure as if it chose among that many equally likely tokens.",
        mean=float(found.losses.mean()),
        value=found.pseudo_perplexity,
    )
    drawing.explain(drawing.plain(written), drawing.plain(perplexity))
