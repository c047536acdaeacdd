"""What an import gives: the report, and, once nothing is asked, all that a checkpoint folder is made of.

The tensors stay in their file until somebody wants them, one at a time, so that a model is in memory once.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.extensions.importers.library import keys
from glassformer.extensions.importers.library.keys import AS_IS, Facts, Match, Taken
from glassformer.extensions.importers.library.report import ImportReport
from glassformer.extensions.tokenizers.vocabularies import Vocabularies
from glassformer.extensions.weight_files.library.weights import Weights
from transformer.checkpoint.agreement import Shapes
from transformer.checkpoint.filling import Places
from transformer.checkpoint.memory import Halves
from transformer.checkpoint.save import Parts
from transformer.errors import CheckpointError
from transformer.files.tensorfile import FLOATS, NARROW
from transformer.model.config import ModelConfig


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
        """The tensors that 16 bits of the file are enough for, and which."""
        kinds: dict[str, torch.dtype] = {}
        for one in self.match.taken:
            if one.reshape.exact and (kind := FLOATS.get(self.weights.tensors[one.source].dtype)) in NARROW:
                kinds |= dict.fromkeys(one.targets, kind)
        return kinds

    def write(self, places: Places) -> Iterator[str]:
        """Write each tensor into its place, straight from the file where it stays as it is; name it after that."""
        for one in self.match.taken:
            if one.reshape is AS_IS:
                self.weights.read(one.source, places[one.targets[0]])
            else:
                for target, values in self._made(one):
                    places[target].copy_(values)
            yield from one.targets

    def read(self) -> Iterator[tuple[str, Tensor]]:
        """Each tensor's name and float32 values, one of the file at a time; parts of it share its memory."""
        for one in self.match.taken:
            yield from self._made(one)

    def _made(self, one: Taken) -> Iterator[tuple[str, Tensor]]:
        made = one.reshape.apply(self.weights.read(one.source), self.facts)
        return zip(one.targets, made, strict=True)


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
            if not {one.source for one in self.match.taken} <= set(weights.tensors):
                raise CheckpointError("{label}: was replaced by a different file; open it again.", label=weights.label)
            yield Opened(self.match, self.facts, weights)

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
