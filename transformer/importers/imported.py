"""What an import gives: the report, and, once nothing is asked, all that a checkpoint folder is made of.

The tensors stay in their file until somebody wants them, one at a time, so that a model is in memory once.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from torch import Tensor

from transformer.checkpoint.agreement import Shapes
from transformer.checkpoint.filling import Places
from transformer.checkpoint.memory import Halves
from transformer.checkpoint.save import Parts
from transformer.errors import CheckpointError
from transformer.importers import keys
from transformer.importers.keys import Match
from transformer.importers.report import ImportReport
from transformer.importers.reshapes import Facts
from transformer.importers.weights import Weights
from transformer.model.config import ModelConfig
from transformer.text.vocabularies import Vocabularies


@dataclass(frozen=True)
class Opened:
    """The values of a model in an open file of another program."""

    match: Match  # what becomes of the file's tensors
    facts: Facts  # what the reshapes need to know
    weights: Weights  # the file

    @property
    def shapes(self) -> Shapes:
        """Names and shapes in the model."""
        return keys.shapes(self.match, self.weights, self.facts)

    @property
    def narrow(self) -> Halves:
        """The tensors that 16 bits are enough for."""
        return keys.narrow(self.match, self.weights)

    def write(self, places: Places) -> Iterator[str]:
        """Write each tensor into its place, and name it when that is done."""
        yield from keys.write(self.match, self.weights, self.facts, places)

    def read(self) -> Iterator[tuple[str, Tensor]]:
        """Each tensor's name and float32 values, one of the file at a time."""
        yield from keys.read(self.match, self.weights, self.facts)


@dataclass(frozen=True)
class Content:
    """A model that is understood, and still in its file."""

    config: ModelConfig  # the features of the model
    vocabularies: tuple[bytes, ...] | Vocabularies  # its tokenizers, as `Parts` has them
    card: Mapping[str, object]  # what `card.json` shall say
    match: Match  # what becomes of the file's tensors
    facts: Facts  # what the reshapes need to know, such as the number of heads
    open_again: Callable[[], AbstractContextManager[Weights]]  # opens the file

    @contextmanager
    def values(self) -> Iterator[Opened]:
        """The tensors of the model, to be read one at a time while their file is open; refused if it changed."""
        with self.open_again() as weights:
            if not {name for one in self.match.taken for name in one.sources} <= set(weights.tensors):
                raise CheckpointError(
                    "{label}: the file was replaced by another; open it again.", label=weights.label
                )
            yield Opened(self.match, self.facts, weights)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors of the model, name and float32 values, one at a time; CheckpointError if the file changed."""
        with self.values() as opened:
            yield from opened.read()

    def parts(self) -> Parts:
        """What a checkpoint folder is made of; the tensors stay in their file until they are written."""
        return Parts(self.config, self.values, self.vocabularies, self.card)


@dataclass(frozen=True)
class Imported:
    """A file or folder as it was understood."""

    report: ImportReport  # what became of every tensor, and where every field comes from
    content: Content | None  # the model; None while the report asks something

    @property
    def parts(self) -> Parts | None:
        """What a checkpoint folder is made of; None while the report asks something."""
        return None if self.content is None else self.content.parts()
