"""Lazily translated sentences (`Sentence`, `say`, plurals, joins), number formats, Chinese spacing, TOML tables.

    Sentence              a str; what it shows is its English text
    ├── Template          say, say_n: a template with named values, sentences among them
    ├── Written           in_languages: a template that data give in every language, such as a lesson's
    ├── Joined            joined: whole sentences, one after the other, with a separator that has no language
    └── Passed            through: what a function such as an escape makes of a sentence

A sentence is equal to its English text and hashes like it, so a cache that is keyed by text confuses them: wrap caches
of text (`lru_cache` on an escape, say) in `through`. What a method of `str` returns, and an f-string, stays English;
the test in the pseudo-language finds it.

**Spaces of Chinese**: none between two Chinese characters, nor next to full-width punctuation. Translators write a
space between Chinese and a `{value}`, as the value may be Latin or a number. Where it turns out to be Chinese, the
space goes. Spaces inside a value, such as those of a typed sentence, stay as they are.

Source: W3C, "Requirements for Chinese Text Layout" (https://www.w3.org/TR/clreq/), sections 3.1 and 3.2.2.
"""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, wraps
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, Final, LiteralString, ParamSpec, Self, cast

from transformer.i18n import catalogue
from transformer.i18n.catalogue import ENGLISH, PSEUDO, plural_template, template

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_POWER = re.compile(r"(?<=\d)e([+-]\d+)")
_QUOTED_LAST = re.compile(r"\{(\w+)\}”[.。]")
_ENDS_ITSELF = re.compile(r"[^\W_]\s?\\?[.!?…。！？][*`\u2069]*$")  # not a quoted full stop alone


def hundredths(part: float) -> str:
    """A share from 0 to 1 in two digits; what is not 0 never reads as 0."""
    return "<0.01" if 0 < part < 0.005 else f"{part:.2f}"


def chance(part: float) -> str:
    """A probability, as `formatProbability` of stepper/numbers.js writes it: only 0 reads as 0, and only 1 as 1."""
    if 0 < part < 0.01:
        return "<0.001" if part < 0.001 else f"{part:.3f}"
    return ">0.99" if 0.995 <= part < 1 else f"{part:.2f}"


def written(text: str) -> str:
    """A number in Python's writing as people write it: -1.4e-06 becomes −1.4 × 10⁻⁶."""
    with_powers = _POWER.sub(lambda found: f" × 10{str(int(found[1])).translate(_RAISED)}", text)
    return with_powers.replace("-", "−", 1) if text.startswith("-") else with_powers


def digits(number: float) -> str:
    """A number of any size, short: 2.98 × 10⁻⁸ or 1.817."""
    if number == 0 or abs(number) >= 1e-3:
        return written(f"{number:.4g}")
    return written(f"{number:.2e}")


def short(number: float) -> str:
    """A wavelength to four digits: 6.283 or 58,470."""
    return f"{number:.4g}" if number < 1000 else f"{float(f'{number:.4g}'):,.0f}"


_Rest = ParamSpec("_Rest")
_SET = object.__setattr__  # sentences refuse the usual way


class Sentence(str):
    """English text that `said` can give in another language; immutable, and it pickles."""

    __slots__ = ("made_of",)  # one slot: charts say thousands of sentences
    made_of: tuple[Any, ...]
    _english: Callable[..., str]  # of what it is made of

    def __new__(cls, *made_of: Any) -> Self:
        """Say it in English."""
        made = super().__new__(cls, cls._english(*made_of))
        _SET(made, "made_of", made_of)
        return made

    def in_language(self, language: str, *, nested: bool = False) -> str:
        """The text in a language; use `said`. That it is nested in another only the pseudo-language shows."""
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A sentence cannot be changed: make another instead of setting {name}.")

    def __copy__(self) -> Sentence:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Sentence:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.made_of


class _Filled(Sentence):
    """A template with its values, which are the last part of what it is made of."""

    __slots__ = ()

    @staticmethod
    def _template(language: str, *made_of: Any) -> str:
        raise NotImplementedError

    def in_language(self, language: str, *, nested: bool = False) -> str:
        """See `Sentence`."""
        told = {name: _inside(value, language) for name, value in self.made_of[-1].items()}
        if language == PSEUDO:
            english = self._template(ENGLISH, *self.made_of)
            return catalogue.marked(filled(catalogue.longer(english), told), nested=nested)
        return filled(self._template(language, *self.made_of), told, language)


