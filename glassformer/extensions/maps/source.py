"""Files of attention maps where a page wants a checkpoint."""

from pathlib import Path

from glassformer.charts.theme import shortened
from glassformer.extensions.maps import card as openable
from glassformer.extensions.maps.format import HOLDS
from glassformer.extensions.maps.library.npzfile import read_maps
from glassformer.extensions.maps.library.own_maps import GivenMaps
from glassformer.runs.sources import Source
from glassformer.shared.door import st
from transformer.checkpoint.listing import Entry, Signature, signature
from transformer.files.files import FolderFiles
from transformer.i18n import say
from transformer.runs.labelled_maps import LabelledMaps

LONGEST_TITLE = 120


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(file: str, root: str, sign: Signature) -> GivenMaps:
    path = Path(file)
    with FolderFiles(Path(root), inside=Path(root)).open(path.name) as (content, size):
        return read_maps(content, size, label=path.name)


class MapsSource(Source):
    """Files of maps in the folders of checkpoints."""

    holds = HOLDS
    has_models = False

    def maps(self, entry: Entry) -> GivenMaps:
        """What its file holds."""
        return _read(str(entry.folder), str(entry.root), signature(entry.folder))

    def card(self, maps: LabelledMaps, name: str) -> None:
        """Their sizes, and what they are of."""
        if isinstance(maps, GivenMaps):
            openable.card(maps, name)

    def explain(self) -> None:
        """How a file is made."""
        openable.how_to_make_one()

    def label(self, entry: Entry) -> str | None:
        """That it is no model."""
        return say("{name} (maps)", name=entry.name) if entry.holds == HOLDS else None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """What they are of."""
        if entry.holds != HOLDS or entry.error is not None:
            return None
        title = shortened(entry.title, limit=LONGEST_TITLE)
        return ":material/grid_on:", say("attention maps: {title}", title=title)


SOURCE = MapsSource()
