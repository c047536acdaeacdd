"""Internationalisation (i18n): `say` makes lazily translated sentences (as `gettext_lazy` does).

`say` writes a sentence down: a template and its named values. What it returns is a `str` with the English text, so
it fits wherever text does; and it still knows its template, so that `said` can give it in another language later.
Nothing is translated before it is drawn: what caches and threads hold serves readers of every language.

Read `sentence`, then `catalogue`; `spacing` is what Chinese does where a value begins and
ends, `pseudo` the language of the tests, `browser` what scripts get, `tables` reads sentences that stand in data.
Standard library only.

Source: GNU gettext's catalogues (https://www.gnu.org/software/gettext/manual/), as Babel extracts them.

Example:
    >>> from words import said, say, say_n
    >>> found = say("{count} in {where}.", count=say_n("{n:,} piece", "{n:,} pieces", 1200), where="▁like")
    >>> print(found)
    1,200 pieces in ▁like.
    >>> said(found, "qps")
    '⟦‹1,200 piieecees› iin ▁like.·⟧'
"""

from transformer.i18n.catalogue import ENGLISH, PSEUDO, languages, name_of, negotiated
from transformer.i18n.sentence import (
    Sentence,
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
