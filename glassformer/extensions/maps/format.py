"""Files of attention maps among checkpoints."""

from pathlib import Path

from glassformer.extensions.maps.library.npzfile import SUFFIX, check_maps
from transformer.checkpoint.listing import Entry, Format
from transformer.errors import GlassformerError
from transformer.files.untrusted_folder import FolderFiles

HOLDS = "maps"


class MapsFormat(Format):
    """Files `NAME.npz` next to the folders."""

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a file is called as one of maps is."""
        return file.suffix == SUFFIX and file.name[0] != "." and file.name.isprintable() and not file.is_dir()

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry of a file, by its header."""
        if place.suffix != SUFFIX or place.is_dir():
            return None
        try:
            files = FolderFiles(root, inside=root)
            with files.open(place.name) as (content, size):
                title = check_maps(content, size, label=files.label(place.name))
        except GlassformerError as error:
            return Entry(name, place, error.sentence, name, root, holds=HOLDS)
        return Entry(name, place, None, title or name, root, holds=HOLDS)


FORMAT = MapsFormat()
