"""From the words of an aligned corpus back to text as a model has read it.

Corpora with gold alignments have spaces between all words and punctuation marks. A model has learned from ordinary
text: without spaces in Chinese, without a space before the full stop in English.

Not known here: any language's rules in full. Quotation marks alternately open and close; only French keeps a space
before marks such as : and ;.
"""

import re
from collections.abc import Callable, Sequence

Spacing = Callable[[Sequence[str]], str]

WITHOUT_SPACES = frozenset({"zh", "yue", "wuu", "ja", "th", "lo", "km", "my"})
_CLOSING = frozenset(",.)]}%…")
_CLOSING_UNLESS_FRENCH = frozenset(":;!?")
_OPENING = frozenset("([{$£¥")
_CLITIC = re.compile(r"(?:['’]\w*|n['’]t)", re.IGNORECASE)  # a lone ' as in the workers' rights
_ELIDED = re.compile(r"(?<!\S)(\w+['’]) ")  # l' homme


def spaced(words: Sequence[str]) -> str:
    """The words with spaces between them, as the corpus has them."""
    return " ".join(words)


def joined(words: Sequence[str]) -> str:
    """The words without spaces, except between Latin letters or digits that would run together."""
    text = ""
    for word in words:
        grows = text[-1:].isascii() and text[-1:].isalnum() and word[:1].isascii() and word[:1].isalnum()
        text += " " * grows + word
    return text


def attached(words: Sequence[str]) -> str:
    """Punctuation and clitics attached to their words: `it 's ( not ) here .` as `it's (not) here.` and the like."""
    return _attach(words, _CLOSING | _CLOSING_UNLESS_FRENCH)


def attached_french(words: Sequence[str]) -> str:
    """The same, with a space before `: ; ! ?` and none after `l'`."""
    return _ELIDED.sub(r"\1", _attach(words, _CLOSING))


SPACINGS: dict[str, Spacing] = {
    "spaced": spaced,
    "joined": joined,
    "attached": attached,
    "attached-french": attached_french,
}


def usual_spacing(language: str) -> str:
    """The usual spacing of a language, as a key of `SPACINGS`, by a code such as "zh-Hans"; without one, spaces."""
    code = language.lower().split("-")[0]
    if not code:
        return "spaced"
    if code in WITHOUT_SPACES:
        return "joined"
    return "attached-french" if code == "fr" else "attached"


def _attach(words: Sequence[str], closing: frozenset[str]) -> str:
    text, open_quote, glued = "", False, True  # glued: the next word follows without a space
    for word in words:
        is_quote = word == '"'
        closes = (is_quote and open_quote) or set(word) <= closing or _CLITIC.fullmatch(word) is not None
        text += word if glued or closes else f" {word}"
        open_quote ^= is_quote
        glued = (is_quote and open_quote) or set(word) <= _OPENING
    return text
