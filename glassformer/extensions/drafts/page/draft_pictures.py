"""Pictures of the part Draft and check: rounds of a draft and its checks, and outputs with weights of fewer bits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from glassformer.charts.hover import bold, on_lines
from glassformer.charts.piece_rows import MOST_COLUMNS, Fate, PieceCell, piece_rows_spec
from glassformer.charts.theme import literal, shortened
from glassformer.extensions.drafts.page import DraftsLook
from glassformer.extensions.drafts.rounds import (
    Drafted,
    DraftPosition,
    DraftRound,
    How,
    Rounded,
    draft_and_check,
    layers_there,
    with_few_bits,
)
from glassformer.extensions.what_if.interventions.layer_changes import WIDTHS
from glassformer.runs.picture import Captions, CaptionTable, Plot
from glassformer.runs.viewed_run import RunScene, ViewedRun
from glassformer.search.tree_pictures import NO_TEXT, SEARCH
from glassformer.server.jobs import SMALL
from glassformer.server.model_runner import cost_of
from glassformer.state.view import column_below, into
from transformer.i18n import joined, paragraph, say, say_n
from transformer.i18n.sentence import chance
from transformer.model.anatomy import anatomy
from transformer.runs.query import Greedy, Query

HOW_TO_READ: Final = say(
    "Each row is one round: the draft proposes tokens, and one pass of the model reads all of them. Blue ✓: the "
    "model would have written the same. Orange ✗: the first token that it would have written otherwise, and the "
    "model's own token instead, in bold. Grey: proposals after that, which no longer count. Purple +: the model's "
    "own token after a draft that was accepted whole. The current step has a frame."
)
HOW_TO_READ_BITS: Final = say(
    "Each row is the output with weights of so many bits, decoded greedily. Blue: tokens of the output without "
    "rounding. Orange: different tokens."
)
NAMES: Final[dict[Fate, str]] = {
    "good": say("accepted"),
    "replaced": say("replaced"),
    "added": say("added by the model"),
    "unread": say("not reached"),
}
SAME, OTHER = say("unchanged token"), say("changed token")
_FURTHER: Final = 1  # columns after the output without rounding
_MOST_TEXT: Final = 100  # letters of an output in the table


@dataclass(frozen=True)
class Checked(RunScene):
    """A draft of the sentence at hand, and its checks."""

    how: How
    drafted: Drafted

    @property
    def step(self) -> int:
        """The selected place; the last if the run has more steps than this output."""
        return max(min(self.run.view.step, len(self.drafted.ids) - 1), 0)


def greedy_query(run: ViewedRun) -> Query:
    """What is drafted: the run's query, decoded greedily."""
    return replace(run.trace.query, decoding=Greedy(), hypothesis=0)


