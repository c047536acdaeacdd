"""Catalogues: which languages there are, and what a template is in them.

A language is a folder of `catalogues/` with `messages.po`, which translators write, and `messages.mo`, which is made
of it by `make words` and read here. English is the code's own and has none; the pseudo-language needs none.
"""

from functools import cache
from gettext import GNUTranslations
from pathlib import Path

ENGLISH = "en"
PSEUDO = "qps"

FOLDER = Path(__file__).resolve().parent / "catalogues"
COMPILED = "messages.mo"

_NAMES = {ENGLISH: "English", "zh": "中文"}  # each in its own language, so its readers find it


@cache
def languages() -> tuple[str, ...]:
    """The languages that a reader can choose, English first; the pseudo-language is none of them."""
    return ENGLISH, *sorted(file.parent.name for file in FOLDER.glob(f"*/{COMPILED}"))


def name_of(language: str) -> str:
    """A language's name in itself.

    Args:
        language: One of `languages()`.
    """
    return _NAMES.get(language, language)


def negotiated(wanted: str | None) -> str | None:
    """The language of ours that a tag asks for.

    Args:
        wanted: A tag such as "zh-Hans-CN" or "zh_CN"; anything else a browser or an address may say, too.

    Returns:
        The closest: the tag without its last parts, then a language that begins like it; None if there is none.
    """
    parts = (wanted or "").strip().replace("_", "-").lower().split("-")
    ours = {tag.lower(): tag for tag in (*languages(), PSEUDO)}
    for length in range(len(parts), 0, -1):
        found = ours.get("-".join(parts[:length]))
        if found:
            return found
    return next((tag for low, tag in ours.items() if low.split("-")[0] == parts[0]), None)


def template(english: str, language: str, *, about: str = "") -> str:
    """A template in a language, said with a context if there is one; English where it has no translation."""
    catalogue = _catalogue(language)
    if catalogue is None or not english:  # gettext gives its own head for an empty text
        return english
    return catalogue.pgettext(about, english) if about else catalogue.gettext(english)


def plural_template(one: str, many: str, n: int, language: str, *, about: str = "") -> str:
    """The form of a template that a number takes in a language."""
    catalogue = _catalogue(language)
    if catalogue is None:
        return one if n == 1 else many
    return catalogue.npgettext(about, one, many, n) if about else catalogue.ngettext(one, many, n)


def plural_forms(one: str, many: str, language: str) -> list[str]:
    """All forms of a template in a language, in the order of its catalogue."""
    forms: dict[int, str] = {}
    catalogue = _catalogue(language)
    if catalogue is not None:
        which = getattr(catalogue, "plural", lambda n: int(n != 1))  # the rule of the catalogue's head
        for n in range(200):
            forms.setdefault(which(n), catalogue.ngettext(one, many, n))
    return [forms[form] for form in sorted(forms)] or [one, many]


@cache
def _catalogue(language: str) -> GNUTranslations | None:
    try:
        with (FOLDER / language / COMPILED).open("rb") as file:
            return GNUTranslations(file)
    except OSError:
        return None