class Template(_Filled):
    """A template with its values: English, with a `{name}` or `{name:format}` for each value.

    There may be another for all numbers but 1, where the value `n` chooses, and what the template is about.
    """

    __slots__ = ()

    @staticmethod
    def _english(one: str, many: str | None, about: str, values: Mapping[str, Any]) -> str:
        return filled(one if many is None or values["n"] == 1 else many, values)  # it needs no catalogue

    @staticmethod
    def _template(language: str, *made_of: Any) -> str:
        one, many, about, values = made_of
        if many is None:
            return template(one, language, about=about)
        return plural_template(one, many, values["n"], language, about=about)

    def in_language(self, language: str, *, nested: bool = False) -> str:
        """See `Sentence`."""
        try:
            return super().in_language(language, nested=nested)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return str(self)  # a catalogue that names other values; a test finds it, a reader gets English

    @property
    def values(self) -> Mapping[str, Any]:
        """What stands for each name."""
        return MappingProxyType(dict(self.made_of[-1]))


class Written(_Filled):
    """A template that data give in several languages, with its values; English where they lack a language."""

    __slots__ = ()

    @staticmethod
    def _english(texts: Mapping[str, str], values: Mapping[str, Any]) -> str:
        return filled(texts[ENGLISH], values)

    @staticmethod
    def _template(language: str, *made_of: Any) -> str:
        texts: Mapping[str, str] = made_of[0]
        return texts.get(language, texts[ENGLISH])

    def __reduce__(self) -> tuple[object, ...]:
        texts, values = self.made_of
        return Written, (dict(texts), dict(values))


class Joined(Sentence):
    """Sentences and data in a row, and what stands between them."""

    __slots__ = ()
    _english = str.join

    def in_language(self, language: str, *, nested: bool = False) -> str:
        """See `Sentence`."""
        separator, parts = self.made_of
        told = (part.in_language(language, nested=nested) if isinstance(part, Sentence) else part for part in parts)
        return chinese_joined(separator, told) if language == CHINESE else str(separator).join(told)


class Passed(Sentence):
    """What a function makes of a sentence, in each language, given the rest of its arguments."""

    __slots__ = ()

    @staticmethod
    def _english(
        function: Callable[..., str], sentence: Sentence, args: Iterable[Any], named: Mapping[str, Any]
    ) -> str:
        return function(str(sentence), *args, **named)

    def in_language(self, language: str, *, nested: bool = False) -> str:
        """See `Sentence`."""
        function, sentence, args, named = self.made_of
        return str(function(sentence.in_language(language, nested=nested), *args, **named))


def say(template: LiteralString, /, *, about: LiteralString = "", **values: object) -> Sentence:
    """Write a sentence down: a `str` with the English text, which can be said in other languages.

    The template is English, written out here (extraction reads the source), with `{name}` or `{name:format}` for each
    value; a brace of its own is doubled. `about` says, where one English word has two meanings, which one; translators
    see it. Sentences among the values are translated too. A KeyError if the template names a value that is not given.
    """
    return Template(template, None, about, values)


def say_n(
    one: LiteralString, many: LiteralString, n: int, /, *, about: LiteralString = "", **values: object
) -> Sentence:
    """Write a sentence down that differs with a number: `one` for 1, `many` for others, with `{n}`; else as `say`."""
    return Template(one, many, about, {"n": n, **values})


def in_languages(texts: Mapping[str, str], /, **values: object) -> Sentence:
    """A sentence whose data bring it in each language, English too; for long texts, such as those of a lesson."""
    return Written(texts, values)


def in_every_language(sentence: Sentence) -> dict[str, str]:
    """What a sentence says in each language, as data of which `in_languages` makes it again."""
    return {one: said(sentence, one).replace("{", "{{").replace("}", "}}") for one in catalogue.languages()}


def joined(separator: str, parts: Iterable[str]) -> Sentence:
    """Set whole sentences and data one after the other, such as the lines of a label.

    The separator has no language: a line break, a dot. A sentence is not made of halves: say it as one, with values.
    """
    return Joined(separator, tuple(parts))


def paragraph(function: Callable[_Rest, Iterator[str]]) -> Callable[_Rest, Sentence]:
    """Let a function that yields sentences, one after the other, return them in a row; empty ones are left out."""

    @wraps(function)
    def whole(*args: _Rest.args, **kwargs: _Rest.kwargs) -> Sentence:
        return joined(" ", filter(None, function(*args, **kwargs)))

    return whole


def through(function: Callable[Concatenate[str, _Rest], str]) -> Callable[Concatenate[str, _Rest], str]:
    """Let a function of a text (an escape, a mark around it) be applied to sentences in whichever language they are.

    It is at the top level of its module, as a sentence that went through it has to pickle.
    """

    @wraps(function)
    def applied(text: str, /, *args: _Rest.args, **kwargs: _Rest.kwargs) -> str:
        if isinstance(text, Sentence):
            return Passed(cast(Callable[..., str], applied), text, args, kwargs)
        return function(text, *args, **kwargs)

    return applied


def _inside(value: object, language: str) -> object:
    return value.in_language(language, nested=True) if isinstance(value, Sentence) else value


