"""See or replace any named value during one call of the model.

Every call of the model takes a `tap`. A module passes its values through it under short names,
`weights = tap("weights", weights)`, and hands its children `tap.child("decoder", 2)`, so the full name of a site is
`decoder.2.cross_attn.weights`. Nothing is ever stored on a module: many sessions share one model.

`NO_TAP` returns its argument and wants nothing. A `Recorder` keeps what it was asked for. A `Replacer` returns
changed values. `tap.wants(name)` lets a module skip work that nobody asked for: unless scores or weights are wanted,
attention takes torch's fused path and never builds them.

`SITES` is the table of all sites. `{layer}` stands for a layer's number from 0.
"""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Protocol

from torch import Tensor

_ATTENTION = {
    "norm": "[batch, query, d_model] pre: input of the sub-layer; post: output of the sub-layer's norm",
    "queries": "[batch, head, query, d_head] projected queries",
    "keys": "[batch, head, key, d_head] projected keys, before they enter a cache",
    "values": "[batch, head, key, d_head] projected values, before they enter a cache",
    "mask": "bool, broadcasts to [batch, head, query, key]; True = may attend",
    "scores": "[batch, head, query, key] q . k / sqrt(d_head), before the mask",
    "weights": "[batch, head, query, key] after mask and softmax; rows sum to 1",
    "heads": "[batch, head, query, d_head] weights . values, before the heads are joined",
    "output": "[batch, query, d_model] after the output projection",
    "residual": "[batch, query, d_model] the stream plus the sub-layer's output",
}
_FEED_FORWARD = {
    "norm": "[batch, query, d_model] pre: input of the sub-layer; post: output of the sub-layer's norm",
    "pre_activation": "[batch, query, d_ff] before the non-linearity",
    "activation": "[batch, query, d_ff] after the non-linearity",
    "output": "[batch, query, d_model] after the second projection",
    "residual": "[batch, query, d_model] the stream plus the sub-layer's output",
}
_EMBEDDING = {
    "tokens": "[batch, token, d_model] token embeddings, scaled if the config says so",
    "positions": "[token, d_model] position vectors",
    "output": "[batch, token, d_model] their sum: the residual stream's start",
}


def _table() -> dict[str, str]:
    sites: dict[str, str] = {}
    for stack, attentions in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "cross_attn"))):
        sites |= {f"{stack}.embedding.{name}": text for name, text in _EMBEDDING.items()}
        for attention in attentions:
            sites |= {f"{stack}.{{layer}}.{attention}.{name}": text for name, text in _ATTENTION.items()}
        sites |= {f"{stack}.{{layer}}.ffn.{name}": text for name, text in _FEED_FORWARD.items()}
        sites[f"{stack}.{{layer}}.output"] = "[batch, token, d_model] the residual stream after the layer"
        sites[f"{stack}.output"] = "[batch, token, d_model] after the final norm, if there is one"
    sites["logits"] = "[batch, token, tgt_vocab] scores of the next piece, before the softmax"
    return sites


SITES = _table()


class Tap:
    """The tap that sees nothing and changes nothing; also the interface of all taps."""

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Pass one named value through; the model goes on with what comes back."""
        return value

    def wants(self, name: str) -> bool:
        """Whether anybody looks at this value; if not, it need not be computed."""
        return False

    def child(self, *parts: str | int) -> "Tap":
        """The tap to hand to a part of this module."""
        return self

    def at(self, offset: int) -> "Tap":
        """The tap for a call whose first query has this position (0 unless there is a cache)."""
        return self


NO_TAP = Tap()


class Visitor(Protocol):
    """What stands behind a tap that does something."""

    def wants(self, site: str) -> bool:
        """Whether this site is to be visited."""
        ...

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """See the value of a site; the model goes on with the tensor that is returned."""
        ...


class SiteTap(Tap):
    """A tap that knows where it is: it turns short names into sites and asks its visitors, in order."""

    def __init__(self, visitors: tuple[Visitor, ...], prefix: str = "", offset: int = 0) -> None:
        self._visitors = visitors
        self._prefix = prefix
        self._offset = offset

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Let each visitor that wants the site see or replace the value."""
        site = self._prefix + name
        for visitor in self._visitors:
            if visitor.wants(site):
                value = visitor.visit(site, value, self._offset)
        return value

    def wants(self, name: str) -> bool:
        """Whether any visitor wants this site."""
        return any(visitor.wants(self._prefix + name) for visitor in self._visitors)

    def child(self, *parts: str | int) -> Tap:
        """The same visitors, one level deeper."""
        return SiteTap(self._visitors, self._prefix + "".join(f"{part}." for part in parts), self._offset)

    def at(self, offset: int) -> Tap:
        """The same visitors, told the position of the first query."""
        return SiteTap(self._visitors, self._prefix, offset)


def tap_of(*visitors: Visitor) -> Tap:
    """A tap for one call of the model; with no visitor it is `NO_TAP`."""
    return SiteTap(visitors) if visitors else NO_TAP


class Recorder:
    """Keeps the values of the sites that match any of its patterns (`*` matches anything).

    Args:
        patterns: Site names or patterns; by default every attention's weights and mask.
    """

    def __init__(self, patterns: Iterable[str] = ("*_attn.weights", "*_attn.mask")) -> None:
        self._patterns = tuple(patterns)
        self.values: dict[str, Tensor] = {}

    def wants(self, site: str) -> bool:
        """Whether a pattern matches."""
        return any(fnmatchcase(site, pattern) for pattern in self._patterns)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Keep the value and return it unchanged."""
        self.values[site] = value.detach()
        return value


class Replacer:
    """Replaces values: each site in the table goes through its function.

    Args:
        changes: Site name or pattern -> function of the value (and nothing else) that returns the new value.
    """

    def __init__(self, changes: dict[str, Callable[[Tensor], Tensor]]) -> None:
        self._changes = dict(changes)

    def wants(self, site: str) -> bool:
        """Whether a pattern matches."""
        return any(fnmatchcase(site, pattern) for pattern in self._changes)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Return what the functions of all matching patterns make of the value, in order."""
        for pattern, change in self._changes.items():
            if fnmatchcase(site, pattern):
                value = change(value)
        return value
