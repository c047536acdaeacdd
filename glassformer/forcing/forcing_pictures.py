"""Pictures of the page Teacher forcing (shift, two texts, candidates, losses), and which reference is judged.

The user's own reference is in the URL. Without one the card's is used, if it has one for this sentence: the English
meaning of an example is a right output of a model that writes English. Without either the model's own output is
judged, so the page always opens with a picture.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from glassformer.charts.candidates import HOW_TO_READ as HOW_TO_READ_CANDIDATES
from glassformer.charts.candidates import HOW_TO_READ_LOSSES, candidates_spec, piece_losses_spec
from glassformer.charts.piece_rows import HOW_TO_READ as HOW_TO_READ_TEXTS
from glassformer.charts.piece_rows import HOW_TO_READ_SHIFT, place_in_bands, shift_spec, two_texts_spec
from glassformer.forcing import ForcingLook
from glassformer.runs.picture import Captions, Page, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.state.view import Click, place_below
from transformer.i18n import paragraph, say, say_n
from transformer.model.anatomy import anatomy
from transformer.runs.query import Greedy, Query
from transformer.runs.teacher_forcing import Score, judge

_MOST_MARKED = 200  # points with a size that can be hit


@dataclass(frozen=True)
class Forced(RunScene):
    """What a model makes of a reference."""

    score: Score  # of the reference, by the model with what was changed in it

    @property
    def place(self) -> int:
        """The selected piece: the clicked one until the user steps on, else that of the step."""
        at, step, last = self.run.view.of(ForcingLook).at, self.run.view.step, len(self.score) - 1
        if self.score.written is None:
            return min(at or 0, last)
        follows = at is None or min(at, self.run.trace.n_steps - 1) != step
        return min(step if follows else at or 0, last)

    @property
    def own(self) -> np.ndarray:
        """The probability of each piece that was written."""
        return np.exp(self.run.trace.log_probs[np.arange(self.run.trace.n_steps), list(self.run.trace.tgt_ids)])


def known_reference(run: ViewedRun) -> str | None:
    """The right output that the reader or the card gives; None if nobody does."""
    return run.link.reference or run.checkpoint.card.reference_of(run.trace.query.source)


def reference_of(run: ViewedRun) -> str | None:
    """What is judged: the right output, else what a model that reads a source has written itself, if anything."""
    known = known_reference(run)
    if known is not None or not anatomy(run.checkpoint.config).reads:
        return known
    return run.trace.output_text.strip() or None


def is_own(run: ViewedRun) -> bool:
    """Whether what is judged is what the model has written itself, and no card says that this is right."""
    own, card = run.trace.output_text.strip(), run.checkpoint.card.reference_of(run.trace.query.source)
    return bool(own) and (reference_of(run) or "").strip() == own != (card or "").strip()


def judges_itself(run: ViewedRun) -> bool:
    """Whether a decoder-only model judges the text itself, as there is no reference."""
    return not anatomy(run.checkpoint.config).reads and reference_of(run) is None


def scene(run: ViewedRun) -> Forced | None:
    """What is judged; None where nothing is, and while somebody guesses what comes next.

    Errors as of `ModelAccess`, and where the reference cannot be read.
    """
    parts, given = anatomy(run.checkpoint.config), reference_of(run) is not None
    if not parts.writes or run.view.guess or (parts.reads and not given):
        return None
    return Forced(run, replace(judged(run), written=run.trace.tgt_ids) if given else judged(run))


def judged(run: ViewedRun, *, changed: bool = True) -> Score:
    """What the model makes of the reference, with what was changed in it or without; errors as `scene`."""
    asked, checkpoint, reference = run.trace.query, run.checkpoint, reference_of(run)
    changes = asked.interventions if changed else ()
    query = Query(checkpoint=asked.checkpoint, source=asked.source, decoding=Greedy(), interventions=changes)
    with_end = run.view.of(ForcingLook).ends or None  # None: as the model is
    return run.work.compute(
        ("teacher_forcing", query, reference, with_end),
        lambda: judge(checkpoint, query, reference, with_end=with_end),
        nbytes=lambda found: found.nbytes,
    )


FORCING = Page("forcing", say("Teacher forcing"))
JUDGED = FORCING.part("", scene)


@JUDGED.picture("forcing_shift", say("What the decoder reads, and what it has to predict"))
def shift(scene: Forced) -> Plot:
    """The right pieces as they are read, above the same as they are to be predicted; a click means a place."""
    score, n = scene.score, len(scene.score)
    figure = shift_spec(
        score.reads, score.pieces, score.losses.tolist(), guessing=score.guessing, chosen=scene.place, title=shift.title
    )
    return Plot(
        spec=figure,
        alt=say(
            "The upper row is what the decoder reads at each of {n} positions; the lower row is what it has to "
            "predict there.",
            n=n,
        ),
        how_to_read=HOW_TO_READ_SHIFT,
        clicked=partial(_place_in, first=figure["layout"]["meta"]["first"], lengths=(n, n)),
    )


@JUDGED.picture("forcing_texts", say("The reference and the model's own output"), follows="still")
def texts(scene: Forced) -> Plot | None:
    """Both texts, and where they part; a click means a place."""
    score, trace = scene.score, scene.run.trace
    if score.parting is None:
        return None
    figure = two_texts_spec(
        (say("reference"), say("own output")),
        (score.pieces, trace.tgt_tokens),
        (score.probabilities.tolist(), scene.own.tolist()),
        parts_at=score.parting.first,
        tail=score.parting.tail,
        title=texts.title,
    )
    lengths = len(score), trace.n_steps
    return Plot(
        spec=figure,
        alt=say("The {n} tokens of the reference above the {m} tokens of the model's own output.", n=lengths[0],
                m=lengths[1]),
        how_to_read=HOW_TO_READ_TEXTS,
        clicked=partial(_place_in, first=figure["layout"]["meta"]["first"], lengths=lengths),
    )  # fmt: skip


def _place_in(click: Click, *, first: int, lengths: tuple[int, int]) -> int | None:
    found = place_in_bands(click.index, n_rows=2, first=first)
    return found[1] if found is not None and found[1] < lengths[found[0]] else None


@JUDGED.picture("forcing_candidates", say("Candidates and the given token"))
def candidates(scene: Forced) -> Plot:
    """The most probable pieces of the place, and the right one, wherever it stands."""
    score, place = scene.score, scene.place
    ids, probabilities = score.best_ids[place].tolist(), score.best_probabilities[place].tolist()
    ranks = list(range(1, len(ids) + 1))
    if score.ids[place] not in ids:
        ids = [*ids, score.ids[place]]
        probabilities = [*probabilities, float(score.probabilities[place])]
        ranks = [*ranks, int(score.ranks[place])]
    spec = candidates_spec(
        [score.vocabulary[i] for i in ids],
        probabilities,
        ids=ids,
        chosen=ids.index(score.ids[place]),
        ranks=ranks,
        how_chosen=say("the given token"),
        title=say("Token {n}: candidates and the given token", n=place + 1),
    )
    alt = say(
        "The most probable tokens at token {n}; the given token is {piece}.", n=place + 1, piece=score.pieces[place]
    )
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_CANDIDATES, said=Captions(above=_sees(scene)))


@paragraph
def _sees(scene: Forced) -> Iterator[str]:
    """What a place sees and what it has to predict."""
    run, score, place = scene.run, scene.score, scene.place
    yield say_n(
        "At token {at}, the decoder reads “{reads}” and sees {n} token: this one. It has to predict “{label}”.",
        "At token {at}, the decoder reads “{reads}” and sees {n} tokens: this one and all before it. It has to "
        "predict “{label}”.",
        len(score.before) + place,
        at=place + 1,
        reads=score.reads[place],
        label=score.pieces[place],
    )
    if anatomy(run.checkpoint.config).reads:
        yield say_n(
            "The decoder also sees the {n} token of the source.",
            "The decoder also sees all {n} tokens of the source.",
            len(run.trace.src_tokens),
        )
    p, rank, loss = float(score.probabilities[place]), int(score.ranks[place]), float(score.losses[place])
    given = say(
        "The given token has p = {p:.3g}, rank {rank:,} and a loss of {loss:.3f} nats.", p=p, rank=rank, loss=loss
    )
    if score.hits[place]:
        yield given
        yield say("This is the token that the model itself would write.")
        return
    own, q = score.own_pieces[place], float(score.own_probabilities[place])
    yield given
    yield say("The model itself would write “{own}” instead, with p = {q:.3g}.", own=own, q=q)


@JUDGED.picture("forcing_losses", say("Loss by position"))
def losses(scene: Forced) -> Plot:
    """The loss of each right piece; a click means a place."""
    score = scene.score
    spec = piece_losses_spec(
        score.pieces,
        score.losses.tolist(),
        places=range(len(score)),
        ranks=score.ranks.tolist(),
        best=[score.vocabulary[i] for i in score.best_ids[:, 0]],
        best_probabilities=score.best_probabilities[:, 0].tolist(),
        chosen=scene.place,
        guessing=score.guessing,
        title=losses.title,
    )
    alt = say("The loss of each of the {n} given tokens, the mean loss, and the loss of random guessing.", n=len(score))
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_LOSSES, clicked=place_below(len(score)))
