"""Hooks for one call of a model (`Tap`): named values recorded or replaced, settings changed, causal mask removed.

Every call of the model takes a `tap`. A module passes its values through it under short names,
`weights = tap("weights", weights)`, and hands its children `tap.child("decoder", 2)`, so the full name of a site is
`decoder.2.cross_attn.weights`. Nothing is ever stored on a module: many sessions share one model.

`NO_TAP` returns its argument and wants nothing. A `Recorder` keeps the values you name. A `Replacer` returns
changed values. `tap.wants(name)` lets a module skip work that nobody asked for: unless scores or weights are wanted,
attention uses torch's fused kernel and never builds them.

A module's settings, such as its matrices or the scale of its scores, pass through the tap as well:
`how = tap.setting("scoring", self.scoring)`. A `Rewirer` changes settings for one call; the module keeps its own.

`SITES` and `SETTINGS` of `transformer.model.sites` list them all.
"""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from torch import Tensor

from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

_Setting = TypeVar("_Setting")


class Hook(Protocol):
    """One of those that look at or change values through a tap."""

    @property
    def causal(self) -> bool:
        """Whether it only looks, or changes each token alone; see `Tap.causal`. If in doubt, False."""

    def wants(self, site: str) -> bool:
        """Whether it visits this site."""

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """See the value of a site; the model continues with the returned tensor."""


class Tap:
    """Knows where it is in the model: it turns short names into sites and asks its visitors, in order."""

    def __init__(self, visitors: tuple[Hook, ...] = (), prefix: str = "", offset: int = 0) -> None:
        self.visitors = visitors
        self._prefix = prefix
        self._offset = offset

    @property
    def causal(self) -> bool:
        """Whether its change of a token depends on no later token, and on earlier ones only through the model.

        Only then do keys and values stay the same while the output grows, so decoding may cache them.
        """
        return all(visitor.causal for visitor in self.visitors)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Pass one named value through each visitor that wants it; the model continues with what is returned."""
        for visitor in self.visitors:
            if visitor.wants(site := self._prefix + name):
                value = visitor.visit(site, value, self._offset)
        return value

    def setting(self, name: str, value: _Setting) -> _Setting:
        """Pass a setting of the module through: a parameter, a number, a record; the module uses what is returned."""
        for visitor in self.visitors:
            if isinstance(visitor, Rewirer):
                value = visitor.rewired(self._prefix + name, value)
        return value

    def wants(self, name: str) -> bool:
        """Whether a visitor looks at this value; if not, it need not be computed."""
        return bool(self.visitors) and any(visitor.wants(self._prefix + name) for visitor in self.visitors)

    def child(self, *parts: str | int) -> "Tap":
        """The tap for a part of this module: the same visitors, one level deeper."""
        if not self.visitors:
            return self
        return Tap(self.visitors, f"{self._prefix}{'.'.join(map(str, parts))}.", self._offset)

    def at(self, offset: int) -> "Tap":
        """The tap for a call whose first query has this position (0 unless there is a cache)."""
        return Tap(self.visitors, self._prefix, offset) if self.visitors else self

    def also(self, *visitors: Hook) -> "Tap":
        """The tap with more visitors, which come after its own."""
        return Tap((*self.visitors, *visitors), self._prefix, self._offset) if visitors else self


NO_TAP = Tap()


def tap_of(*visitors: Hook) -> Tap:
    """A tap for one call of the model; with no visitor it is `NO_TAP`."""
    return NO_TAP.also(*visitors)


def both(first: Tap, then: Tap) -> Tap:
    """One tap for two."""
    return first.also(*then.visitors)


@lru_cache(maxsize=8192)  # every pass asks it of every value
def _matches(site: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(site, pattern) for pattern in patterns)


class Observer:
    """Shows a function the values of the sites that match any of its patterns (`*` matches anything)."""

    causal = True

    def __init__(self, patterns: Iterable[str], see: Callable[[str, Tensor], object]) -> None:
        self._patterns, self._see = tuple(patterns), see

    def wants(self, site: str) -> bool:
        """Whether a pattern matches."""
        return _matches(site, self._patterns)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Show the value and return it unchanged."""
        self._see(site, value)
        return value


class Recorder(Observer):
    """Keeps the values of sites that match any pattern, by default attentions' weights and masks, on the CPU."""

    def __init__(self, patterns: Iterable[str] = ("*_attn.weights", "*_attn.mask")) -> None:
        super().__init__(patterns, self.keep)
        self.values: dict[str, Tensor] = {}

    def keep(self, site: str, value: Tensor) -> None:
        """Keep a value."""
        self.values[site] = value.detach().cpu()


class _Table:
    """Functions by the names that they are for, or by patterns of them."""

    def __init__(self, changes: dict[str, Callable[[Any], Any]], *, causal: bool) -> None:
        self._changes, self.causal = dict(changes), causal
        self._patterns = any("*" in name or "?" in name or "[" in name for name in changes)

    def _of(self, name: str) -> list[Callable[[Any], Any]]:
        """Those for a name, in order. Asked for every value of a pass: plain names are looked up, not matched."""
        if not self._patterns:
            return [self._changes[name]] if name in self._changes else []
        return [change for pattern, change in self._changes.items() if fnmatchcase(name, pattern)]

    def _changed(self, name: str, value: Any) -> Any:
        """What the functions of all matching patterns make of a value, in order."""
        for change in self._of(name):
            value = change(value)
        return value


class Replacer(_Table):
    """Replaces values: each site in the table goes through its function.

    Args:
        changes: Site name or pattern -> function of the value (and nothing else) that returns the new value.
        causal: True if every function computes a token's new value from its old one alone, such as
            `torch.zeros_like`: decoding may then use its cache. Otherwise each prefix is computed whole, which is
            right for any function but slower.
    """

    def __init__(self, changes: dict[str, Callable[[Tensor], Tensor]], *, causal: bool = False) -> None:
        super().__init__(changes, causal=causal)

    def wants(self, site: str) -> bool:
        """Whether a pattern matches."""
        return bool(self._of(site))

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Return the value after the functions of all matching patterns, in order."""
        return self._changed(site, value)


class Rewirer(_Table):
    """Changes settings: each one in the table goes through its function.

    Args:
        changes: Name of a setting or pattern -> function of the setting that returns what the module uses instead.
        causal: Whether a token still depends on no later token; see `Tap.causal`. Nearly every setting acts on each
            token alike.
    """

    def __init__(self, changes: dict[str, Callable[[Any], Any]], *, causal: bool = True) -> None:
        super().__init__(changes, causal=causal)

    def wants(self, site: str) -> bool:
        """It looks at no site: settings are not sites."""
        return False

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        """Return the value unchanged."""
        return value

    def rewired(self, name: str, value: _Setting) -> _Setting:
        """Return the setting after the functions of all matching patterns, in order."""
        return self._changed(name, value)


def all_seen(mask: Tensor) -> Tensor:
    """What the last row may see for every row, bool [B, 1, T, T]: the future is open, and padding stays closed."""
    return mask[..., -1:, :].expand_as(mask)


def without_causal_mask(config: ModelConfig) -> Tap:
    """A tap that takes the causal mask away from the decoder's self-attention; a `QueryError` without one."""
    return tap_of(Replacer({anatomy(config).attention("decoder").site("*", "mask"): all_seen}))
