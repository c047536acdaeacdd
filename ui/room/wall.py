"""The projector view of a room: its code, how many are there, what is asked, how many voted, the votes once shown.

It knows no secret: a projector's computer is one that only looks on.
"""

from __future__ import annotations

from html import escape

from ui.components.room.counts import room_counts
from ui.room import polling, teaching
from ui.room.look import RULES
from ui.room.room import Public
from ui.shared.door import here, st
from ui.state import in_room
from words import say


def draw() -> None:
    """Draw the view, or that there is no room."""
    code, public = in_room.current(), in_room.public()
    if public is None:
        st.info(say("There is no room {code}, or there is none any more.", code=code))
        return
    asked = public.question is not None
    st.html(RULES + _head(code, alone=not asked))
    if asked:
        st.html(_question(public))
    room_counts(key="wall_counts", large=True)
    polling.results(public, key="wall_votes")


def _head(code: str, *, alone: bool) -> str:
    join = escape(here(say("Join: {address}", address=teaching.base().partition("://")[2])))
    kind = "gf-wall-alone" if alone else "gf-wall-asked"
    return (
        f'<div class="gf-wall {kind}"><p class="gf-wall-code">{escape(code)}</p>'
        f'<p class="gf-wall-address">{join}</p></div>'
    )


def _question(public: Public) -> str:
    question = public.question
    if question is None:
        return ""
    text = f'<p class="gf-wall-question">{escape(here(question.text))}</p>'
    listed = (
        "" if question.aloud or public.shown else "".join(f"<li>{escape(here(one))}</li>" for one in question.choices)
    )
    return f'<div class="gf-wall">{text}{f"<ol type=A>{listed}</ol>" if listed else ""}</div>'
