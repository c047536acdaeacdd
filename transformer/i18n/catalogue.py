"""Translation catalogues: the languages, templates in them, the pseudo-language, sentences for the browser.

A language is a folder of `catalogues/` with `messages.po`, which translators write, and `messages.mo`, which is made
of it by `make words` and read here. English is the code's own and has none; the pseudo-language needs none.

**The pseudo-language** has each sentence in ⟦…⟧ and a third longer, its values untouched. Text outside the brackets did
not go through `say`, two brackets in one line are a sentence glued together, and what is cut off or runs over would be
so in German too. A nested sentence is in ‹…›. Tags, entities, icons, code, formulas and places of values stay
unchanged.

**In the browser.** The scripts contain their sentences in English (`glassformer/components/common/i18n.js`). For
another language a payload brings a table from the English template to the translated one. `make words` lists the
templates in `catalogues/browser.json`, as this module reads no scripts.
"""

import json
import re
from functools import cache, lru_cache
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
    """The name of one of `languages()` in itself."""
    return _NAMES.get(language, language)


def negotiated(wanted: str | None) -> str | None:
    """The closest language of ours to a tag such as "zh-Hans-CN" or "zh_CN", or anything else that an address says.

    That is the tag without its last parts, then a language that begins like it; None if there is none.
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


OPEN, CLOSE = "⟦", "⟧"
OPEN_NESTED, CLOSE_NESTED = "‹", "›"

_KEPT = re.compile(
    r"<[^<>]+>"  # a tag
    r"|&\#?\w+;"  # an entity
    r"|:[a-z_]+(?:/[a-z_]+)?:"  # Streamlit's icons
    r"|:[a-z]+(?=\[)"  # Streamlit's colours
    r"|\{\{|\}\}|%?\{[^{}]*\}"  # braces, and places of values
    r"|`[^`]*`|\$[^$]+\$"  # code, formulas
    r"|(?<=\])\([^()\s]*\)"  # the URL of a link
)
_VOWEL = re.compile(r"[aeiou]", re.IGNORECASE)
# Markdown reads a heading or a list by how a line begins.
_BLOCK = re.compile(r"\s*(?:\#{1,6}|[-*>]|\d+\.) ")


@lru_cache(maxsize=4096)
def longer(template: str) -> str:
    """A template with each vowel twice, and dots where that is less than a third more."""
    parts = _KEPT.split(template)
    kept = [*_KEPT.findall(template), ""]
    doubled = [_VOWEL.sub(lambda found: found.group() + found.group().lower(), part) for part in parts]
    short = sum(map(len, parts)) / 3 - sum(map(len, doubled)) + sum(map(len, parts))
    return "".join(part + mark for part, mark in zip(doubled, kept, strict=True)) + "·" * max(0, round(short))


def marked(text: str, *, nested: bool) -> str:
    """A filled template in its brackets, others inside another sentence."""
    if nested:
        return f"{OPEN_NESTED}{text}{CLOSE_NESTED}"
    block = _BLOCK.match(text)
    start = block.group() if block else ""
    return f"{start}{OPEN}{text[len(start) :]}{CLOSE}"


LISTED = "browser.json"


@cache
def browser_words(language: str) -> dict[str, str | list[str]]:
    """The scripts' sentences by English template, those with a plural by the form for 1: all forms. English: empty."""
    if language == ENGLISH:
        return {}
    listed: list[list[str]] = json.loads((FOLDER / LISTED).read_text(encoding="utf-8"))
    return {forms[0]: _translated(forms, language) for forms in listed}


def _translated(forms: list[str], language: str) -> str | list[str]:
    if language == PSEUDO:
        found = [marked(longer(form), nested=False) for form in forms]
        return found if len(forms) > 1 else found[0]
    return plural_forms(forms[0], forms[1], language) if len(forms) > 1 else template(forms[0], language)
