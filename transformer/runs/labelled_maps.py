"""Attention weights with a label for each row and column, without a model.

A `LabelledMaps` can replace a `Trace` wherever only weights and labels are needed: `kinds`, `maps` and `mask` are the
same. Nothing is checked here.

Axes: [layer, head, query, key]. Each attention has its own labels, because maps may be cut differently.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer.errors import QueryError
from transformer.model.anatomy import Kind


@dataclass(frozen=True, eq=False)
class LabelledAttention:
    """The maps of one attention."""

    kind: Kind  # which attention
    weights: np.ndarray  # float32 [layer, head, query, key], 0 to 1
    queries: Sequence[str]  # A label for each row and column
    keys: Sequence[str]  # A label for each row and column
    # Bool [query, key], True = may attend. By default all may; if decoder self-attention has no weight on later keys,
    # these are closed.
    allowed: np.ndarray | None = None
    # Whether every row must sum to 1; False if rows are known not to, such as after dropout or a cut.
    sums_to_one: bool = True

    @property
    def mask(self) -> np.ndarray:
        """Bool [query, key], True = may attend."""
        assert self.allowed is not None  # since it was made
        return self.allowed


@dataclass(frozen=True, eq=False)
class LabelledMaps:
    """The maps of one sentence."""

    attentions: tuple[LabelledAttention, ...]  # one or more, of different kinds
    checkpoint: str = ""  # name of their model; empty if not said
    sentence: str = ""  # what it read; empty if not said
    special: tuple[str, ...] = ()  # labels that are not text, such as "[CLS]"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The attentions that it has."""
        return tuple(one.kind for one in self.attentions)

    def of(self, kind: Kind) -> LabelledAttention:
        """One attention with its labels; a QueryError if it was not given."""
        for one in self.attentions:
            if one.kind == kind:
                return one
        raise QueryError(
            "there is no {kind} attention in these maps, only these kinds: {kinds}.",
            kind=repr(kind),
            kinds=", ".join(self.kinds),
        )

    def maps(self, kind: Kind) -> np.ndarray:
        """Attention weights of one kind, [layer, head, query, key]."""
        return self.of(kind).weights

    def mask(self, kind: Kind, layer: int | None = None) -> np.ndarray:
        """The mask of one kind, bool [query, key]; True = may attend. All layers have the same."""
        return self.of(kind).mask

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all contents, in hexadecimal digits: equal maps have equal hashes."""
        digest = hashlib.sha256(repr((self.checkpoint, self.sentence, self.special)).encode())
        for one in self.attentions:
            digest.update(repr((one.kind, one.weights.shape, one.queries, one.keys, one.sums_to_one)).encode())
            digest.update(np.ascontiguousarray(one.weights).data)
            digest.update(one.mask.tobytes())
        return digest.hexdigest()