def said(text: str, language: str) -> str:
    """A text in one of `languages()` or the pseudo-language: a sentence translated, any other text as it is."""
    if not isinstance(text, Sentence):
        return text
    return str(text) if language == ENGLISH else text.in_language(language)


def said_throughout(tree: Any, language: str) -> Any:
    """Plain data in a language: each sentence in its dictionaries, lists and tuples is translated.

    It is not changed; parts without a sentence are returned as they are, and arrays are not looked into.
    """
    if isinstance(tree, Sentence):
        return said(tree, language)
    if isinstance(tree, dict):
        return {said_throughout(key, language): said_throughout(value, language) for key, value in tree.items()}
    if type(tree) in (list, tuple):
        parts = [said_throughout(part, language) for part in tree]
        if all(new is old for new, old in zip(parts, tree, strict=True)):
            return tree
        return type(tree)(parts)
    return tree


def filled(template: str, values: Mapping[str, Any], language: str = ENGLISH) -> str:
    """Fill a template with values in its language; the one place where a number becomes text in a sentence.

    English and Chinese write 1,234.5 and 12% alike. A language with separators of its own is served here. A quoted
    sentence that ends itself gets no second full stop: “I like coffee.”
    """
    if not values:
        return template.format()
    if "}”" in template:
        template = _QUOTED_LAST.sub(
            lambda found: found[0][:-1] if _ENDS_ITSELF.search(str(values.get(found[1]))) else found[0], template
        )
    shown = {
        name: _Number(value) if not isinstance(value, str) and isinstance(value, Real) else value
        for name, value in values.items()
    }
    return chinese_filled(template, shown) if language == CHINESE else template.format_map(shown)


class _Number:
    """A number as people write it where it is given digits; a plain one, such as an id, stays as it was typed."""

    __slots__ = ("_value",)

    def __init__(self, value: object) -> None:
        self._value = value

    def __format__(self, form: str) -> str:
        text = format(self._value, form)
        return written(text) if form else text


def read_table(file: Path) -> dict[str, Any]:
    """What a file holds, its sentences said."""
    found = tomllib.loads(file.read_text(encoding="utf-8"))
    kinds = found.pop("sentences", {})
    said: dict[str, Any] = _said(found, kinds, "")
    return said


def _said(found: Any, kinds: Mapping[str, Mapping[str, str]], key: str) -> Any:
    if isinstance(found, dict):
        return {name: _said(one, kinds, name) for name, one in found.items()}
    if isinstance(found, list):
        return [_said(one, kinds, key) for one in found]
    if isinstance(found, str) and key in kinds:
        return Template(found, None, kinds[key].get("about", ""), {})
    return found


CHINESE: Final = "zh"

_WIDE = r"\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uff01-\uff60“”‘’…"
_AT_THE_END = re.compile(rf"[{_WIDE}]$")
_AT_THE_START = re.compile(rf"[{_WIDE}]")
_A_SENTENCE_ENDS = re.compile(r"[。！？；：，、]$")
_SEPARATORS: Final = {", ": "、", "; ": "；", ": ": "："}
"""What stands between two Chinese texts instead."""


def chinese_filled(template: str, values: Mapping[str, Any]) -> str:
    """Fill a Chinese template with values that are already in Chinese."""
    parts: list[str] = []
    for literal, name, form in _parsed(template):
        parts.append(literal)
        if name is not None:
            parts.append(f"{{0:{form}}}".format(values[name]))
    return closed_up(parts)


def closed_up(parts: Iterable[str]) -> str:
    """Texts in a row; a space where one meets the next goes if it would stand between two Chinese characters."""
    text = ""
    for part in filter(None, parts):
        if text.endswith(" ") and _AT_THE_START.match(part) and _AT_THE_END.search(text[:-1]):
            text = text[:-1]
        elif part.startswith(" ") and _AT_THE_START.match(part[1:]) and _AT_THE_END.search(text):
            part = part[1:]
        text += part
    return text


def chinese_joined(separator: str, parts: Iterable[str]) -> str:
    """Chinese texts in a row, with the separator that Chinese writes for this English one."""
    text = ""
    for place, part in enumerate(parts):
        text += (_between(text, separator, part) if place else "") + part
    return text


def _between(before: str, separator: str, after: str) -> str:
    if separator == " ":  # pieces of a sentence stay apart, sentences do not
        return "" if _A_SENTENCE_ENDS.search(before) else separator
    numbers = before[-1:].isdigit() and after[:1].isdigit()
    wide = numbers or _AT_THE_END.search(before) or _AT_THE_START.match(after)
    return _SEPARATORS.get(separator, separator) if wide else separator


@lru_cache(maxsize=8192)
def _parsed(template: str) -> tuple[tuple[str, str | None, str], ...]:
    return tuple((literal, name, form or "") for literal, name, form, _ in string.Formatter().parse(template))
