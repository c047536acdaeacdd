"""Query parameters outside a link: the language, and extensions' (`AddressPart`, `Guidance`); the app's base URL.

An extension's `address` names an `AddressPart`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import streamlit as st

from glassformer.state import language
from transformer.extensions import provided


@dataclass(frozen=True)
class Guidance:
    """Who else says what a session looks at, and who is told; by itself nobody."""

    follows: bool = False  # somebody else goes ahead, and the session comes along
    leads: bool = False  # others come along: they are told of each step
    is_set: bool = False  # what is done here says which checkpoint it is to be
    types: bool = True  # it has sentences of its own
    bare: Mapping[str, str] = field(default_factory=dict)  # what an address means that says nothing


class AddressPart:
    """Query parameters of one extension, and what they mean to a session."""

    names: Collection[str] = ()

    def begin(self) -> None:
        """Take them from the address; called when a run begins."""

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """The global parameters that are not among these."""
        return {}

    def take_notes(self) -> tuple[str, ...]:
        """What there is to say of the address, once."""
        return ()

    def gave(self, parameters: Mapping[str, tuple[str, ...]]) -> None:
        """The session was set from a link with these parameters."""

    def published(self, page: str, written: Mapping[str, str]) -> None:
        """A page has drawn what this link says, which the address says now, or is about to."""

    def guidance(self) -> Guidance:
        """Who else says what the session looks at."""
        return Guidance()


def parts() -> tuple[AddressPart, ...]:
    """Those of all extensions."""
    return provided("address")


def begin() -> None:
    """Take it from the address; call it when a run begins."""
    language.begin()
    for part in parts():
        part.begin()


def beside(parameters: Mapping[str, str]) -> dict[str, str]:
    """All query parameters: those of a link or of a step of a lesson, and the global ones."""
    whole = dict(parameters) | language.in_address()
    for part in parts():
        whole |= part.beside(parameters)
    return whole


def without(parameters: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The parameters of an address that are a link's."""
    apart = {*language.NAMES, *(name for part in parts() for name in part.names)}
    return {name: values for name, values in parameters.items() if name not in apart}


def guidance() -> Guidance:
    """Who else says what the session looks at, by any extension."""
    found = [part.guidance() for part in parts()]
    return Guidance(
        follows=any(one.follows for one in found),
        leads=any(one.leads for one in found),
        is_set=any(one.is_set for one in found),
        types=all(one.types for one in found),
        bare={name: value for one in found for name, value in one.bare.items()},
    )


def base() -> str:
    """The address of the app, as this visitor's browser writes it, without a slash at its end."""
    found = urlsplit(st.context.url or "")
    return found._replace(path=found.path.rpartition("/")[0], query="", fragment="").geturl()
