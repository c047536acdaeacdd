"""The outputs of many draws: a chart, what they come to, a table, and the draw that is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import charts
from charts.draws import HOW_TO_READ, Drawn
from transformer.analysis.draws import Draw, Outcome, outcomes
from transformer.checkpoint.load import Checkpoint
from transformer.runs.query import Sampling
from ui.runs.open_run import address
from ui.shared import drawing, menu
from ui.shared.clicks import on_click
from ui.shared.door import frame, here, st
from ui.state import session
from ui.state.click import place_of
from ui.state.link import Link
from ui.state.view import Slot
from words import joined, say, say_n

CHART, TABLE, OPEN, OPENED = "search_draws", "search_draws_table", "search_draws_open", "search_draws_opened"
MOST_ROWS: Final = 12  # of the chart; the table has all
_MOST_SEEDS: Final = 12
_HEIGHT: Final = 380  # pixels
_NO_TEXT = say("(no text)")


def draw(found: Sequence[Draw], slot: Slot, checkpoint: Checkpoint, link: Link) -> None:
    """Draw them.

    Args:
        found: All draws that are there.
        slot: Where.
        checkpoint: What they were drawn with.
        link: What opens one of them elsewhere, but for its seed.
    """
    every = outcomes(found)
    seed = session.view(slot).opened_seed
    chosen = next((place for place, one in enumerate(every) if seed in one.seeds), None)
    _chart(every, len(found), chosen, slot)
    st.markdown(drawing.plain(joined(" ", said_of(every, len(found)))))
    if chosen is not None and seed is not None:
        _opened(every[chosen], seed, slot, checkpoint, link)
    _table(every, chosen, slot)


def said_of(every: Sequence[Outcome], n: int) -> list[str]:
    """What the draws come to, in sentences."""
    together = sum(one.drawn for one in every)
    gave = say_n("{n} draw", "{n} draws", n)
    said: list[str] = [
        say_n("{draws} gave one output.", "{draws} gave {n} different outputs.", len(every), draws=gave)
    ]
    said.append(_together(min(together, 1.0)))
    said += _expected(every, n)
    cut = sum(len(one.seeds) for one in every if not one.ended)
    if cut:
        said.append(say_n("{n} draw was cut at the limit.", "{n} draws were cut at the limit.", cut))
    return said


def _together(p: float) -> str:
    if p < 0.001:
        return say(
            "Together they have a probability of less than 0.1%; the rest is that of outputs that did not come."
        )
    if p < 0.9995:
        return say("Together they have a probability of {p:.1%}; the rest is that of outputs that did not come.", p=p)
    return say("Hardly any other is possible: together they have a probability of {p:.1%}.", p=p)


def _expected(every: Sequence[Outcome], n: int) -> list[str]:
    """How the shares compare with the probabilities; of what is rare only that is listed which chance favoured."""
    common = [one for one in every if one.drawn * n >= 1]
    said: list[str] = []
    if common:
        said.append(
            say(
                "Of the {k} to be expected at least once, the 95 % interval holds the probability of {fit}.",
                k=len(common),
                fit=sum(one.fits for one in common),
            )
        )
    if len(common) < len(every):
        said.append(
            say(
                "What is rarer than one in {n} draws is listed as it came, so it looks more frequent than it is.",
                n=n,
            )
        )
    return said


def _chart(every: Sequence[Outcome], n: int, chosen: int | None, slot: Slot) -> None:
    rows = [_drawn(one) for one in every[:MOST_ROWS]]
    title = say("The most frequent of {n} draws", n=n) if len(every) > MOST_ROWS else say("The {n} draws", n=n)
    drawing.chart(
        charts.draws_spec(rows, title=title, chosen=chosen if chosen is not None and chosen < len(rows) else None),
        key=f"{slot}{CHART}",
        alt=say("How often each output was drawn, beside its probability; the most frequent is “{text}”.",
                text=rows[0].text),
        how_to_read=HOW_TO_READ,
        on_click=on_click(f"{slot}{CHART}", place_of, partial(_open, slot)),
    )  # fmt: skip


def _drawn(one: Outcome) -> Drawn:
    text, count = one.text or _NO_TEXT, len(one.seeds)
    return Drawn(text, count, one.frequency, one.drawn, one.own, one.low, one.high, one.seeds[0])


def _open(slot: Slot, seed: int) -> None:
    session.replace(slot, opened_seed=seed)


def _opened(one: Outcome, seed: int, slot: Slot, checkpoint: Checkpoint, link: Link) -> None:
    """Draw the output that was chosen, with the ways to its run."""
    others = [str(other) for other in one.seeds if other != seed]
    with st.container(border=True, key=f"{slot}{OPENED}"):
        said = [say("**Seed {seed}:** {text}", seed=seed, text=drawing.plain(one.text) or _NO_TEXT)]
        if others:
            listed = joined(", ", others[:_MOST_SEEDS])
            more = len(others) - _MOST_SEEDS
            said.append(
                say("The same is drawn by seeds {listed}.", listed=listed)
                if more <= 0
                else say("The same is drawn by seeds {listed} and {more} more.", listed=listed, more=more)
            )
        st.markdown(joined("  \n", said))
        how = link.decoding
        drawn = replace(how, seed=seed) if isinstance(how, Sampling) else how
        there = address(checkpoint, replace(link, decoding=drawn))
        with st.container(horizontal=True, gap="medium"):
            menu.link("step", say("Step through this draw"), there, icon=":material/play_arrow:")
            menu.link("attention", say("Attention"), there, icon=":material/grid_on:")  # fmt: skip


def _table(every: Sequence[Outcome], chosen: int | None, slot: Slot) -> None:
    seeds = [one.seeds[0] for one in every]
    key = f"{slot}{OPEN}"

    def go() -> None:
        click = st.session_state.get(key)
        if click is not None and int(click["row"]) < len(seeds):
            _open(slot, seeds[int(click["row"])])

    columns = _columns(key, go)
    rows = [_row(place, one, place == chosen) for place, one in enumerate(every)]
    st.container(key=f"{slot}{TABLE}").dataframe(
        frame(rows, columns=list(columns)),
        hide_index=True,
        height=_HEIGHT if len(rows) > 9 else "content",
        column_config={here(name): config for name, config in columns.items()},
        alt=say("The outputs that were drawn, with counts, shares and probabilities."),
    )
    st.caption(say("Press a number to open its draw."))


def _columns(key: str, go: Any) -> dict[str, Any]:
    kinds = st.column_config
    number = partial(kinds.NumberColumn, width=84)
    return {
        say("Output number"): kinds.ButtonColumn("№", type="tertiary", width=56, pinned=True, on_click=go, key=key),
        say("Output"): kinds.TextColumn(width=260),
        say("Draws"): number(format="%d"),
        say("Share"): number(format="%.3f", help=here(say("Of all draws."))),
        say("Drawn from"): number(
            format="%.3g", help=here(say("Its probability in the distribution that was drawn from."))
        ),
        say("Model's own"): number(format="%.3g", help=here(say("Its probability before temperature and cuts."))),
        say("From"): number(format="%.3f", help=here(say("The lower end of the 95 % interval of its probability."))),
        say("To"): number(format="%.3f", help=here(say("The upper end of the 95 % interval of its probability."))),
        say("Seeds"): kinds.TextColumn(width=120),
    }


def _row(place: int, one: Outcome, is_chosen: bool) -> list[object]:
    seeds = joined(", ", [*map(str, one.seeds[:_MOST_SEEDS]), *(["…"] * (len(one.seeds) > _MOST_SEEDS))])
    number = say("● {n}", n=place + 1) if is_chosen else str(place + 1)
    text = one.text or _NO_TEXT
    return [number, text, len(one.seeds), one.frequency, one.drawn, one.own, one.low, one.high, seeds]
