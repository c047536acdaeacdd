"""All terms of the glossary: what stands in `terms.toml`, as sentences.

Knows nothing of Streamlit.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from transformer.i18n import Sentence, say
from transformer.i18n.tables import read_table


@dataclass(frozen=True)
class Term:
    """A term, in sentences."""

    # What it is called. What stands in brackets is another name: "rotary position embedding (RoPE)". The browser
    # finds English names in both numbers and in any case.
    name: Sentence
    text: Sentence  # what it means
    seen: str  # where it is seen, a name in `term_places.PLACES`
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


TERMS: Final = tuple(
    Term(**row) for group in read_table(Path(__file__).with_suffix(".toml"))["terms"].values() for row in group
)

# For translators: phrases in which a word of the glossary means something else, so that it is not underlined.
APART = say(
    "arrow keys|last bit|output layer|output head|MLM head|shapes of the lines|output branches|in the "
    "branch|Shift+Enter|linear map|transformers|weights file|weights files|address parameter|unknown keys|the keys "
    "dtype|scale and shift|scales and shifts|residual branch",
    about="glossary",
)
