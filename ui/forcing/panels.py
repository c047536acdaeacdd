"""The page Teacher forcing: what the model makes of each right piece, as numbers, as charts and as a table."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import charts
from charts.bands import MOST, place_in_bands
from charts.candidates import HOW_TO_READ as HOW_TO_READ_CANDIDATES
from charts.perplexity import HOW_TO_READ as HOW_TO_READ_PERPLEXITY
from charts.piece_losses import HOW_TO_READ as HOW_TO_READ_LOSSES
from charts.shift import HOW_TO_READ as HOW_TO_READ_SHIFT
from transformer.model.anatomy import anatomy
from transformer.runs.teacher_forcing import Score
from ui.forcing import entry, free, reading
from ui.runs import figures
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import drawing, menu
from ui.shared.clicks import on_click
from ui.shared.door import here, st
from ui.state.click import Click, place_below
from words import joined, say, say_n

SHIFT: Final = "forcing_shift"
CANDIDATES: Final = "forcing_candidates"
LOSSES: Final = "forcing_losses"
PERPLEXITY: Final = "forcing_perplexity"
TABLE: Final = "forcing_table"
CSV: Final = "forcing_csv"

NOT_WHILE_GUESSING = say(
    "This page tells what comes next. Turn off “Hide candidates until I guess” in the sidebar to see it."
)

NO_REFERENCE = say("Type the right output above, or take the model's own and change it.")


def draw(run: OpenRun) -> None:
    """Draw all of it; a model or a mode that has nothing to force gets a sentence instead."""
    if not anatomy(run.checkpoint.config).writes:
        _instead(run)
        return
    if run.view.guess:
        st.info(NOT_WHILE_GUESSING, icon=":material/visibility_off:")
        return
    entry.draw(run)
    if reading.reference_of(run) is None and not reading.judges_itself(run):
        st.info(NO_REFERENCE, icon=":material/keyboard:")
        return
    with st.spinner(say("Reading the reference…")):  # seen where that takes longer than a moment
        score = attempt(lambda: reading.score_of(run))
    if score is None:
        return
    drawing.notes([note for note in score.notes if note not in run.trace.notes])
    place = reading.place_of(run, score)
    st.markdown(summary(run, score))
    drawing.beside(lambda: _texts(run, score, place), lambda: _place(run, score, place), widths=(3, 2))
    drawing.beside(lambda: _losses(run, score, place), lambda: _perplexity(run, score, place))
    _table(run, score)


def _instead(run: OpenRun) -> None:
    """What an encoder alone has in the place of right outputs."""
    if anatomy(run.checkpoint.config).fills:
        st.info(
            say(
                "This model writes nothing, so that no output can be right; what it makes of each piece of a text is "
                "seen by hiding one piece at a time."
            ),
            icon=":material/info:",
        )
        menu.link("step", say("Hide a piece on the page Step"), run.link, icon=":material/visibility_off:")
    else:
        st.info(
            say("This model writes nothing and has no head that says which piece fits, so that it has no loss."),
            icon=":material/info:",
        )


# ------------------------------------------------------------------------------------------------ words


def summary(run: OpenRun, score: Score) -> str:
    """The numbers of the whole reference; and of the unchanged model beside them, where something is changed."""
    said: list[str] = [
        say_n(
            "**Mean loss {mean:.3f} nats** over {n:,} piece: **perplexity {perplexity:,.4g}**, as unsure as between "
            "so many pieces alike.",
            "**Mean loss {mean:.3f} nats** over {n:,} pieces: **perplexity {perplexity:,.4g}**, as unsure as between "
            "so many pieces alike.",
            len(score),
            mean=score.mean_loss,
            perplexity=score.perplexity,
        ),
        say(
            "The model would write {hits:,} of the {n:,} itself. Guessing among all {pieces:,} pieces of its "
            "vocabulary would be {guessing:.2f} nats.",
            hits=int(score.hits.sum()),
            n=len(score),
            pieces=len(score.vocabulary),
            guessing=score.guessing,
        ),
    ]
    if run.trace.query.interventions:
        said += _changed(run, score)
    if reading.judges_itself(run):
        said.append(
            say("Judged are the pieces of the prompt itself, each from those before it; give a reference to judge "
                "what follows it.")
        )  # fmt: skip
    return joined(" ", said)


def _changed(run: OpenRun, score: Score) -> list[str]:
    """That the losses are those of the changed model, and what the unchanged one has."""
    said: list[str] = [say("These are the losses of the changed model.")]
    control = attempt(lambda: reading.control_of(run))
    if control is not None:
        said.append(
            say(
                "Unchanged it has a mean loss of {mean:.3f} nats, perplexity {perplexity:,.4g}: {difference:+.3f} "
                "nats by the change.",
                mean=control.mean_loss,
                perplexity=control.perplexity,
                difference=score.mean_loss - control.mean_loss,
            )
        )
    if not score.causal:
        said.append(say("Each place is computed from what stands before it alone, as in writing."))
    return said


def _sees(run: OpenRun, score: Score, place: int) -> str:
    """What a place sees and what it has to predict."""
    said: list[str] = [
        say_n(
            "Place {at} reads **{reads}** and sees that {n} piece; it has to predict **{label}**.",
            "Place {at} reads **{reads}** and sees {n} pieces, this one and all before it; it has to predict "
            "**{label}**.",
            len(score.before) + place,
            at=place + 1,
            reads=drawing.plain(score.reads[place]),
            label=drawing.plain(score.pieces[place]),
        )
    ]
    if anatomy(run.checkpoint.config).reads:
        said.append(
            say_n("It sees the {n} piece of the source, too.", "It sees all {n} pieces of the source, too.",
                  len(run.trace.src_pieces))
        )  # fmt: skip
    p, rank, loss = float(score.probabilities[place]), int(score.ranks[place]), float(score.losses[place])
    given = say(
        "The model gives that p = {p:.3g}, rank {rank:,}, a loss of {loss:.3f} nats.", p=p, rank=rank, loss=loss
    )
    if score.hits[place]:
        return joined(" ", [*said, given, say("It would write it there itself.")])
    own, q = drawing.plain(score.own_pieces[place]), float(score.own_probabilities[place])
    return joined(" ", [*said, given, say("It would write **{own}** there, p = {q:.3g}.", own=own, q=q)])


# ------------------------------------------------------------------------------------------------ charts


def _texts(run: OpenRun, score: Score, place: int) -> None:
    _shift(run, score, place)
    free.draw(run, score)


def _shift(run: OpenRun, score: Score, place: int) -> None:
    figure = charts.shift_spec(
        score.reads,
        score.pieces,
        score.losses.tolist(),
        guessing=score.guessing,
        chosen=place,
        title=say("What is read, and what is to be predicted"),
    )
    key = run.key(SHIFT)
    first, n = figure["layout"]["meta"]["first"], len(score)

    def read(click: Click) -> int | None:
        found = place_in_bands(click.index, n_rows=2, first=first)
        return found[1] if found is not None and found[1] < n else None

    drawing.chart(
        figure,
        key=key,
        alt=say("Above, what the decoder reads at each of {n} places; below, what it has to predict there.", n=n),
        how_to_read=HOW_TO_READ_SHIFT,
        on_click=on_click(key, read, reading.looking(run, score)),
    )
    if n > MOST:
        st.caption(
            say("These are the places around the one that is looked at; the other charts have all {n:,}.", n=n)
        )


def _place(run: OpenRun, score: Score, place: int) -> None:
    ids, probabilities = score.best_ids[place].tolist(), score.best_probabilities[place].tolist()
    ranks = list(range(1, len(ids) + 1))
    if score.ids[place] not in ids:
        ids = [*ids, score.ids[place]]
        probabilities = [*probabilities, float(score.probabilities[place])]
        ranks = [*ranks, int(score.ranks[place])]
    figure = charts.candidates_spec(
        [score.vocabulary[i] for i in ids],
        probabilities,
        ids=ids,
        chosen=ids.index(score.ids[place]),
        ranks=ranks,
        how_chosen=say("the right piece"),
        title=say("Place {n}: candidates, and the right piece", n=place + 1),
    )
    st.markdown(_sees(run, score, place))
    drawing.chart(
        figure,
        key=run.key(CANDIDATES),
        alt=say("The most probable pieces at place {n}; right is {piece}.", n=place + 1, piece=score.pieces[place]),
        how_to_read=HOW_TO_READ_CANDIDATES,
    )


def _losses(run: OpenRun, score: Score, place: int) -> None:
    key = run.key(LOSSES)
    drawing.chart(
        figures.piece_losses(score, place),
        key=key,
        alt=say("The loss of each of the {n} right pieces, with the mean and that of guessing.", n=len(score)),
        how_to_read=HOW_TO_READ_LOSSES,
        on_click=on_click(key, place_below(len(score)), reading.looking(run, score)),
    )


def _perplexity(run: OpenRun, score: Score, place: int) -> None:
    key = run.key(PERPLEXITY)
    figure = charts.perplexity_spec(
        score.pieces,
        score.perplexities.tolist(),
        score.running_perplexity.tolist(),
        n_pieces=len(score.vocabulary),
        chosen=place,
        title=say("Perplexity by position, {perplexity:,.4g} at the end", perplexity=score.perplexity),
    )
    drawing.chart(
        figure,
        key=key,
        alt=say("The perplexity of each of {n} pieces, and of all up to each.", n=len(score)),
        how_to_read=HOW_TO_READ_PERPLEXITY,
        on_click=on_click(key, place_below(len(score)), reading.looking(run, score)),
    )


# ------------------------------------------------------------------------------------------------ the table


def _table(run: OpenRun, score: Score) -> None:
    said = {
        "place": say("Place"), "reads": say("Reads"), "piece": say("Right piece"), "id": say("Id"),
        "loss": say("Loss (nats)"), "probability": say("Probability"), "rank": say("Rank"),
        "own_piece": say("It would write"), "own_probability": say("With probability"),
    }  # fmt: skip
    columns: dict[str, Any] = {name: st.column_config.Column(here(label)) for name, label in said.items()}
    columns["loss"] = st.column_config.NumberColumn(here(said["loss"]), format="%.3f")
    for name in ("probability", "own_probability"):
        columns[name] = st.column_config.NumberColumn(here(said[name]), format="%.4f")
    st.container(key=run.key(TABLE)).dataframe(
        score.to_frame()[list(said)],
        hide_index=True,
        height="content" if len(score) <= 12 else 420,
        column_config=columns,
        alt=say("Every right piece with its loss, its probability and its rank, one a row."),
    )
    drawing.csv_button(partial(_columns, score), key=run.key(CSV), title=say("teacher forcing"))


def _columns(score: Score) -> dict[str, Any]:
    """All columns of the table, for its file."""
    return {str(name): column.to_numpy() for name, column in score.to_frame().items()}
