"""Opening of any model (`load`): a checkpoint folder, a snapshot of its training, or a format of an extension.

`FORMAT` is the kernel's own format: what is listed of a checkpoint folder, and how it is opened.

transformer.load("runs/my-model")                               a folder
transformer.load("zh-en")                                       a checkpoint that comes along
transformer.load("runs/reverse@1200")                           a snapshot of a training, at its step 1,200
transformer.load("runs/model.pt", answers={"n_heads": 4, ...})  another format, whose open questions are answered
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from transformer.checkpoint import load as native
from transformer.checkpoint import snapshots
from transformer.checkpoint.consistency import check_tensors, expected_shapes, most_bytes
from transformer.checkpoint.free_memory import CPU, Device, Progress, silent
from transformer.checkpoint.listing import Entry, Format, LoadOptions
from transformer.checkpoint.load import CARD, CONFIG, MAX_CONFIG, WEIGHTS, Checkpoint, card_of, read_config
from transformer.checkpoint.named import check_name, named
from transformer.checkpoint.snapshot_names import SnapshotInfo
from transformer.checkpoint.tokenizer_files import TOKENIZER_NAMES, file_names, tokenizer_files
from transformer.errors import CheckpointError
from transformer.extensions import provided
from transformer.files import tensorfile
from transformer.files.untrusted_folder import FolderFiles, as_typed
from transformer.i18n import Sentence

MOST_EXAMPLES = 4  # of each folder, as a list may have thousands
LONGEST_EXAMPLE = 200


class FolderFormat(Format):
    """A checkpoint folder."""

    def names(self) -> Iterable[str]:
        """Its files, and those of other programs' tokenizers."""
        own = (name for names in TOKENIZER_NAMES.values() for name in names)
        return ("", CONFIG, WEIGHTS, CARD, *own, *sorted(file_names()))

    def look(self, place: Path, name: str, root: Path) -> Entry:
        """The entry, with its fault if it has one."""
        try:
            files = FolderFiles(place, inside=root)
            card, _ = card_of(files)
        except CheckpointError as error:
            return Entry(name, place, error.sentence, name, root)
        try:
            _check(files)
        except CheckpointError as error:
            return Entry(name, place, error.sentence, card.title or name, root)
        examples = tuple(example for example in card.tried() if len(example) <= LONGEST_EXAMPLE)[:MOST_EXAMPLES]
        language = card.source_language if card.source_code else ""
        gloss = card.glosses.get(examples[0], "") if examples else ""
        return Entry(name, place, None, card.title or name, root, language, examples, gloss, card.source_code)

    def load(self, source: Path, how: LoadOptions) -> Checkpoint:
        """Load it; nothing has to be answered or given."""
        return native.load(source, inside=how.inside, progress=how.progress, device=how.device)

    def moments(self, folder: Path, *, inside: Path | None) -> tuple[tuple[SnapshotInfo, ...], tuple[Sentence, ...]]:
        """What is next to it."""
        return snapshots.moments(folder, inside=inside)


def _check(files: FolderFiles) -> None:
    """What can be found wrong without reading parameters or trying tokenizers out."""
    config, _ = read_config(files.read(CONFIG, limit=MAX_CONFIG), label=files.label(CONFIG))
    for name, limit in tokenizer_files(files, config).items():
        files.check_size(name, limit=limit)
    files.check_size(WEIGHTS, limit=most_bytes(config))
    with files.open(WEIGHTS) as (file, size):
        most = len(expected_shapes(config))
        header = tensorfile.read_header(file, size, label=files.label(WEIGHTS), most=most)
    check_tensors(config, header, label=files.label(WEIGHTS))


FORMAT = FolderFormat()


NO_ANSWERS: Final[Mapping[str, Any]] = MappingProxyType({})


def load(
    source: Path | str,
    *,
    answers: Mapping[str, Any] = NO_ANSWERS,
    given: Any = None,
    inside: Path | None = None,
    progress: Progress = silent,
    device: Device = CPU,
) -> Checkpoint:
    """Load a checkpoint: a folder of this program, or of another format, or the name of one that comes along.

    Args:
        answers: Answers to the open questions of another format.
        given: Files that it lacks, such as `transformer.Given`.
        inside: The real path of a folder that it may not leave by a link; None if any will do.
        progress: Called with the bytes loaded so far and their total.
        device: Where the model computes; see `transformer.checkpoint.load.load`.

    Raises:
        UnansweredError: Questions are open; `transformer.QuestionsError` lists them with their choices.
        CheckpointError: It cannot be used; the error says which file and why.
    """
    place = Path(source) if inside else named(source)
    check_name(place)
    other: Format | None = next((one for one in provided("formats") if one.reads(place, inside=inside)), None)
    if other is not None:
        return other.load(place, LoadOptions(answers, given, inside, progress, device))
    if answers or given:
        raise CheckpointError(
            "{folder}: is already a checkpoint of this program, so there are no questions; remove the answers "
            "and the tokenizers.",
            folder=as_typed(place, inside),
        )
    if place.name in (CONFIG, WEIGHTS) and place.is_file():  # means the folder around it
        place = place.parent
    return native.load(place, inside=inside, progress=progress, device=device)
