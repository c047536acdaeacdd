"""Match a file with the names of tutorials: behind which prefix the model is, what is there twice, what no weight is.

A file may hold more than a model: a criterion, an average of the weights, counters, the layer that
`nn.TransformerEncoder` made its copies of. The model is behind the prefix that gives the most of one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from glassformer.extensions.importers.library import parts
from glassformer.extensions.importers.library.keys import Match, Taken, best_match, match, prefixes
from glassformer.extensions.importers.library.tutorials import LAYERS, POSITION_OF, TABLES, tutorials
from glassformer.extensions.weight_files.library.weights import Weights
from transformer.errors import ClauseError, shown
from transformer.i18n import say

PREFIX = "prefix"  # the question which of several models is meant
WITHOUT = say("you said that the model does not need it")
_WHOLE = say("it holds whole numbers, so it is not a weight")
_OTHER = say("it belongs to another model in the file")
_WHOLE_NUMBERS = ("I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL")


def matched(weights: Weights, answers: Mapping[str, Any]) -> Match:
    """What the names of a file say, with what the user says of prefixes and of the parts of layers."""
    names = list(weights.tensors)
    found = best_match([tutorials()], names)
    others = []
    if PREFIX in answers:
        found = match(tutorials(), names, prefix=_prefix(answers[PREFIX], weights))
        others = rivals(found, names)
        theirs = tuple(filter(None, others))
        names = [name for name in names if not name.startswith(theirs)]
        names = [name for name in names if "" not in others or name.startswith(found.prefix)]
    called = parts.names_said(names, found.prefix, answers)
    for _ in range(2):  # norms are counted once their layers are known
        found = match(tutorials(), names, prefix=found.prefix, called=called)
        called |= parts.counted_norms(found, weights)
    found = _single(found, called)
    none = {name: _OTHER for name in weights.tensors if name not in names}
    none |= {name: _WHOLE for name in found.left_over if weights.tensors[name].dtype in _WHOLE_NUMBERS}
    left = tuple(name for name in found.left_over if name not in none)
    return replace(found, ignored={**found.ignored, **none}, left_over=left)


def unused(found: Match) -> list[str]:
    """The tensors without a meaning so far, those included that the user says are not needed."""
    return [*found.left_over, *(name for name, why in found.ignored.items() if why == WITHOUT)]


def rivals(found: Match, names: Sequence[str]) -> list[str]:
    """Other prefixes behind which there is a whole model, too, such as an average of the weights."""
    own = {one.source for one in found.taken}
    stacks = {stack for stack in LAYERS if found.n_layers(stack)}
    others: list[str] = []
    for prefix, given in prefixes(tutorials(), names).items():
        layers = {target for target, name in given.items() if re.search(r"(^|\.)\d+\.", name.removeprefix(prefix))}
        there = {target.partition(".layers.")[0] for target in layers if ".layers." in target}
        nested = others and prefix.startswith(tuple(others))
        if stacks and stacks <= there and own.isdisjoint(given.values()) and not nested:
            others.append(prefix)
    return others


def _prefix(said: Any, weights: Weights) -> str:
    prefix = "" if said == parts.NONE else f"{str(said).rstrip('.')}."
    if not any(name.startswith(prefix) for name in weights.tensors):
        raise ClauseError("{field}: no tensor has a name that begins with {found}", field=PREFIX, found=shown(said))
    return prefix


def places(found: Match, stack: str, called: Mapping[str, str] | None = None) -> dict[str, list[Taken]]:
    """Where a file has layers of a stack, and the tensors there; "" is a layer without a number."""
    there: dict[str, list[Taken]] = {}
    for one in found.taken:
        if one.targets[0].startswith(f"{stack}.layers."):
            name = (called or {}).get(one.source, one.source.removeprefix(found.prefix))
            place = next((place for place in LAYERS[stack] if re.match(rf"{re.escape(place)}\.\d+\.", name)), "")
            there.setdefault(place, []).append(one)
    return there


def _single(found: Match, called: Mapping[str, str]) -> Match:
    """The match without tables, and without layers as a whole, that are there twice: they are left over."""
    gone: set[str] = set()
    for stack in LAYERS:
        there = sorted(places(found, stack, called).items(), key=lambda one: (one[0] == "", -len(one[1])))
        kept = {target for one in (there[0][1] if there else ()) for target in one.targets}
        for _, taken in there[1:]:
            twice = any(kept & set(one.targets) for one in taken)
            gone |= {one.source for one in taken if twice}
    seen: set[str] = set()
    for one in found.taken:
        if {*one.targets} <= {*TABLES, *POSITION_OF.values()}:
            gone |= {one.source} if seen & {*one.targets} else set()
            seen |= {*one.targets}
    return found.leaving(gone)
