"""A term of the glossary.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass

from words import Sentence


@dataclass(frozen=True)
class Term:
    """A term, in sentences."""

    # What it is called. What stands in brackets is another name: "rotary position embedding (RoPE)". The browser
    # finds English names in both numbers and in any case.
    name: Sentence
    text: Sentence  # what it means
    seen: str = ""  # where it is seen, a name in `places.PLACES`; "" if nowhere yet
    also: str = ""  # other words for it, irregular plurals among them, with "|" between
    # For a name of one word that people also use otherwise: words, with "|" between, of which one has to stand in the
    # same paragraph for this one to be the term.
    among: str = ""

    @property
    def id(self) -> str:
        """Its English name, by which an address asks for it."""
        return str(self.name)

    def plain(self) -> dict[str, str]:
        """What the browser is told of it."""
        told = {"id": self.id, "name": self.name, "text": self.text, "also": self.also, "among": self.among}
        return {name: text for name, text in told.items() if text}