def how_of(run: ViewedRun) -> How:
    """The selected draft; bits where the model has too few layers for one with fewer."""
    look, layers = run.view.of(DraftsLook), layers_there(run.checkpoint)
    if look.draft == "layers" and layers:
        return How("layers", min(look.draft_layers or (len(layers) + 2) // 2, len(layers)), look.ahead)
    kind = "bits" if look.draft == "layers" else look.draft
    return How(kind, max(look.draft_bits, min(WIDTHS)) if kind == "bits" else 0, look.ahead)


def is_unasked(run: ViewedRun) -> bool:
    """Whether drafts are quick enough to be made unasked."""
    return run.checkpoint.config.count_parameters() <= SMALL


def drafted(run: ViewedRun) -> Checked | None:
    """The selected draft, with its checks; errors as of `ModelAccess`.

    None without an output, while the user guesses, and with a large model until it is requested.
    """
    made = run.view.of(DraftsLook).with_drafts or is_unasked(run)
    if not anatomy(run.checkpoint.config).writes or run.view.guess or not made:
        return None
    query, how = greedy_query(run), how_of(run)
    found = run.work.long(
        ("drafts", query, how),
        lambda pause: draft_and_check(run.checkpoint, query, how, pause=pause),
        cost=3 * cost_of(query),
        nbytes=lambda made: made.nbytes,
    )
    return Checked(run, how, found)


DRAFTS = SEARCH.part("drafts", drafted)


# ------------------------------------------------------------------------------------------------ rounds


@DRAFTS.picture("search_drafts", say("A draft and its checks, round by round"))
def rounds(scene: Checked) -> Plot | None:
    """What each round proposed and what became of it; a click means a step. None where every piece was forced."""
    found, step = scene.drafted, scene.step
    first = step // MOST_COLUMNS * MOST_COLUMNS  # of the places that are drawn
    end = min(first + MOST_COLUMNS, len(found.ids))
    here = [(n, one) for n, one in enumerate(found.rounds) if one.start < end and _end_of(one) > first]
    if not found.rounds:
        return None
    rows = [(say("Round {n}", n=n + 1), _cells(scene, n, one)[first:end]) for n, one in here]
    return Plot(
        spec=piece_rows_spec(
            rows,
            names=NAMES,
            columns=[
                say("round"),
                say("place"),
                say("proposed"),
                say("probability"),
                say("model's choice"),
                say("its probability"),
                say("verdict"),
            ],
            title=say_n("{n} round of draft and check", "{n} rounds of draft and check", len(found.rounds)),
            first=first,
            marked=step - first,
        ),
        alt=say(
            "The tokens that a draft proposed in each of {n} rounds, and which of them the model accepted. The "
            "output is “{text}”.",
            n=len(found.rounds),
            text=scene.run.checkpoint.tgt_tokenizer.decode(found.ids) or NO_TEXT,
        ),
        how_to_read=HOW_TO_READ,
        clicked=into("step", column_below(end)) if not first else None,
        said=Captions(above=_at_step(scene), below=joined(" ", [_saved(scene), OWN])),
    )


OWN: Final = say("Whatever the draft proposes, the output is the model's own.")


def _end_of(one: DraftRound) -> int:
    """The place behind what a round wrote."""
    return one.start + len(one.written)


def _cells(scene: Checked, n: int, one: DraftRound) -> list[PieceCell | None]:
    """A round's cells, one for each place of the output."""
    cells: list[PieceCell | None] = [None] * len(scene.drafted.ids)
    for i, place in enumerate(one.places[: len(cells) - one.start]):
        if i <= one.accepted or place.proposed is not None:
            cells[one.start + i] = _cell(scene, n, one, i, place)
    return cells


def fate_of(one: DraftRound, i: int) -> Fate:
    """What became of the place of a round."""
    if i < one.accepted:
        return "good"
    if i > one.accepted or one.added is None:
        return "unread"
    return "added" if one.places[i].proposed is None else "replaced"


def _cell(scene: Checked, n: int, one: DraftRound, i: int, place: DraftPosition) -> PieceCell:
    pieces, fate = scene.run.trace.vocabulary, fate_of(one, i)
    own, there = pieces[place.chosen], "" if place.proposed is None else pieces[place.proposed]
    said = [say("round {round}, place {place}: {fate}", round=n + 1, place=one.start + i + 1, fate=NAMES[fate])]
    if there:
        said.append(say("proposed: {piece} ({p})", piece=bold(there), p=literal(chance(place.proposed_prob))))
    said.append(say("the model's choice: {piece} ({p})", piece=bold(own), p=literal(chance(place.chosen_prob))))
    if fate == "unread" and scene.how.kind == "jacobi":
        said.append(say("That choice is the next guess."))
    values = [n + 1, one.start + i + 1, there, place.proposed_prob, own, place.chosen_prob, NAMES[fate]]
    return PieceCell(fate, there or own, on_lines(*said), own if fate == "replaced" else "", values)


def _at_step(scene: Checked) -> str:
    """What became of the selected place."""
    step, pieces = scene.step, scene.run.trace.vocabulary
    if step < scene.drafted.n_forced:
        piece = pieces[scene.drafted.ids[step]]
        return say("Step {n}: “{piece}” is forced, so nothing was proposed here.", n=step + 1, piece=piece)
    n, one = next((n, one) for n, one in enumerate(scene.drafted.rounds) if one.start <= step < _end_of(one))
    own, fate, there = pieces[scene.drafted.ids[step]], fate_of(one, step - one.start), one.places[step - one.start]
    if fate == "good":
        return say(
            "Step {n}: “{piece}” was proposed in round {round} and accepted.", n=step + 1, piece=own, round=n + 1
        )
    if there.proposed is None:
        return say(
            "Step {n}: the model itself wrote “{piece}” in round {round}, behind the draft.",
            n=step + 1,
            piece=own,
            round=n + 1,
        )
    return say(
        "Step {n}: “{proposed}” was proposed in round {round}, but the model writes “{piece}”.",
        n=step + 1,
        proposed=pieces[there.proposed],
        round=n + 1,
        piece=own,
    )


@paragraph
def _saved(scene: Checked) -> Iterator[str]:
    """How many passes there were, and how many one piece at a time takes."""
    found = scene.drafted
    proposed = sum(place.proposed is not None for one in found.rounds for place in one.places)
    passes: str = say("The whole model made {n} passes, as many as without a draft, one per token.", n=found.passes)
    if found.passes != found.alone:
        passes = say_n(
            "The whole model made {n} pass instead of {alone}, one per token.",
            "The whole model made {n} passes instead of {alone}, one per token.",
            found.passes,
            alone=found.alone,
        )
    accepted = sum(one.accepted for one in found.rounds)
    yield passes
    yield say("Accepted: {accepted} of {n:,} proposed tokens.", n=proposed, accepted=accepted)
    steps = sum(one.steps for one in found.rounds)
    if steps:
        yield say_n(
            "Two tokens were nearly equal {n} time, and a pass of one token decided.",
            "Two tokens were nearly equal {n} times, and passes of one token decided.",
            steps,
        )
    if drafting := sum(one.draft_passes for one in found.rounds):
        yield say_n(
            "The draft itself took {n:,} cheaper pass.", "The draft itself took {n:,} cheaper passes.", drafting
        )


# ------------------------------------------------------------------------------------------------ fewer bits


@DRAFTS.picture("search_bits", say("The output with weights of fewer bits"), follows="still")
def few_bits(scene: Checked) -> Plot | None:
    """The output with each number of bits, and which pieces changed."""
    run, query = scene.run, greedy_query(scene.run)
    found = run.work.long(
        ("few_bits", query),
        lambda pause: with_few_bits(run.checkpoint, query, pause=pause),
        cost=2 * (len(WIDTHS) + 1) * cost_of(query),
        nbytes=lambda made: 50 * sum(1 + len(one.ids) for one in made),
    )
    own, pieces = found[0], run.trace.vocabulary
    if not own.ids:
        return None
    width = min(MOST_COLUMNS, len(own.ids) + _FURTHER, max(len(one.ids) for one in found))
    same = [one.bits for one in found[1:] if one.ids == own.ids]
    spec = piece_rows_spec(
        [(bits_named(one.bits), _rounded_cells(one, pieces, width)) for one in found],
        names={"good": SAME, "replaced": OTHER},
        columns=[say("bits"), say("place"), say("token"), say("probability"), say("verdict")],
        title=say("What if weights had fewer bits?"),
    )
    alt = say(
        "The output with weights rounded to {most} bits and fewer. It stays the same with {n} of {all} numbers "
        "of bits.",
        most=max(WIDTHS),
        n=len(same),
        all=len(found) - 1,
    )
    return Plot(spec=spec, alt=alt, how_to_read=HOW_TO_READ_BITS, said=_about(found, width))


def bits_named(bits: int | None) -> str:
    """The name of a number of bits."""
    return say("not rounded") if bits is None else say("{n} bits", n=bits)


def _rounded_cells(one: Rounded, pieces: Sequence[str], width: int) -> list[PieceCell | None]:
    cells: list[PieceCell | None] = []
    for place, (i, p, same) in enumerate(zip(one.ids[:width], one.probs, one.same, strict=False)):
        verdict = SAME if same else OTHER
        said = on_lines(
            say("{bits}, place {place}: {fate}", bits=bits_named(one.bits), place=place + 1, fate=verdict),
            say("{piece} ({p})", piece=bold(pieces[i]), p=literal(chance(p))),
        )
        values = ["" if one.bits is None else one.bits, place + 1, pieces[i], p, verdict]
        cells.append(PieceCell("good" if same else "replaced", pieces[i], said, values=values))
    return [*cells, *[None] * (width - len(cells))]


def _about(found: Sequence[Rounded], width: int) -> Captions:
    """The outputs as text, and how near each was to another."""
    rows = [
        [
            bits_named(one.bits),
            shortened(one.text or NO_TEXT, limit=_MOST_TEXT),
            str(one.changed),
            "–" if one.margin is None else say("{margin:.3f} at step {n}", margin=one.margin, n=one.margin_at + 1),
        ]
        for one in found
    ]
    columns = [say("Weights"), say("Output"), say("Changed tokens"), say("Lowest margin (nats)")]
    changed = [one.bits for one in found[1:] if one.ids != found[0].ids]
    if not changed:
        first = say("With {n} bits, the output is still the same.", n=min(WIDTHS))
    else:
        first = say("As the bits get fewer, the output first changes at {n} bits.", n=max(filter(None, changed)))
    margin = say(
        "The margin is the difference between the log-probabilities of the two best tokens. Rounding moves both a "
        "little, so the step with the lowest margin is the likeliest to change."
    )
    said = [first, margin]
    if any(len(one.ids) > width for one in found):
        said.insert(0, say("Only the first {n} places are shown.", n=width))
    return Captions(table=CaptionTable(columns=columns, rows=rows), below=joined(" ", said))
