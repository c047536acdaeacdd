"""Uploads among what the page *Open a checkpoint* opens."""

from glassformer.extensions.importers.source import ImportersSource
from glassformer.extensions.uploads import drop_zone as handing_in
from glassformer.extensions.uploads import session_uploads
from glassformer.server import replicas
from glassformer.state import session
from transformer.checkpoint.listing import Entry
from transformer.i18n import Sentence, say


class UploadsSource(ImportersSource):
    """What was handed in; it opens as what lies in a folder."""

    def own(self) -> dict[str, Entry]:
        """What this session handed in."""
        return session_uploads.own()

    def at(self, name: str) -> Entry | None:
        """An upload."""
        return session_uploads.at(name)

    def opens(self, entry: Entry) -> bool:
        """Uploads, of which some are checkpoints of this program."""
        return session_uploads.is_name(entry.name)

    def brought(self, name: str) -> bool:
        """All of them."""
        return session_uploads.is_name(name)

    def arrive(self) -> None:
        """The one that was read last."""
        session.arrive(handing_in.ARRIVED)

    def offer(self, entry: Entry | None) -> None:
        """The drop zone."""
        handing_in.offer(entry)

    def about(self, entry: Entry) -> None:
        """Who sees an upload, and how long."""
        handing_in.about(entry)

    def label(self, entry: Entry) -> str | None:
        """Whose it is."""
        return say("{name} (uploaded)", name=entry.title) if session_uploads.is_name(entry.name) else None

    def explain(self) -> None:
        """Nothing: they lie in no folder of checkpoints."""

    def gone(self, name: str, instead: str) -> Sentence | None:
        """Uploads are kept for a while."""
        if not session_uploads.is_name(name):
            return None
        said = say(
            "The uploaded model is no longer on this server, or the server does not accept uploads; {shown} is shown "
            "instead.",
            shown=instead,
        )
        return replicas.gone(said)


SOURCE = UploadsSource()
