"""What a text in the pseudo-language must look like: whole sentences in ⟦…⟧, and data.

`wrong` judges one text that a reader sees; `texts_of_figure` lists those of a chart. A text may have several lines;
each line is sentences and data, with marks such as " · " between them. What is found:

    bare            words outside brackets, or given to a sentence as a value, that are no data: they bypass `say`, or
                    an f-string, a slice or a method of str made them English for good
    said too early  brackets in brackets: a sentence was said before it became a value of another
    glued           two sentences with nothing between them
    cut             a bracket without its partner, and no ellipsis that says so
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from transformer.i18n.catalogue import CLOSE, OPEN

_LINE = re.compile(r"<br\s*/?>|\n")
_MARKUP = re.compile(
    r"<extra>.*?</extra>|</?[a-z]+(?: [^<>]*)?>"  # tags
    r"|%\{[^{}]*\}"  # fields of Plotly's
    r"|\$\$[^$]*\$\$"  # formulas on lines of their own
    r"|:material/\w+:|:[a-z]+-badge(?=\[)|`[^`]*`|\$[^$]*\$"  # icons, badges, code, formulas
    r"|(?<=\])\([^()\s]*\)"  # addresses of links
)
_CODE = re.compile(r"\b[a-z]+(?:_[a-z]+|\.[a-z\d]+)(?:[._]\w+)*")  # names of tensors and sites: `encoder.0.output`
_WORD = re.compile(r"[^\W\d_¹²³⁰⁴-⁹₀-₉]{2,}")
_UNSEEN = "\u2060\u2068\u2069"
# What is written alike in every language: names of measures, units, functions and formulas.
NOTATION = frozenset(
    {"BLEU", "chrF", "PE", "KL", "GELU", "ReLU", "SiLU", "tanh", "log", "rad", "Rₖ", "wᵢ", "nan", "inf"}
)
# The pseudo-language doubles each vowel of a template, and none of a value.
_FROM_TEMPLATE = re.compile(r"(?:[^aeiou]|([aeiou])\1)*", re.IGNORECASE)
_ENDS = tuple(".!?:;,…·")


def wrong(text: str, data: Collection[str] = ()) -> list[str]:
    """What is wrong with a text that was said in the pseudo-language.

    Args:
        text: As a reader, a browser or Plotly gets it.
        data: Words that are data here: of pieces, names of models.
    """
    # Entities last, as a browser reads them: `&lt;b&gt;` is text and no tag.
    seen = html.unescape(_CODE.sub("", _MARKUP.sub("", _LINE.sub("\n", text.replace("\\", "")))))
    return [f"{found}: {text!r}" for found in _wrong(seen.strip(f"{_UNSEEN} "), data)]


def _wrong(line: str, data: Collection[str]) -> Iterator[str]:
    outside, depth, inside = [""], 0, ""
    said = []
    for sign in line:
        if sign == OPEN:
            depth += 1
            if depth > 1:
                yield "said too early"
                return
            gap = outside[-1]
            if len(outside) > 1 and not gap.strip(" ") and not inside.rstrip().endswith(_ENDS):
                yield "glued"
            inside = ""
        elif sign == CLOSE:
            depth -= 1
            outside.append("")
            said.append(inside)
        elif depth and sign == "\n" and inside.endswith("…"):
            depth = 0  # cut, and it says so
            said.append(inside)
            outside.append("\n")
        elif depth:
            inside += sign
        else:
            outside[-1] += sign
    if depth and not line.endswith("…"):  # an ellipsis says that it was cut
        yield "cut"
    bare = [word for part in outside for word in _WORD.findall(part)]
    bare += [word for part in said for word in _WORD.findall(part) if not _FROM_TEMPLATE.fullmatch(word)]
    bare = [word for word in bare if not _is_data(word, data)]
    if bare:
        yield f"bare {' '.join(bare)}"


def _is_data(word: str, data: Collection[str]) -> bool:
    """Charts cut long pieces into lines, and write names of values with a capital."""
    low = word.casefold()
    return word in NOTATION or word in data or any(low in other.casefold() for other in data)


def words_of(*values: Any) -> set[str]:
    """All words of the texts in some values: what a caller gave is data.

    Args:
        *values: Texts, and sequences, mappings and records with texts in them.
    """
    return {word for text in _texts(values) for word in _WORD.findall(text)}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part)
    elif is_dataclass(value):
        yield from _texts([getattr(value, field.name) for field in fields(value)])


# What of a figure is read by people; everything else configures Plotly.
_SEEN = {"columns", "heads", "hovertemplate", "hovertext", "labels", "layers", "name", "rows", "text", "texttemplate"}
_SEEN |= {"ticktext", "title", "whole"}
_NOT_SEEN = {"follow"}  # rows of numbers


def texts_of_figure(figure: Mapping[str, Any]) -> list[str]:
    """Every text of a chart that people read: titles, axes, ticks, hover, legends and the table that is saved.

    Args:
        figure: Its plain data.
    """
    return [text for text in _seen(figure, seen=False) if text]


def _seen(value: Any, *, seen: bool) -> Iterator[str]:
    if isinstance(value, str):
        if seen:
            yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _NOT_SEEN:
                yield from _seen(part, seen=name in _SEEN or (seen and isinstance(part, str) and name.isdigit()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _seen(part, seen=seen)
