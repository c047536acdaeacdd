"""Saved runs in the app: the `Source` that opens them without their model."""

from functools import partial
from pathlib import Path
from typing import Final

from glassformer.charts.theme import shortened
from glassformer.extensions.saving.recorded_checkpoint import HOLDS, RecordedCheckpoint, opened
from glassformer.runs import loading
from glassformer.runs.sources import Source
from glassformer.shared.i18n import st
from glassformer.state import session
from glassformer.state.link import way_of
from glassformer.state.view import MAIN
from transformer.checkpoint.free_memory import Progress
from transformer.checkpoint.listing import Entry, signature
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import say
from transformer.runs.query import Query

LONGEST_TITLE: Final = 120


def _open(name: str, file: Path, root: Path, progress: Progress) -> RecordedCheckpoint:
    found = opened(file, name=name, inside=root)
    _opened()[found.content_hash] = name, file, root
    return found


@st.cache_resource(show_spinner=False)
def _opened() -> dict[str, tuple[str, Path, Path]]:
    """Where the run of each content hash is."""
    return {}


def _in_memory(name: str, file: Path, root: Path) -> Checkpoint:
    which = (HOLDS, str(file), name, signature(file, ("",)))
    return loading.in_memory(which, file, partial(_open, name, file, root))


class RunSource(Source):
    """Files of runs in the folders of checkpoints, or uploaded."""

    holds = HOLDS

    def open(self, entry: Entry) -> Checkpoint:
        """The run, in the place of a model."""
        return _in_memory(entry.name, entry.folder, entry.root)

    def opened(self, content_hash: str) -> Checkpoint | None:
        """A run that was opened, again."""
        where = _opened().get(content_hash)
        if where is None:
            return None
        try:
            return _in_memory(*where)
        except GlassformerError:  # the file is gone
            return None

    def label(self, entry: Entry) -> str | None:
        """The name, marked as a run and not a model."""
        return say("{name} (saved run)", name=shortened(entry.title, limit=40)) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """What it is a run of."""
        if entry.holds != HOLDS or entry.error is not None:
            return None
        title = shortened(entry.title, limit=LONGEST_TITLE)
        return ":material/save:", say("a saved run: {title}", title=title)


def show_only(checkpoint: Checkpoint, only: Query) -> None:
    """Have the session ask for the only run that there is; a note if it asks for another sentence."""
    if session.asked().source not in (None, "", only.source):
        session.add_note(
            say(
                "{name} is a saved run: it has one sentence, as it was decoded then. Open its model to run others.",
                name=checkpoint.card.title or checkpoint.name,
            )
        )
    how, settings = way_of(only.decoding)
    words = {one.key: getattr(only.decoding, one.field) for one in settings}
    most = min(only.max_new, checkpoint.config.max_len)
    st.session_state.update({session.SOURCE: only.source, session.HOW: how, session.MAX_NEW: most, **words})
    session.stand(MAIN, forced=only.forced, hypothesis=only.hypothesis, interventions=only.interventions)


SOURCE = RunSource()
