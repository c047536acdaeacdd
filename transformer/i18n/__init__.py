"""Internationalisation (i18n): exports of `say`, `said` and the rest, for lazily translated sentences.

`say` writes a sentence down: a template and its named values. It returns a `str` with the English text, so it fits
wherever text does; it also keeps its template, so `said` can translate it later. Nothing is translated before it is
drawn: caches and threads serve readers of every language.

Read `sentence`, then `catalogue`; `read_table` reads data with sentences. Standard library only.

Source: GNU gettext's catalogues (https://www.gnu.org/software/gettext/manual/), as Babel extracts them.

Example:
    >>> from transformer.i18n import said, say, say_n
    >>> found = say("{count} in {where}.", count=say_n("{n:,} piece", "{n:,} pieces", 1200), where="▁like")
    >>> print(found)
    1,200 pieces in ▁like.
    >>> said(found, "qps")
    '⟦‹1,200 piieecees› iin ▁like.·⟧'
"""

from transformer.i18n.catalogue import ENGLISH, PSEUDO, languages, name_of, negotiated
from transformer.i18n.sentence import (
    Sentence,
    in_every_language,
    in_languages,
    joined,
    paragraph,
    said,
    said_throughout,
    say,
    say_n,
    through,
)

__all__ = [
    "ENGLISH",
    "PSEUDO",
    "Sentence",
    "in_every_language",
    "in_languages",
    "joined",
    "languages",
    "name_of",
    "negotiated",
    "paragraph",
    "said",
    "said_throughout",
    "say",
    "say_n",
    "through",
]
