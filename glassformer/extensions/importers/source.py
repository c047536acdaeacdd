"""Models of other programs where a page wants a checkpoint: those in folders, and those that extensions bring."""

from typing import NoReturn

from glassformer.extensions.importers import foreign_models, foreign_page
from glassformer.extensions.importers.format import HOLDS
from glassformer.extensions.importers.library.opening import QuestionsError
from glassformer.extensions.importers.what_opens import what_opens
from glassformer.runs.sources import Source, sources
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.opening import UnansweredError
from transformer.i18n import say


class ImportersSource(Source):
    """What lies in the folders of checkpoints or at a path in them, with its answers.

    Another extension that brings models overrides what is about bringing them.
    """

    holds = HOLDS

    def at(self, name: str) -> Entry | None:
        """What lies at a path."""
        return foreign_models.at(name)

    def brought(self, name: str) -> bool:
        """Whether a name is that of a model which did not lie in a folder of checkpoints."""
        return False

    def arrive(self) -> None:
        """Called when the page that opens them begins: choose what has come just now."""

    def offer(self, entry: Entry | None) -> None:
        """Draw, at the top of that page, how to bring one; `entry` is what is opened."""

    def about(self, entry: Entry) -> None:
        """Draw what is to be known of one that was brought."""

    def open(self, entry: Entry) -> Checkpoint:
        """With the answers of the session."""
        return foreign_models.open_foreign(entry, session.answers_of(entry.name))

    def ask(self, entry: Entry, title: str, error: UnansweredError) -> NoReturn:
        """Lead to the page that asks."""
        assert isinstance(error, QuestionsError)
        foreign_page.ask(entry, title, len(error.report.asked))

    def opened(self, content_hash: str) -> Checkpoint | None:
        """With the answers that it was opened with."""
        return foreign_models.opened(content_hash)

    def label(self, entry: Entry) -> str | None:
        """Whose it is."""
        return say("{name} (from another program)", name=entry.name) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """Where it opens."""
        said = say("from another program: see the “Open a checkpoint” page")
        return (":material/quiz:", said) if entry.holds == HOLDS else None

    def explain(self) -> None:
        """Which formats, families and endings."""
        what_opens()


def ways() -> tuple[ImportersSource, ...]:
    """All that bring models to the page that opens them."""
    return tuple(one for one in sources() if isinstance(one, ImportersSource))


def brought(name: str) -> bool:
    """Whether a name is that of a model which did not lie in a folder of checkpoints."""
    return any(one.brought(name) for one in ways())


SOURCE = ImportersSource()
