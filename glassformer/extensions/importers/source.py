"""Models of other programs, from folders and uploads, where a page wants a checkpoint."""

from typing import NoReturn

from glassformer.extensions.importers import foreign_models, foreign_page, handed_in
from glassformer.extensions.importers.format import HOLDS
from glassformer.extensions.importers.library.opening import QuestionsError
from glassformer.extensions.importers.what_opens import what_opens
from glassformer.runs.sources import Source
from glassformer.server import replicas
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import Checkpoint
from transformer.checkpoint.opening import UnansweredError
from transformer.i18n import Sentence, say


class ImportersSource(Source):
    """What lies in the folders of checkpoints or at a path in them, and what was handed in, with its answers."""

    holds = HOLDS

    def own(self) -> dict[str, Entry]:
        """What this session handed in."""
        return handed_in.own()

    def at(self, name: str) -> Entry | None:
        """An upload, or what lies at a path."""
        return handed_in.at(name) or foreign_models.at(name)

    def opens(self, entry: Entry) -> bool:
        """Uploads, too, of which some are checkpoints of this program."""
        return entry.holds == HOLDS or handed_in.is_name(entry.name)

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
        if handed_in.is_name(entry.name):
            return say("{name} (uploaded)", name=entry.title)
        return say("{name} (from another program)", name=entry.name) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """Where it opens."""
        said = say("from another program: see the “Open a checkpoint” page")
        return (":material/quiz:", said) if entry.holds == HOLDS else None

    def explain(self) -> None:
        """Which formats, families and endings."""
        what_opens()

    def gone(self, name: str, instead: str) -> Sentence | None:
        """Uploads are kept for a while."""
        if not handed_in.is_name(name):
            return None
        said = say(
            "The uploaded model is no longer on this server, or the server does not accept uploads; {shown} is shown "
            "instead.",
            shown=instead,
        )
        return replicas.gone(said)


SOURCE = ImportersSource()
