"""The choice of a second checkpoint, or of another epoch of the first: whatever the folders of checkpoints hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.importers.opening import QuestionsError
from ui.compare import differing
from ui.runs import foreign_models, handed_in, loading
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing, menu
from ui.shared.choices import Kept
from ui.shared.door import st
from ui.state import session
from ui.state.view import SECOND
from words import say

CHECKPOINT: Final = f"{SECOND}compared_checkpoint"


def chosen(main: OpenRun) -> Checkpoint | None:
    """Draw the choice of a second checkpoint; returns it, None where there is none yet."""
    there = loading.usable() | foreign_models.listed() | handed_in.own()
    asked, own = differing.said().get("model", ""), main.link.model
    if asked and asked not in there and (typed := handed_in.at(asked) or foreign_models.at(asked)) is not None:
        there[asked] = typed
    others = {name: entry for name, entry in there.items() if name != own}
    labels = {name: say("{title} ({name})", title=entry.title or name, name=name) for name, entry in others.items()}
    kept = Kept(CHECKPOINT, asked if asked in others else "", _take_checkpoint)
    name = choices.menu(
        kept, say("The other checkpoint"), {"": say("Choose another checkpoint"), **labels}, bare=True
    )
    if asked and asked not in others:
        drawing.notes([say("There is no other checkpoint “{name}” to compare with.", name=asked[:60])])
    if name:
        return _open(others[name])
    st.info(say("Choose a checkpoint above: the same sentence then runs on both."), icon=":material/compare_arrows:")
    return None


def _take_checkpoint(name: str) -> None:
    differing.differ(model=name or None, rev=None, answers=None)


def _open(entry: Entry) -> Checkpoint | None:
    """Open the second checkpoint; if that fails, or it asks something first, a sentence says so."""
    try:
        if entry.holds == "foreign" or handed_in.is_name(entry.name):
            return foreign_models.open_foreign(entry, session.answers_of(entry.name))
        return loading.open_checkpoint(entry)
    except QuestionsError:
        said = say("“{name}” cannot be opened yet: its files do not say all that the model needs.", name=entry.title)
        st.info(drawing.plain(said), icon=":material/quiz:")
        there = replace(session.asked(), model=entry.name, revision="", beside="")
        menu.link("open", say("Answer the questions"), there, icon=":material/quiz:")
    except (GlassformerError, OSError) as error:
        why = error.sentence if isinstance(error, GlassformerError) else say("Its folder cannot be read.")
        st.error(drawing.plain(say("{name} cannot be opened. {why}", name=entry.name, why=why)))
    return None
