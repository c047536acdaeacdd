"""The controls of the page What goes wrong: which mistake."""

from __future__ import annotations

from dataclasses import replace

from ui.shared import choices
from ui.shared.door import st
from ui.state.view import Mistake, Slot, View
from ui.wrong.card import Card
from ui.wrong.deck import CARDS
from words import say


def choose(slot: Slot, first: Card) -> Card:
    """Draw the list of mistakes, and the ones before and after the one that is shown; returns that one.

    Args:
        slot: Where it is drawn.
        first: The card that is shown as long as none was chosen.
    """
    titles: dict[Mistake, str] = {
        card.mistake: say("{n} of {count}: {title}", n=place, count=len(CARDS), title=card.title)
        for place, card in enumerate(CARDS, start=1)
    }
    kept = choices.field(slot, "mistake")
    if kept.value == View.mistake:
        kept = replace(kept, value=first.mistake)
    with choices.bar(slot):
        name = choices.menu(kept, say("Mistake"), titles, bare=True, width=430)
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
