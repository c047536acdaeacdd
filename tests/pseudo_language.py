"""What a text in the pseudo-language must look like: whole sentences in ⟦…⟧, and data.

`wrong` judges one text that a reader sees; `texts_of_figure` lists those of a chart. A text may have several lines;
each line is sentences and data, with marks such as " · " between them. What is found:

    bare            words outside brackets, or given to a sentence as a value, that are no data: they bypass `say`, or
                    an f-string, a slice or a method of str made them English for good
    said too early  brackets in brackets: a sentence was said before it became a value of another
    glued           two sentences with nothing between them
    cut             a bracket without its partner, and no ellipsis that says so
"""

import html
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

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


def wrong(text, data=()):
    """What is wrong with a text that was said in the pseudo-language, as a reader, a browser or Plotly gets it.

    `data` are words that are data here: of pieces, names of models.
    """
    # Entities last, as a browser reads them: `&lt;b&gt;` is text and no tag.
    seen = html.unescape(_CODE.sub("", _MARKUP.sub("", _LINE.sub("\n", text.replace("\\", "")))))
    return [f"{found}: {text!r}" for found in _wrong(seen.strip(f"{_UNSEEN} "), data)]


def _wrong(line, data):
    outside, depth, inside, said = [""], 0, "", []
    for sign in line:
        if sign == OPEN:
            depth += 1
            if depth > 1:
                yield "said too early"
                return
            if len(outside) > 1 and not outside[-1].strip(" ") and not inside.rstrip().endswith(_ENDS):
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
    bare = _WORD.findall("\n".join(outside))
    bare += [word for word in _WORD.findall("\n".join(said)) if not _FROM_TEMPLATE.fullmatch(word)]
    if bare := [word for word in bare if not _is_data(word, data)]:
        yield f"bare {' '.join(bare)}"


def _is_data(word, data):
    """Charts cut long pieces into lines, and write names of values with a capital."""
    low = word.casefold()
    return word in NOTATION or word in data or any(low in other.casefold() for other in data)


def words_of(*values):
    """All words of the texts in sequences, mappings and records: what a caller gave is data."""
    return {word for text in _texts(values) for word in _WORD.findall(text)}


def _texts(value):
    if isinstance(value, str):
        yield value
        return
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    for part in value if isinstance(value, list | tuple | set | frozenset) else ():
        yield from _texts(part)


# What of a figure is read by people; everything else configures Plotly, and "follow" has rows of numbers.
_SEEN = {"columns", "heads", "hovertemplate", "hovertext", "labels", "layers", "name", "rows", "text", "texttemplate"}
_SEEN |= {"ticktext", "title", "whole"}


def texts_of_figure(figure):
    """Every text of a chart that people read: titles, axes, ticks, hover, legends and the table that is saved."""
    return list(filter(None, _seen(figure)))


def _seen(value, seen=False):
    if isinstance(value, str):
        yield from [value] * seen
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name != "follow":
                yield from _seen(part, name in _SEEN or (seen and isinstance(part, str) and name.isdigit()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _seen(part, seen)
