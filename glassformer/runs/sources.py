"""Interface `Source` for extensions that bring models beside the checkpoint folders; look-ups in all of them.

An extension's `sources` names a `Source`. The folders' own checkpoints come first and are
`glassformer.runs.loading`'s; it is where all that can be chosen is put together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from glassformer.state.link import Link
from glassformer.state.view import Slot
from transformer.checkpoint.listing import Entry
from transformer.extensions import provided
from transformer.i18n import Sentence
from transformer.runs.trace import LabelledMaps

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint
    from transformer.errors import UnansweredError

QUESTIONS: Final = "questions"  # the anchor of what a source asks, on the page `open`
_Found = TypeVar("_Found")


class Source:
    """One more place where models come from; each method does here what a source does that has nothing to say."""

    holds: str = ""  # `Entry.holds` of what it opens of the folders of checkpoints
    has_models: bool = True  # False if what it opens are maps without a model

    def own(self) -> dict[str, Entry]:
        """What this session brought here and is still there, by name."""
        return {}

    def folder(self, name: str) -> Entry | None:
        """A checkpoint folder that a name means, also as that of one of its snapshots; `loading` opens it."""
        return None

    def at(self, name: str) -> Entry | None:
        """What else a name means that is in no list."""
        return None

    def opens(self, entry: Entry) -> bool:
        """Whether it opens an entry itself."""
        return entry.holds == self.holds

    def open(self, entry: Entry) -> Checkpoint:
        """Open it. Raises `UnansweredError` where something has to be answered first."""
        raise NotImplementedError

    def maps(self, entry: Entry) -> LabelledMaps:
        """Open one that holds no model; read once, and again when the file changes."""
        raise NotImplementedError

    def card(self, maps: LabelledMaps, name: str) -> None:
        """Draw what is told of maps of its on the page of checkpoints."""

    def ask(self, entry: Entry, title: str, error: UnansweredError) -> NoReturn:
        """Say on a page what has to be answered first, and stop it; a title is not drawn yet."""
        raise error

    def opened(self, content_hash: str) -> Checkpoint | None:
        """What `open` has opened before, opened again; None for any other checkpoint."""
        return None

    def label(self, entry: Entry) -> str | None:
        """What an entry is called in the choice of checkpoints; None for one that it knows nothing of."""
        return None

    def gone(self, name: str, instead: str) -> Sentence | None:
        """What is said where a name leads nowhere, and `instead` is shown; None if it would never lead to it."""
        return None

    def told(self, entry: Entry) -> tuple[str, str] | None:
        """An icon, and what the list of all folders and files says of an entry; None of one that it does not open."""
        return None

    def explain(self) -> None:
        """Draw, on the page of checkpoints, what may lie in their folders, and how it gets there."""

    def changes(self, name: str) -> bool:
        """Whether the model of a name changes version often, so URLs do not name the version."""
        return False

    def ran(self, slot: Slot, link: Link) -> None:
        """Called when what a link asks for was run, before it is drawn."""


def sources() -> tuple[Source, ...]:
    """Those of all extensions."""
    return provided("sources")


def folder(name: str) -> Entry | None:
    """The checkpoint folder that a name means, also as that of one of its snapshots."""
    return first(one.folder(name) for one in sources())


def opens(entry: Entry) -> Source | None:
    """Who opens an entry; None for a checkpoint folder."""
    return next((one for one in sources() if one.opens(entry)), None)


def has_model(entry: Entry) -> bool:
    """Whether it is a model; False for maps alone."""
    source = opens(entry)
    return source is None or source.has_models


def changes(name: str) -> bool:
    """Whether what a name means becomes another version again and again."""
    return any(one.changes(name) for one in sources())


def first(found: Iterable[_Found | None]) -> _Found | None:
    """What the first source says that has something to say."""
    return next((one for one in found if one is not None), None)
