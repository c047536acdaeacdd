"""Change something inside the model: the button above every run, and one click from a view of a head.

What can be changed, and how, is said by `transformer.runs.interventions.KINDS`; nothing here knows a kind by name but
the head that writes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final, get_args

from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError, QueryError
from transformer.runs.interventions import KINDS, Intervention, ZeroHead
from transformer.runs.interventions.base import Group
from transformer.runs.interventions.spelling import spelled
from transformer.runs.trace import Kind, Trace
from ui.frame.whatif_fields import Around, control
from ui.runs import loading
from ui.runs.open_run import OpenRun
from ui.runs.work import BusyError
from ui.shared import drawing, menu
from ui.shared.door import st
from ui.shared.pressing import pressed
from ui.state import session
from ui.state.view import MAIN, Slot
from words import Sentence, joined, say

OPEN: Final = "what_if"
FIELD: Final = "what_if_"  # begins the keys of what stands in the dialog
GROUPS: Final[dict[Group, Sentence]] = {
    "heads": say("Heads"),
    "rows": say("Rows of a map"),
    "pieces": say("Pieces"),
    "attention": say("Scores and weights"),
    "masks": say("Masks"),
    "positions": say("Positions"),
    "layers": say("Layers"),
}
assert set(GROUPS) == set(get_args(Group))
FIRST: Final[Group] = "heads"


def button(checkpoint: Checkpoint) -> None:
    """Draw the button that opens the dialog.

    Args:
        checkpoint: The one that is open.
    """
    said, help = say("What if …"), say("Change something inside the model.")
    with pressed(st.button, said, key=OPEN, about=menu.current(), icon=":material/science:", help=help) as asked:
        if asked:
            open_dialog(checkpoint)


def for_head(run: OpenRun, kind: Kind, layer: int | None, head: int | None) -> None:
    """Under the choice of one head: take it away with one click, or change it otherwise.

    Args:
        run: The run.
        kind, layer, head: The head, from 0; where one is None, several are looked at and nothing is drawn.
    """
    if layer is None or head is None or run.earlier:
        return
    changes, own = run.trace.query.interventions, ZeroHead(kind, layer, head)
    gone = own in changes
    others = tuple(one for one in changes if one != own)
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=run.key("of_head")):
        st.button(
            say("Put this head back") if gone else say("Take this head away"),
            key=run.key("take_head"),
            icon=":material/undo:" if gone else ":material/content_cut:",
            help=say("What it writes is 0 then, and the model writes its output anew."),
            on_click=partial(session.change, run.slot, others if gone else (*others, own)),
        )
        said, about = say("Change it otherwise …"), f"{kind} {layer} {head}"
        with pressed(st.button, said, key=run.key("more_of_head"), about=about, type="tertiary") as asked:
            if asked:
                open_dialog(run.checkpoint, slot=run.slot)


def open_dialog(checkpoint: Checkpoint, *, slot: Slot = MAIN) -> None:
    """Open the dialog; what it proposes first is what the slot looks at."""
    for key in [key for key in st.session_state if str(key).startswith(FIELD)]:
        del st.session_state[key]
    st.dialog(say("What if …"), width="medium")(partial(draw, checkpoint, slot))()


def draw(checkpoint: Checkpoint, slot: Slot) -> None:
    """Draw what stands in the dialog: which kind of change, its fields, and what it says in words."""
    config = checkpoint.config
    group: Group = (
        st.segmented_control(
            say("What to change"),
            list(GROUPS),
            format_func=GROUPS.__getitem__,
            default=FIRST,
            required=True,
            key=f"{FIELD}group",
            label_visibility="collapsed",
        )
        or FIRST
    )
    here = [kind for kind in KINDS.values() if kind.group == group]
    fits = {kind.word: kind for kind in here if kind.unfit(config) is None}
    if fits:
        word = st.selectbox(
            say("Change"),
            list(fits),
            format_func=lambda word: fits[word].title if word in fits else str(word),
            key=f"{FIELD}{group}",
        )
        _one(checkpoint, slot, fits[word])
    for kind in here:
        if (why := kind.unfit(config)) is not None:
            st.caption(drawing.plain(say("Not in this model: {title}. {why}", title=kind.title, why=why)))


def _one(checkpoint: Checkpoint, slot: Slot, kind: type[Intervention]) -> None:
    st.caption(drawing.plain(kind.about))
    around = Around(checkpoint, session.view(slot), _trace(checkpoint, slot))
    values: dict[str, object] = {}
    try:
        for name, (_, spelling) in spelled(kind).items():
            values[name] = control(spelling, f"{FIELD}{kind.word}_{name}", around)
            around = replace(around, chosen={**around.chosen, spelling.what: values[name]})
        made = kind(**values)
        made.check(checkpoint.config)
    except QueryError as error:
        st.warning(drawing.plain(error.sentence))
        return
    st.markdown(joined(" ", [say("Then:"), say("**{change}**", change=drawing.plain(made.told()))]))
    kept = tuple(one for one in session.standing(slot).interventions if one.target != made.target)
    if st.button(
        say("Change it"), type="primary", key=f"{FIELD}make", on_click=partial(session.change, slot, (*kept, made))
    ):
        st.rerun()  # the whole page: the dialog closes


def _trace(checkpoint: Checkpoint, slot: Slot) -> Trace | None:
    """The unchanged run of the sentence, whose pieces are chosen from; None if there is none."""
    link = replace(session.asked(slot), interventions=())
    try:
        return loading.runner().trace(checkpoint, link.query(checkpoint.content_hash))
    except (GlassformerError, BusyError):
        return None
