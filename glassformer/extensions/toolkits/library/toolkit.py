"""What is said of a toolkit for translation: its key table, its options, its ids and its lists of pieces."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.extensions.importers.library.config_settings import Fields, Present, Settings
from glassformer.extensions.importers.library.keys import Table
from glassformer.extensions.weight_files.library.weights import Weights
from transformer.errors import ClauseError, shown
from transformer.files.files import FolderFiles
from transformer.i18n import Sentence, say

NOTHING: tuple[Any, ...] = (None, False, 0, 0.0, "", [], {}, "none")  # what an option that is not used is saved as


class Options(Settings):
    """The options that a toolkit trained a model with, wherever it saves them."""

    def where(self, key: str) -> Sentence:
        """Where a value was found."""
        return say("{key} in the model's training options", key=key)

    def nowhere(self, key: str) -> Sentence:
        """That nothing was found, and what it is then."""
        return say("default value, because the model's training options have no {key}", key=key)

    def refuse(self, *keys: str) -> None:
        """Refuse what each of these keys asks for, unless it says that it is not used."""
        for key in keys:
            found = self.raw(key)
            if found not in NOTHING:
                raise self.refused(key, found, say("no value, or a value that turns this option off"))

    def check_asked(self, prefixes: tuple[str, ...], without_effect: Collection[str] = ()) -> None:
        """Refuse keys of unknown meaning among those that begin so."""
        others = {key for key in self.keys() if not key.startswith(prefixes)}
        self.check_all_asked({*others, *without_effect})


def part(record: Any, name: str) -> dict[str, Any]:
    """A record inside a record; empty where there is none."""
    inside = record.get(name) if isinstance(record, Mapping) else None
    return {str(key): value for key, value in inside.items()} if isinstance(inside, Mapping) else {}


@dataclass(frozen=True)
class Place:
    """Where weights lie, with what lies beside them."""

    weights: Weights  # the open file
    folder: Path  # its folder
    name: str  # of the file; empty where the folder was named
    files: FolderFiles  # the folder's files

    def names(self, *endings: str) -> list[str]:
        """Files beside it that end so, in order."""
        try:
            return sorted(one.name for one in self.folder.iterdir() if one.name.endswith(endings) and one.is_file())
        except OSError:
            return []


@dataclass(frozen=True)
class Pieces:
    """The lists of pieces of both sides."""

    source: tuple[str, ...]  # the pieces in the order of their ids
    target: tuple[str, ...]  # the pieces in the order of their ids
    # Files of SentencePiece, which splits texts into them; none where nothing here does.
    models: tuple[str, str] | None = None

    def id_of(self, piece: str) -> int:
        """The id of a special piece, the same on both sides; refused if a side lacks it, or they differ."""
        found = [names.index(piece) if piece in names else None for names in (self.source, self.target)]
        if found[0] is None or found[0] != found[1]:
            raise ClauseError(
                "{piece} has the id {source} in the source's list of pieces and {target} in the target's; expected "
                "the same id in both",
                piece=shown(piece),
                source=shown(found[0]),
                target=shown(found[1]),
            )
        return found[0]


@dataclass(frozen=True)
class Toolkit:
    """A toolkit."""

    name: str  # what people call it
    # Whether weights are a file of it, from names of tensors and what was saved beside them.
    recognises: Callable[[Weights], bool]
    options: Callable[[Place], Mapping[str, Any]]  # what it was trained with
    # Its lists of pieces; None where there are none, and a sentence about what is missing.
    pieces: Callable[[Options, Place], Pieces | Sentence]
    table: Callable[[Options, Place], Table]  # its key table, which may depend on the options
    # From options, tensors and lists to the fields of our config.
    fields: Callable[[Options, Present, Pieces | None], Fields]
    tied: tuple[str, ...]  # options of which any says that the output is the target's table of embeddings
