"""Format of run files (`NAME.glass`): listed among checkpoints, checked as uploads, opened as a saved run."""

from pathlib import Path
from typing import BinaryIO, Final

from glassformer.extensions.saving.recorded_checkpoint import recorded
from transformer.checkpoint.listing import Entry, Format, LoadOptions
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.files.untrusted_folder import FolderFiles
from transformer.runs.run_file import SUFFIX, check_run, read_run

HOLDS: Final = "run"


class RunFormat(Format):
    """Files that `Trace.save` wrote, or folders of one such file."""

    suffix = SUFFIX

    def lists(self, file: Path, inside: Path) -> bool:
        """Whether a file is called as a run is."""
        return file.suffix == SUFFIX and file.name[0] != "." and file.name.isprintable() and not file.is_dir()

    def look(self, place: Path, name: str, root: Path) -> Entry | None:
        """The entry of a file, by what it says of its model and sentence."""
        if place.is_dir():
            files = list(place.glob(f"*{SUFFIX}"))
            place = files[0] if len(files) == 1 else place
        if place.suffix != SUFFIX or place.is_dir():
            return None
        try:
            with FolderFiles(place.parent, inside=root).open(place.name) as (content, size):
                model, sentence = check_run(content, size, label=place.name)
        except GlassformerError as error:
            return Entry(name, place, error.sentence, name, root, holds=HOLDS)
        return Entry(name, place, None, f"{model}: {sentence}", root, examples=(sentence,), holds=HOLDS)

    def takes(self, name: str, file: BinaryIO, size: int) -> bool:
        """Whether an uploaded file is a run; raises what is wrong with one."""
        if not name.endswith(SUFFIX):
            return False
        read_run(file, size, label=name)
        return True

    def reads(self, source: Path, *, inside: Path | None) -> bool:
        """Whether it is a run's file."""
        return source.suffix == SUFFIX and source.is_file()

    def load(self, source: Path, how: LoadOptions) -> Checkpoint:
        """The run in the place of a checkpoint."""
        with FolderFiles(source.parent, inside=how.inside).open(source.name) as (content, size):
            found = read_run(content, size, label=source.name)
        return recorded(found, name=source.name, folder=source)


FORMAT = RunFormat()
