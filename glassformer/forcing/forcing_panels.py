"""Panels of the page Teacher forcing: box for the reference, losses in sentences, table of the given tokens."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from glassformer.charts.piece_rows import MOST
from glassformer.forcing import forcing_pictures
from glassformer.forcing.forcing_pictures import Forced, is_own, judges_itself, known_reference, reference_of
from glassformer.frame.decoding import hidden_while_guessing
from glassformer.frame.sentence_stepper import Still, sentence
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.show import show
from glassformer.shared import controls, cover_box, drawing, menu
from glassformer.shared.i18n import here, st
from glassformer.state import session
from glassformer.state.view import Slot
from transformer.i18n import say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.teacher_forcing import Parting, Score

NO_REFERENCE = say("Type the correct output above, or use the model's own output and edit it.")
ITS_OWN = say(
    "The text judged here is the model's own output, because no other correct output is known. The numbers show how "
    "sure the model is of it, not whether it is correct. Type the correct output above, or edit this text."
)


def draw(run: OpenRun) -> None:
    """Draw the sentence, and below it the page."""
    sentence(run, compact=True, still=Still() if judges_itself(run) else None)
    cover_box.part(lambda: _forced(run))


def _forced(run: OpenRun) -> None:
    """Draw all of it; a model or a mode that has nothing to force gets a sentence instead."""
    if not anatomy(run.checkpoint.config).writes:
        _instead(run)
        return
    if hidden_while_guessing(run.view.guess):
        return
    _entry(run)
    if reference_of(run) is None and not judges_itself(run):
        st.info(NO_REFERENCE, icon=":material/keyboard:")
        return
    if is_own(run):
        st.info(ITS_OWN, icon=":material/keyboard:")
    with st.spinner(say("Reading the reference…")):  # seen where that takes longer than a moment
        scene = attempt(lambda: forcing_pictures.scene(run))
    if scene is None:
        return
    score = scene.score
    drawing.notes([note for note in score.notes if note not in run.trace.notes])
    first, *more = summary(run, score)
    st.markdown(first)
    take = partial(look_at, run.slot, 0 if score.written is None else run.trace.n_steps)
    drawing.beside(lambda: _texts(scene, take), lambda: show(forcing_pictures.candidates, scene), widths=(3, 2))
    show(forcing_pictures.losses, scene, take=take)
    drawing.explain(*more)
    _table(run, score)


def look_at(slot: Slot, n_steps: int, place: int) -> None:
    """Callback: look at another piece of the reference, and at the step of that number; 0 steps if they differ."""
    session.replace(slot, at=place)
    if n_steps:
        session.move_to(slot, min(place, n_steps - 1))


def _texts(scene: Forced, take: partial[None]) -> None:
    show(forcing_pictures.shift, scene, take=take)
    n, parted = len(scene.score), scene.score.parting
    if n > MOST:
        st.caption(say("Only the tokens around the chosen one are shown; the other charts show all {n:,}.", n=n))
    if parted is not None and not is_own(scene.run):  # with itself it agrees
        show(forcing_pictures.texts, scene, take=take)
        drawing.explain(*told(scene, parted))


def _instead(run: OpenRun) -> None:
    """Draw what an encoder-only model has instead of reference outputs."""
    if anatomy(run.checkpoint.config).fills:
        said = say(
            "This encoder-only model generates no output, so there is no correct output to compare with. To "
            "see how well it predicts each token of a text, hide one token at a time."
        )
        st.info(said, icon=":material/info:")
        menu.link("step", say("Hide a token on the page Translate"), run.link, icon=":material/visibility_off:")
    else:
        said = say(
            "This encoder-only model generates no output and has no head that predicts masked tokens, so it "
            "has no loss."
        )
        st.info(said, icon=":material/info:")


# ------------------------------------------------------------------------------------------------ words


def summary(run: OpenRun, score: Score) -> list[str]:
    """The numbers of the whole reference; and of the unchanged model beside them, where something is changed."""
    said: list[str] = [
        say_n(
            "**Mean loss {mean:.3f} nats** over {n:,} token: **perplexity {perplexity:,.4g}**, as if the model had "
            "to choose among that many equally likely tokens.",
            "**Mean loss {mean:.3f} nats** over {n:,} tokens: **perplexity {perplexity:,.4g}**, as if the model "
            "had to choose among that many equally likely tokens.",
            len(score),
            mean=score.mean_loss,
            perplexity=score.perplexity,
        ),
        say(
            "Random guessing among all {pieces:,} tokens of its vocabulary has a loss of {guessing:.2f} nats.",
            pieces=len(score.vocabulary),
            guessing=score.guessing,
        ),
    ]
    if not is_own(run):
        said.append(say("The model's first choice is the right token at {hits:,} of {n:,} positions.",
                        hits=int(score.hits.sum()), n=len(score)))  # fmt: skip
    if run.trace.query.interventions:
        said += _changed(run, score)
    if judges_itself(run):
        said.append(
            say("These are the losses of the prompt itself: each token is predicted from the tokens before it. To "
                "judge what follows the prompt, add a reference.")
        )  # fmt: skip
    return said


def _changed(run: OpenRun, score: Score) -> Iterator[str]:
    """That the losses are those of the changed model, and what the unchanged one has."""
    yield say("These are the losses of the changed model.")
    control = attempt(lambda: forcing_pictures.judged(run, changed=False))
    if control is not None:
        yield say(
            "The unchanged model has a mean loss of {mean:.3f} nats and a perplexity of {perplexity:,.4g}. The "
            "change shifts the mean loss by {difference:+.3f} nats.",
            mean=control.mean_loss,
            perplexity=control.perplexity,
            difference=score.mean_loss - control.mean_loss,
        )
    if not score.causal:
        yield say(
            "Each token is predicted only from what comes before it, just as when the model writes its own output."
        )


def told(scene: Forced, parted: Parting) -> Iterator[str]:
    """Where the reference and the own output part, how probable both are there, and whether they end alike."""
    trace, score = scene.run.trace, scene.score
    if trace.query.forced:
        yield say_n(
            "You forced the first {n} token of the output.",
            "You forced the first {n} tokens of the output.",
            len(trace.query.forced),
        )
    if parted.first is None:
        yield say("**On its own, the model writes exactly the reference, token for token.**")
    elif parted.first >= len(score):
        yield say("**On its own, the model writes the whole reference**, then continues.")
    elif parted.first >= trace.n_steps:
        yield say(
            "**The model's own output matches the beginning of the reference**, but it was cut off after {n} tokens.",
            n=trace.n_steps,
        )
    else:
        yield _parting(scene, parted.first)
        yield _after(scene, parted)
    yield say(
        "Log-probability: {reference:.2f} nats for the reference ({n:,} tokens), {own:.2f} nats for the "
        "model's own output ({m:,} tokens).",
        reference=score.log_prob,
        n=len(score),
        own=trace.log_prob,
        m=trace.n_steps,
    )


def _parting(scene: Forced, place: int) -> str:
    score = scene.score
    return say("**The reference and the model's own output first differ at token {n}**: after the same beginning, "
               "the reference has {right} (p = {p:.3g}), but the model wrote {wrote} (p = {q:.3g}).", n=place + 1,
               right=drawing.strong(score.pieces[place]), p=float(score.probabilities[place]),
               wrote=drawing.strong(scene.run.trace.tgt_tokens[place]), q=float(scene.own[place]))  # fmt: skip


def _after(scene: Forced, parted: Parting) -> str:
    """How many pieces both end with; the end piece alone does not count."""
    score, ends = scene.score, scene.run.checkpoint.config.end_ids
    alike = parted.tail - (parted.tail > 0 and score.ids[-1] in ends)
    if not alike:
        return say("The two endings differ, too.")
    last = len(score) - (parted.tail - alike)
    return say_n(
        "Both end with the same {n} token: “{pieces}”.",
        "Both end with the same {n} tokens: “{pieces}”.",
        alike,
        pieces=drawing.plain(" ".join(score.pieces[last - alike : last])),
    )


# ------------------------------------------------------------------------------------------------ the table


def _table(run: OpenRun, score: Score) -> None:
    kinds = st.column_config
    chance = partial(kinds.NumberColumn, format="%.4f")
    columns = {
        "place": kinds.Column(here(say("Position"))),
        "reads": kinds.Column(here(say("Reads"))),
        "piece": kinds.Column(here(say("Given token"))),
        "id": kinds.Column(here(say("Id"))),
        "loss": kinds.NumberColumn(here(say("Loss (nats)")), format="%.3f"),
        "probability": chance(here(say("Probability"))),
        "rank": kinds.Column(here(say("Rank"))),
        "own_piece": kinds.Column(here(say("It would write"))),
        "own_probability": chance(here(say("With probability"))),
    }
    st.container(key=run.key("forcing_table")).dataframe(
        score.to_frame()[list(columns)],
        hide_index=True,
        height="content" if len(score) <= 12 else 420,
        column_config=columns,
        alt=say("Every given token with its loss, probability and rank, one per row."),
    )
    drawing.csv_button(partial(_columns, score), key=run.key("forcing_csv"), title=say("teacher forcing"))


def _columns(score: Score) -> dict[str, Any]:
    return {str(name): column.to_numpy() for name, column in score.to_frame().items()}


# ------------------------------------------------------------------------------------------------ the box


BOX: Final = "reference_box"
OWN: Final = "reference_own"
OF_CARD: Final = "reference_of_card"
NONE: Final = "reference_none"
BOX_WIDTH: Final = 480  # pixels; what is next to it wraps below it where there is no room


def _entry(run: OpenRun) -> None:
    """Draw the box with the reference, and the buttons beside it."""
    slot, key, asked = run.slot, run.key(BOX), run.link.source
    shown, card = known_reference(run) or "", run.checkpoint.card.reference_of(run.trace.query.source)
    if st.session_state.get(key) != shown:
        st.session_state[key] = shown
    reads = anatomy(run.checkpoint.config).reads
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            say("Text judged: the model's own output")
            if shown and is_own(run)
            else say("Reference: the correct output")
            if reads
            else say("Reference: what should follow the prompt"),
            key=key,
            on_change=lambda: _take(slot, asked, st.session_state[key]),
            placeholder=say("Type the correct output, then press Enter"),
            width=BOX_WIDTH,
        )
        own = run.trace.output_text.strip()
        if own and own != shown:
            _offer(run, OWN, say("Use the model's own output"), run.trace.output_text)
        if card and shown != card:
            _offer(run, OF_CARD, say("Use the card's reference"), "", tip=card)
        if not reads and shown:
            _offer(run, NONE, say("Judge the prompt itself"), "")
    if not reads:
        controls.switch(
            controls.field(run.slot, "ends"),
            say("Include the end mark"),
            help=say("When on, the loss also counts the end mark after the text."),
        )


def _offer(run: OpenRun, name: str, label: str, text: str, *, tip: str = "") -> None:
    """Draw a button that takes a text; an empty one stands for none of the reader's own."""
    st.button(
        label,
        key=run.key(name),
        help=drawing.plain(tip or text) or None,
        on_click=partial(_take, run.slot, run.link.source, text),
    )


def _take(slot: Slot, source: str | None, text: str) -> None:
    """Callback: this is the reference now, and its first piece is looked at."""
    session.keep_reference(source, text)
    session.replace(slot, at=None)
    session.stand(slot, notes=())
