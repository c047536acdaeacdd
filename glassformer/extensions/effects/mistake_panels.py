"""The page What goes wrong: runs both sides of a card, and draws outputs, number, meaning, chart and code."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from glassformer.extensions.effects.effects_look import EffectsLook, Mistake
from glassformer.extensions.effects.mistake_cards import CARDS
from glassformer.extensions.effects.mistake_figures import (
    LEAK,
    Card,
    CardMeasure,
    MistakeResult,
    Outcome,
    RunSides,
    Side,
    happened,
)
from glassformer.extensions.what_if.comparison import comparing
from glassformer.runs import loading
from glassformer.runs.error_boundary import attempt
from glassformer.runs.measurement_jobs import studies
from glassformer.runs.open_run import OpenRun
from glassformer.server.jobs import Job
from glassformer.server.model_runner import BusyError
from glassformer.shared import controls, drawing, menu
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import Slot
from transformer.analysis.teacher_forced_pass import TeacherForcedPass, read_at_once
from transformer.errors import NotFiniteError, QueryError
from transformer.i18n import Sentence, say
from transformer.i18n.sentence import Template, written
from transformer.model.anatomy import anatomy
from transformer.runs.query import Beam, Query
from transformer.runs.running import write
from transformer.runs.trace import Trace

ENDED: Final = "end of sentence"


def look(card: Card, side: Side) -> MistakeResult:
    """Run a card on a model and a sentence.

    Raises:
        QueryError: The right side cannot be run, or what the card needs besides is not there.
        BusyError: The model has too much to do.
    """
    sides = _sides(card, side)
    right = _trace(sides.right)
    try:
        wrong = _trace(sides.wrong)
    except QueryError as error:
        found = MistakeResult(sides, right, None, "refused", problem=error.sentence)
        if isinstance(error, NotFiniteError):
            found = replace(found, outcome="not_finite", site=site_of(error))
    else:
        found = MistakeResult(sides, right, wrong, outcome_of(right, wrong))
    readings = [_read(card, one, right) for one in (sides.read_right, sides.read_wrong)]
    return replace(found, read_right=readings[0], read_wrong=readings[1])


def _sides(card: Card, side: Side) -> RunSides:
    made = card.change(side.checkpoint.config)
    right_side = side.without(made)  # a reader may have made the mistake already
    if card.sides is not None:
        return card.sides(right_side)
    wrong_side = right_side.changed(made)
    return RunSides(right_side, wrong_side, right_side, wrong_side)


def changes(card: Card, side: Side) -> bool:
    """Whether a mistake changes the output, which takes no more steps than that has; errors as of `look`."""
    sides = _sides(card, side)
    right, model, query = _trace(sides.right), sides.wrong.checkpoint, sides.wrong.query
    if not isinstance(query.decoding, Beam):  # a beam of which less may be written is another search
        query = replace(query, max_new=min(query.max_new, max(right.n_steps, 1)))
    key = ("changes", query, right.tgt_ids)
    try:
        return loading.compute(key, lambda: write(model, [query])[0] != right.tgt_ids, nbytes=lambda _: 100)
    except QueryError:
        return True  # there is no output any more


def effects(side: Side, job: Job) -> np.ndarray:
    """Whether each mistake changes the output, bool [card]: the work of a job; True where it cannot be made."""
    found = []
    for card in CARDS:
        job.pause()
        found.append(why_not(card, side) is not None or changes(card, side))
    return np.array(found)


def opening(side: Side) -> Card:
    """The mistake that the reader has made by a change, else the first that changes the output; errors as of `look`.

    If none changes it, the first that can be made.
    """
    if (made := of_changes(side)) is not None:
        return made
    there = [card for card in CARDS if why_not(card, side) is None]
    return next((card for card in there if changes(card, side)), (*there, CARDS[0])[0])


def of_changes(side: Side) -> Card | None:
    """The card of what is changed in the run, even where another model has to show it; else a card of its kind."""
    made = side.query.interventions
    kinds = {type(one) for one in made}
    whole: list[Card] = []
    alike: list[Card] = []
    for card in CARDS if made else ():
        changed = card.change(side.checkpoint.config)
        if set(changed) <= set(made):
            whole.append(card)
        elif not kinds.isdisjoint(map(type, changed)) and why_not(card, side) is None:
            alike.append(card)
    return next(iter((*whole, *alike)), None)


def outcome_of(right: Trace, wrong: Trace) -> Outcome:
    """What became of an output: compared with the right one."""
    if wrong.tgt_ids == right.tgt_ids:
        return "same"
    if right.output_text.strip() and not wrong.output_text.strip() and wrong.stop_reason == ENDED:
        return "nothing"
    if right.stop_reason == ENDED != wrong.stop_reason:
        return "endless"
    return "changed"


def site_of(error: NotFiniteError) -> str:
    """The site that an error names."""
    said = error.sentence
    return str(said.values.get("site", "")) if isinstance(said, Template) else ""


def meaning_of(card: Card, found: MistakeResult) -> Sentence | None:
    """What the outcome means on this card; None where there is no other side."""
    outcomes = card.said.outcomes
    if found.outcome in outcomes:
        return outcomes[found.outcome]
    if found.outcome == "not_finite":
        return say("NaN spreads to everything computed from it, so no probability is left.")
    return None if found.outcome == "refused" else outcomes["changed"]


def why_not(card: Card, side: Side) -> Sentence | None:
    """Why a card cannot be shown on a model, in a sentence; None if it can."""
    if not anatomy(side.checkpoint.config).writes:
        return say("This encoder-only model generates no output, so no output can go wrong.")
    if card.mistake != "leak" and side.checkpoint.name == LEAK:
        return say(
            "This model was trained with a leak. Its output is already wrong, so adding another mistake would show "
            "nothing new."
        )
    if (unfit := card.unfit(side.checkpoint)) is not None:
        return unfit
    for one in card.change(side.checkpoint.config):
        if (unfit := one.unfit(side.checkpoint.config)) is not None:
            return unfit
    return None


def _trace(side: Side) -> Trace:
    return loading.runner().trace(side.checkpoint, side.query)


def _read(card: Card, side: Side, right: Trace) -> TeacherForcedPass | None:
    """What one side makes of the right output; None where something is not finite, or it cannot be read."""
    # Teacher forcing does not depend on the decoding.
    query = Query(checkpoint=side.query.checkpoint, source=side.query.source, interventions=side.query.interventions)
    sites = tuple(card.sites(side.checkpoint.config))
    try:
        return loading.runner().compute(
            ("at_once", query, right.tgt_ids, sites, card.measure.finite),
            lambda: read_at_once(side.checkpoint, query, right.tgt_ids, sites, finite=card.measure.finite),
            nbytes=lambda found: found.nbytes,
        )
    except QueryError:
        return None


CHART = "mistake_chart"  # begins the keys of a card's charts
SEEN_ON = "mistake_seen_on"
NOTHING = "–"
LOSSES = "mistake_losses"  # the box with numbers of one model, where the outputs are of two
SMALL = 1e-3  # a number below this is written as a power of ten
MOST_PIECES = 12  # of an output without text
PATIENCE_SECONDS = 0.7  # that the menu waits before it says which mistakes change nothing
LOOK_SECONDS = 1.0


def draw(run: OpenRun) -> None:
    """Draw the chosen card, of which the run is the right side."""
    side = Side(run.checkpoint, run.trace.query)
    chosen = run.view.of(EffectsLook).mistake != EffectsLook.mistake
    first = None if chosen else attempt(lambda: opening(side))
    card = _choose(run.slot, first or CARDS[0], _changes(side))
    why = why_not(card, side)
    if why is not None:
        _elsewhere(card, run, why)
        drawing.explain(card.said.about)
        _code(card, run)
        return
    found = attempt(lambda: look(card, side))
    if found is not None:
        _told(card, found, run)
        _charts(card, found, run)
    _code(card, run)


def _changes(side: Side) -> Sequence[bool]:
    """Whether each mistake changes the output; until that is known all may, and then the page is drawn again."""
    key, visitor = ("mistakes", side.query), loading.visitor()
    with suppress(BusyError):
        studies().ask(key, partial(effects, side), visitor=visitor)
    seen = studies().look(key, visitor, patience=PATIENCE_SECONDS)
    if seen is not None and seen.is_under_way:
        st.fragment(_follow, run_every=LOOK_SECONDS)(key)
    return [True] * len(CARDS) if seen is None or seen.result is None else list(seen.result)


def _follow(key: Hashable) -> None:
    """Draw nothing until all is known."""
    seen = studies().look(key, loading.visitor())
    if seen is None or not seen.is_under_way:
        st.rerun()


def _choose(slot: Slot, first: Card, changes: Sequence[bool]) -> Card:
    """Draw the menu, and the mistakes before and after the one that is shown; as long as none was chosen, `first`."""
    titles: dict[Mistake, str] = {}
    for place, (card, changed) in enumerate(zip(CARDS, changes, strict=True), start=1):
        named = say("{n} of {count}: {title}", n=place, count=len(CARDS), title=card.said.title)
        nothing = say("{mistake} – changes nothing in this sentence", mistake=named)
        titles[card.mistake] = named if changed else nothing
    kept = controls.field(slot, "mistake")
    if kept.value == EffectsLook.mistake:
        kept = replace(kept, value=first.mistake)
    with controls.bar(slot):
        name = controls.menu(kept, say("Mistake"), titles, bare=True, width=540)
        place = list(titles).index(name)
        for key, label, icon, other in (
            ("mistake_before", say("Previous mistake"), ":material/chevron_left:", place - 1),
            ("mistake_after", say("Next mistake"), ":material/chevron_right:", place + 1),
        ):
            there = 0 <= other < len(CARDS)
            st.button(
                label,
                key=f"{slot}{key}",
                icon=icon,
                disabled=not there,
                on_click=kept.take,
                args=(CARDS[other].mistake if there else name,),
            )
    return CARDS[place]


def _told(card: Card, found: MistakeResult, run: OpenRun) -> None:
    traces, numbers, of = (found.right, found.wrong), card.measure.numbers(found), card.measure
    for column, label, trace, number in zip(st.columns(2, gap="small"), card.labels, traces, numbers, strict=True):
        with column, st.container(border=True):
            st.caption(label)
            st.markdown(say("“{output}”", output=NOTHING) if trace is None else output(trace, found.first))
            if not of.model:
                _number(of, number)
    if not of.model:
        st.caption(of.name)
    else:  # both numbers are of one of the two models: they stand apart from what each writes
        with st.container(border=True, key=run.key(LOSSES)):
            st.caption(say("Both losses were computed with “{model}”", model=of.model), help=of.name)
            for column, label, number in zip(st.columns(2, gap="small"), of.labels, numbers, strict=True):
                with column:
                    st.caption(label)
                    _number(of, number)
    st.markdown(drawing.plain(happened(found)))
    drawing.explain(card.said.about, drawing.plain(meaning_of(card, found) or ""))
    there = comparing(_link_of(run, found.sides.right), with_=_link_of(run, found.sides.wrong))
    menu.link("compare", say("Compare both runs, step by step"), there, icon=":material/compare_arrows:")


def _number(measure: CardMeasure, number: float | None) -> None:
    if number is None:
        value = NOTHING
    elif measure.model and number < SMALL:
        value = written(f"{number:.2g}") if number else say("exactly 0")
    else:
        value = format(number, measure.form)
    st.metric(measure.name, value, label_visibility="collapsed", width="content")


def output(trace: Trace, first: int | None) -> str:
    """An output in Markdown, with the first different piece marked: its place from 0; None if there is none."""
    whole = trace.output_text
    if not whole.strip() and trace.n_steps > 1:  # pieces without text
        shown = [*trace.tgt_tokens[:MOST_PIECES], *(["…"] if trace.n_steps > MOST_PIECES else [])]
        return say("“{output}”", output=drawing.plain(" ".join(shown)))
    if first is None:
        return say("“{output}”", output=drawing.plain(whole))
    before = trace.texts[first - 1] if first else ""
    here = trace.texts[first] if first < trace.n_steps else before
    if not here.startswith(before) or not whole.startswith(here):  # spelling that a later piece changed
        before, here = "", whole
    piece = here[len(before) :] or (trace.tgt_tokens[first] if first < trace.n_steps else "")
    marked = f":orange-background[{drawing.plain(piece)}]" if piece.strip() else ""
    space = " " if piece.startswith(" ") else ""
    rest = whole[len(here) :]
    text = f"{drawing.plain(before)}{space}{marked}{' ' if rest.startswith(' ') else ''}{drawing.plain(rest)}"
    return say("“{output}”", output=text)


def _charts(card: Card, found: MistakeResult, run: OpenRun) -> None:
    drawn = list(card.charts(found))

    def one(place: int) -> None:
        chart = drawn[place]
        key = run.key(f"{CHART}_{card.mistake}" + (f"_{place}" if place else ""))  # each has axes of its own
        drawing.chart(chart.spec, key=key, alt=chart.alt, how_to_read=chart.how_to_read)

    if len(drawn) > 1:
        drawing.beside(*(partial(one, place) for place in range(len(drawn))), gap="medium")
    elif drawn:
        one(0)
    else:
        st.info(say("There is nothing to draw: the result has no finite numbers."), icon=":material/info:")


def _code(card: Card, run: OpenRun) -> None:
    def one(label: str, code: str) -> None:
        st.caption(label)
        st.code(code, language="python")

    with st.expander(say("In code"), type="compact"):
        drawing.beside(
            partial(one, say("A beginner's version"), card.said.wrong),
            partial(one, say("The correct version"), card.said.right),
            gap="medium",
        )
        st.caption(card.said.source)


def _link_of(run: OpenRun, side: Side) -> Link:
    """What leads to one side: the link of the run, with the side's changes, and its model where that is another."""
    link = replace(run.link, interventions=side.query.interventions)
    if side.checkpoint == run.checkpoint:
        return link
    return replace(link, model=side.checkpoint.name, revision="", answers=(), forced=(), hypothesis=0)


def _elsewhere(card: Card, run: OpenRun, why: str) -> None:
    """Say why the mistake cannot be made here, and offer the checkpoint in which it can."""
    st.info(drawing.with_code(why), icon=":material/info:")
    entry = loading.usable().get(card.seen_on)
    if entry is None or not entry.examples:
        return
    taken = st.button(
        drawing.plain(say("See this mistake with {title}", title=entry.title)),
        key=run.key(SEEN_ON),
        icon=":material/swap_horiz:",
        on_click=session.read_with,
        args=(card.seen_on, entry.examples[0]),
    )
    if taken:
        st.rerun()  # the whole page: another checkpoint
