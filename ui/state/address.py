"""Reads query parameters one by one, and writes down what was wrong with them.

It never trusts them: what is unknown or out of range is put right and said in a note.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformer.errors import QueryError
from transformer.runs.query import MAX_NEW, MAX_SOURCE_CHARACTERS, check_reference, check_source
from ui.state import branch_addresses as branches
from words import say

MAX_FORCED = MAX_NEW
MAX_WORD = 40


class Reader:
    """Reads parameters one by one and writes down what was wrong with them."""

    def __init__(self, parameters: Mapping[str, Sequence[str]]) -> None:
        self._parameters = parameters
        self.notes: list[str] = []

    def text(self, name: str, longest: int) -> str | None:
        """The value as it is; None if it is missing or too long."""
        values = self._values(name)
        if values and len(values[0]) > longest:
            self.notes.append(
                say(
                    "“{name}” in the link is {count:,} characters long; it was left out.",
                    name=name,
                    count=len(values[0]),
                )
            )
            return None
        return values[0] if values else None

    def integer(self, name: str, least: int, most: int) -> int | None:
        """A whole number, moved into its range."""
        return self._in_range(name, int, least, most)

    def number(self, name: str, least: float, most: float) -> float | None:
        """A number, moved into its range."""
        return self._in_range(name, float, least, most)

    def source(self, name: str) -> str | None:
        """The sentence."""
        values = self._values(name)
        try:
            return check_source(values[0]) if values else None
        except QueryError as error:
            self.notes.append(say("The link's sentence was left out. {problem}", problem=error.sentence))
            return None

    def reference(self, name: str) -> str | None:
        """The right output."""
        values = self._values(name)
        try:
            return check_reference(values[0]) or None if values else None
        except QueryError as error:
            self.notes.append(say("The link's reference was left out. {problem}", problem=error.sentence))
            return None

    def ids(self, name: str) -> tuple[int, ...]:
        """Ids joined by dots."""
        ids = _numbers(self.text(name, MAX_FORCED * 8))
        if ids is None or len(ids) > MAX_FORCED:
            self.notes.append(say("The link's forced pieces could not be read; they were left out."))
            return ()
        return ids

    def branches(self, name: str) -> tuple[branches.Branch, ...]:
        """Forced beginnings."""
        found = branches.read(self.text(name, 2 * branches.LONGEST_TEXT) or "", longest=MAX_FORCED)
        if found is None:
            self.notes.append(say("The link's other branches could not be read; they were left out."))
        return found or ()

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """One of a few words; the default if it is missing or another."""
        text = self.text(name, MAX_WORD)
        if text is None or text in options:
            return text or default
        self.notes.append(
            say(
                "“{name}” in the link is “{text}”; {default} was taken.",
                name=name,
                text=_short(text),
                default=default,
            )
        )
        return default

    def flag(self, name: str) -> bool:
        """Whether the value is 1."""
        return self.text(name, MAX_WORD) == "1"

    def place(self, name: str, most: int) -> int | None:
        """A number that the link counts from 1, as one from 0."""
        value = self.integer(name, 1, most)
        return None if value is None else value - 1

    def places(self, name: str, *, most: int, count: int) -> tuple[int, ...]:
        """Different numbers joined by dots, which the link counts from 1, as ones from 0."""
        numbers = _numbers(self.text(name, count * 8))
        if numbers is None or len(numbers) > count or not all(1 <= number <= most for number in numbers):
            self.notes.append(say("“{name}” in the link could not be read; it was left out.", name=name))
            return ()
        return tuple(dict.fromkeys(number - 1 for number in numbers))

    def sentences(self, name: str, *, most: int) -> tuple[str, ...] | None:
        """Sentences joined by line breaks; None if the link says nothing."""
        text = self.text(name, most * MAX_SOURCE_CHARACTERS)
        if text is None:
            return None
        if len(lines := text.splitlines()) > most:
            said = say(
                "“{name}” in the link has {count} sentences; the limit is {most}.",
                name=name,
                count=len(lines),
                most=most,
            )
            self.notes.append(said)
        try:
            return tuple(check_source(line) for line in lines[:most])
        except QueryError as error:
            self.notes.append(say("The link's further sentences were left out. {problem}", problem=error.sentence))
            return None

    def _values(self, name: str) -> Sequence[str]:
        values = self._parameters.get(name) or []
        if len(values) > 1:
            self.notes.append(
                say("The link says “{name}” {count} times; the first was taken.", name=name, count=len(values))
            )
        return values

    def _in_range(self, name: str, kind: Callable[[str], Any], least: Any, most: Any) -> Any:
        text = self.text(name, 40)
        if text is None:
            return None
        try:
            value = kind(text)
        except ValueError:
            said = say(
                "“{name}” in the link is “{text}”, which is no number; it was left out.", name=name, text=_short(text)
            )
            self.notes.append(said)
            return None
        clamped = min(max(value, least), most) if value == value else least  # NaN is not equal to itself
        if clamped != value:
            said = say(
                "“{name}” in the link is {text}; the limit is {least:g} to {most:g}.",
                name=name,
                text=_short(text),
                least=least,
                most=most,
            )
            self.notes.append(said)
        return clamped


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """Whole numbers joined by dots; None if that is not what the text has."""
    parts = text.split(".") if text else []
    good = all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts)
    return tuple(map(int, parts)) if good else None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"
