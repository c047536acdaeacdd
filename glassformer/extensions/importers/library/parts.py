"""Unknown tensor names: a model's prefix, duplicates, numbered norms, questions on stacks and parts of a layer.

    --set out_proj=w_concat                     the matrix that combines the heads, in every attention
    --set self_attn=mixer                       the attention of a layer
    --set norms=before.norm,after.norm          the norms of a layer, in the order of its sub-layers
    --set encoder_layers=net.stack              where the layers of the encoder are
    --set prefix=model.                         which of several models in one file

An answer's name replaces a usual name, and the table does the rest. Shapes decide nothing: only norms whose names are
numbered are not asked about.

A file may also hold a criterion, an average of the weights, counters, the layer that `nn.TransformerEncoder` copied.
The model is under the prefix with most of its tensors.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations, product
from typing import Any

from glassformer.extensions.importers.library.keys import KeyTable, Match, Rule, best_match, match, prefixes
from glassformer.extensions.importers.library.report import Field, ask
from glassformer.extensions.importers.library.tutorials import (
    ALL_TABLES,
    ATTENTIONS,
    BY_HEAD,
    JOINT,
    LAYERS,
    PROJECTIONS,
    tutorials,
)
from glassformer.extensions.weight_files.weights import Weights
from transformer.errors import ClauseError, shown
from transformer.i18n import say

STACKS = {f"{stack}_layers": stack for stack in LAYERS}
FINAL = {f"{stack}_norm": stack for stack in LAYERS}  # behind the last layer
EMBEDDING = {f"{stack}_embedding_norm": stack for stack in LAYERS}  # behind the sum of embeddings
FEED_FORWARD = {"gate_proj": "gate_proj", "up_proj": "linear1", "down_proj": "linear2"}
MATRICES = (*JOINT, *PROJECTIONS, *FEED_FORWARD)
NORMS, NONE = "norms", "none"
PARTS = (*STACKS, *FINAL, *EMBEDDING, *ATTENTIONS, *MATRICES, NORMS)
_MOST = 12  # choices of a question
_LAYER = 4  # tensors that a layer has at least
_NUMBERED = re.compile(r"((?:[^.]+\.)*?[^.]*\d\.).+\.[^.]+")  # a layer, also one called `block0`
_INSIDE = re.compile(r"((?:[^.]+\.)*?\d+\.)?(.+)\.([^.]+)")  # the layer, the module in it, the parameter
_MISSING = re.compile(r"(encoder|decoder)\.layers\.\d+\.(?:(self_attn|cross_attn|ffn)\.)?(\w+?)(_residual\.norm)?\.\w+")
_WHY = say("No name suggests this part of the model. These may be it; the likeliest is first.")
_WHY_JOINT = say(
    "This matrix may hold the queries, keys and values of all heads. Their order cannot be seen: all queries, then all "
    "keys, then all values; or, with “by_head”, those of the first head, then those of the next."
)
_WHY_GATE = say(
    "This matrix may be a gate: the feed-forward network multiplies the output of the gate’s activation function with "
    "that of another matrix, as in SwiGLU. Name the one with the activation function."
)
_WHY_NORMS = say("The order of the norms cannot be seen from their names. Name them in the order of the sub-layers.")
_WHY_STACK = say("No name suggests where these layers are; perhaps the model has none.")

_WHY_UNNAMED = say(
    "No name is one that is usual for a tutorial's Transformer or torch.nn.Transformer. Say where the layers are, and "
    "which matrix combines the heads; then the rest is asked. A Hugging Face model needs its config.json instead."
)


def split(name: str) -> tuple[str, str, str]:
    """A tensor's layer, up to its number and a dot; the module inside it; and the parameter."""
    found = _INSIDE.fullmatch(name)
    return (found[1] or "", found[2], found[3]) if found else ("", "", name)


def in_layers(found: Match, names: Collection[str]) -> set[str]:
    """Those of some names that are part of a layer: of one that is known, or of a numbered module of many parts."""
    numbered = {name: one[1] if (one := _NUMBERED.match(name.removeprefix(found.prefix))) else "" for name in names}
    several = Counter(filter(None, numbered.values()))
    return {name for name, layer in numbered.items() if found.layer_of(name) or several[layer] >= _LAYER}


def templates(found: Match, weights: Weights) -> list[str]:
    """Prefixes of a layer without a number, beside numbered ones: their template.

    nn.TransformerEncoder copies the layer that it is given; if that is kept as a module, too, the file has both.
    """
    inside = {
        frozenset(name.removeprefix(layer) for name in weights.tensors if name.startswith(layer))
        for layer in found.layers
        if re.search(r"\d+\.$", layer)
    }
    groups: dict[str, set[str]] = {}
    for name in weights.tensors:
        first, _, rest = name.removeprefix(found.prefix).partition(".")
        groups.setdefault(f"{name.removesuffix(f'{first}.{rest}')}{first}.", set()).add(rest)
    return [one for one, there in groups.items() if there in inside]


def names_said(names: Iterable[str], prefix: str, answers: Mapping[str, Any]) -> dict[str, str]:
    """What tensors are called instead, as the user said what their modules are."""
    said = {part: [one.strip() for one in str(answers[part]).split(",")] for part in PARTS if part in answers}
    plain = {name: name.removeprefix(prefix) for name in names if said}
    norms = {split(name)[:2] for name in plain.values() if split(name)[1] in said.get(NORMS, ())}
    return {name: other for name, own in plain.items() if (other := _called(own, said, norms))}


def stacks(found: Match, answers: Mapping[str, Any]) -> list[Field]:
    """A question for each stack that is not there while something may be its layers: usual names behind a number."""
    places: dict[str, set[str]] = {}
    for name in found.left_over:
        if numbered := re.match(r"(.+?)\.\d+\.", name.removeprefix(found.prefix)):
            places.setdefault(numbered[1], set()).add(name.removeprefix(found.prefix))
    open_ = []
    for question, stack in STACKS.items():
        there = [
            place
            for place, names in places.items()
            if match(found.table, [_called(one, {question: [place]}, set()) or "" for one in names]).n_layers(stack)
        ]
        if there and not found.n_layers(stack) and question not in answers:
            open_.append(ask(question, _WHY_STACK, *there, NONE))
    return open_


def unnamed(found: Match, weights: Weights, answers: Mapping[str, Any]) -> list[Field]:
    """Questions about a file of which no name is known: where layers are, and a matrix by which the rest is found."""
    places: dict[str, dict[str, None]] = {}
    for name, info in weights.tensors.items():
        inside = re.fullmatch(r"(.+?)\.\d+\.(?:.+\.)?(.+)\.weight", name.removeprefix(found.prefix))
        if inside and len(info.shape) == 2 and info.shape[0] == info.shape[1]:
            places.setdefault(inside[1], {})[inside[2]] = None
    matrices = [one for names in places.values() for one in names]
    choices: dict[str, Sequence[str]] = {**dict.fromkeys(STACKS, (*places, NONE)), "out_proj": matrices}
    return [ask(name, _WHY_UNNAMED, *some) for name, some in choices.items() if places and name not in answers]


def paths(name: str, found: Match) -> list[str]:
    """What answers may call a tensor's module: with all before it, in its layer, by itself."""
    module, layer = name.removeprefix(found.prefix).rpartition(".")[0], found.layer_of(name)
    inside = name.removeprefix(layer).rpartition(".")[0] if layer else ""
    return [module, *([inside, inside.rpartition(".")[2]] if inside else [])]


def _called(own: str, said: Mapping[str, list[str]], norms: set[tuple[str, str]]) -> str | None:
    name = own
    for part in sorted(STACKS, key=lambda one: said.get(one) == [NONE]):  # which says nothing of the others'
        place = next((one.removesuffix(".") for one in said.get(part, ()) if name.startswith(f"{one}.")), None)
        if place is not None:
            name = f"{LAYERS[STACKS[part]][0]}{name.removeprefix(place)}"
            break
        if part in said and any(re.match(rf"{re.escape(known)}\.\d+\.", name) for known in LAYERS[STACKS[part]]):
            return f"?{name}"  # of other layers, which the table would know
    for part, stack in reversed((FINAL | EMBEDDING).items()):  # a decoder is asked about only if there is one
        if name.rpartition(".")[0] in said.get(part, ()):
            return f"{stack}.{'embedding/' * (part in EMBEDDING)}norm.{name.rpartition('.')[2]}"
    layer, module, parameter = split(name)
    for kind in ATTENTIONS:
        for one in said.get(kind, ()):
            if f"{module}.".startswith(f"{one}."):
                module = f"{kind}{module.removeprefix(one)}"
    if module in said.get(NORMS, ()):
        order = [one for one in said[NORMS] if (split(own)[0], one) in norms]
        module = f"norm{order.index(module) + 1}"
    for part in MATRICES:
        heads = BY_HEAD if any(one.endswith(BY_HEAD) for one in said.get(part, ())) else "/in_rows" * (part in JOINT)
        if any(f".{module}".endswith(f".{one.removesuffix(BY_HEAD)}") for one in said.get(part, ())):
            module = FEED_FORWARD.get(part) or f"{_attention(module)}.{part}{heads}"
            break
    made = f"{layer}{module}.{parameter}" if module else name
    return made if made != own else None


def _attention(module: str) -> str:
    """The attention that a module is a part of; one that stands by itself says it in its name, or is of the first."""
    parent = module.rpartition(".")[0]
    if any(parent.split(".")[0] in names for names in ATTENTIONS.values()):
        return parent.split(".")[0]
    return "cross_attn" if re.search("cross|enc|src|memory", module) else "self_attn"


def counted_norms(found: Match, weights: Weights) -> dict[str, str]:
    """What norms are called instead whose names count them: `addnorm1.norm`, `addnorm2.norm`."""
    called: dict[str, str] = {}
    for layer, (_, n_sublayers) in found.layers.items():
        names = {
            name: name.removeprefix(layer).rpartition(".")[0] for name in found.left_over if name.startswith(layer)
        }
        others = {module for name, module in names.items() if len(weights.tensors[name].shape) != 1}
        norms = {module: re.findall(r"\d+", module)[-1:] for module in {*names.values()} - others - {""}}
        numbers = sorted(int(number) for one in norms.values() for number in one)
        if numbers and len(norms) == n_sublayers and numbers == list(range(numbers[0], numbers[0] + n_sublayers)):
            begin = f"{layer.removeprefix(found.prefix)}norm"
            called |= {
                name: f"{begin}{int(norms[module][0]) - numbers[0] + 1}.{split(name)[2]}"
                for name, module in names.items()
                if module in norms
            }
    return called


def questions(found: Match, missing: Iterable[str], unused: Sequence[str], weights: Weights) -> list[Field]:
    """A question for each missing part of a layer for which the file has a candidate.

    `missing` are tensors of the model, `unused` those of the file that have no meaning so far.
    """
    lacking: dict[tuple[str, str], set[str]] = {}  # where: the stack and the sub-layer -> parts
    for one in filter(None, map(_MISSING.fullmatch, missing)):
        lacking.setdefault((one[1], one[2] or ""), set()).add(NORMS if one[4] else one[3])
    lengths = Counter(info.shape for name, info in weights.tensors.items() if found.layer_of(name))
    width = next((shape[0] for shape, _ in lengths.most_common() if len(shape) == 1), 0)
    there: dict[str, dict[tuple[str, str], list[str]]] = {}  # part -> where -> the modules that it may be
    for place in sorted(lacking, reverse=True):  # the encoder's names first
        stack, sublayer = place
        vectors, matrices = (_modules(stack, unused, found, weights, axes) for axes in (1, 2))
        for part, names in _joints(lacking[place], sublayer, unused, matrices, width).items():
            there.setdefault(part, {})[place] = [f"{one}{how}" for one in names for how in ("", BY_HEAD)]
            lacking[place] = lacking[place] - inside(part)
        whole = _parents(matrices) if sublayer in ATTENTIONS and lacking[place] >= set(PROJECTIONS) else []
        for part in (NORMS, *PROJECTIONS, *FEED_FORWARD):
            if part in lacking[place]:
                norms = [one for one in vectors if one not in matrices]  # the others are biases
                names = norms if part == NORMS else whole or _matrices(part, sublayer, matrices, width)
                there.setdefault(sublayer if whole else part, {})[place] = names
    most = max((n for _, n in found.layers.values()), default=1)
    there |= _gates(found, unused, weights)
    made = []
    for part, places in there.items():
        if choices := _together(part, list(places.values()), most):
            why = {NORMS: _WHY_NORMS, "gate_proj": _WHY_GATE, **dict.fromkeys(JOINT, _WHY_JOINT)}.get(part, _WHY)
            made.append(ask(part, why, *choices, *([NONE] if part in ("out_proj", "gate_proj") else [])))
    return made


def _modules(
    stack: str, unused: Iterable[str], found: Match, weights: Weights, axes: int
) -> dict[str, tuple[int, ...]]:
    """The modules in a stack's layers that nobody knows -> the shape of a tensor with so many axes in it."""
    made = {}
    for name in unused:
        layer, shape = found.layer_of(name), weights.tensors[name].shape
        module = name.removeprefix(layer).rpartition(".")[0]
        if layer and found.layers[layer][0] == stack and module and len(shape) == axes:
            made[module] = shape
    return made


def _parents(there: Mapping[str, tuple[int, ...]]) -> list[str]:
    """The modules that may be a whole attention: they hold matrices in parts, or three in one."""
    joint = [module for module, shape in there.items() if shape[0] == 3 * shape[1]]
    inside: dict[str, list[tuple[int, ...]]] = {}
    for module, shape in there.items():
        inside.setdefault(module.rpartition(".")[0], []).append(shape)
    networks = {parent for parent, shapes in inside.items() if len(shapes) == 2 and shapes[0] == shapes[1][::-1]}
    parents = dict.fromkeys([*joint, *(parent for parent in inside if parent and parent not in networks)])
    return [one for one in parents if not any(one.split(".")[0] in names for names in ATTENTIONS.values())]


def _matrices(part: str, sublayer: str, there: Mapping[str, tuple[int, ...]], width: int, rows: int = 1) -> list[str]:
    """The modules that may be a matrix of a sub-layer, by shape; of an attention by the last part of their names."""
    if part in FEED_FORWARD:
        turned = {one: shape[:: -1 if part == "up_proj" else 1] for one, shape in there.items()}  # [D, F]
        fit = {one: shape for one, shape in turned.items() if shape[0] == width}
        return [one for one, shape in fit.items() if shape[1] != width] or [*fit]
    of_it = [one for one in there if sublayer in ATTENTIONS and _attention(one) == sublayer]
    return list(dict.fromkeys(one.rpartition(".")[2] for one in of_it or there if there[one] == (rows * width, width)))


def _gates(found: Match, unused: Sequence[str], weights: Weights) -> dict[str, dict[tuple[str, str], list[str]]]:
    """The modules that may be a gate, by place: those of the shape of the first map of a feed-forward network."""
    places = {}
    for stack in LAYERS:
        up = found.sources.get(f"{stack}.layers.0.ffn.up_proj.weight")
        there = _modules(stack, unused, found, weights, 2)
        if up is None:
            width = max((shape[1] for shape in there.values()), default=0)
            names = [one for one, shape in there.items() if shape[1] < shape[0] and shape[0] != 3 * width]
        else:
            shape = tuple(weights.tensors[up.source].shape)
            own = up.source.removeprefix(found.layer_of(up.source)).rpartition(".")[0]
            names = [own, *(one for one, other in there.items() if tuple(other) == shape and shape[0] != shape[1])]
        if len(names) > 1 and f"{stack}.layers.0.ffn.gate_proj.weight" not in found.sources:
            places[stack, "ffn"] = names
    return {"gate_proj": places} if places else {}


def inside(joint: str) -> set[str]:
    """The matrices that one holds."""
    return {f"{one}_proj" for one in joint.removesuffix("_proj")}


def _joints(
    lacking: set[str], sublayer: str, unused: Iterable[str], there: Mapping[str, tuple[int, ...]], width: int
) -> dict[str, list[str]]:
    """The modules that may hold several matrices of an attention, if there is not one for each that it lacks."""
    ends = tuple(name.removesuffix(".weight") for name in unused if name.endswith(".weight"))
    linear = {one: shape for one, shape in there.items() if any(name.endswith(one) for name in ends)}
    if sublayer not in ATTENTIONS or len(_matrices("q_proj", sublayer, there, width)) >= len(lacking & {*PROJECTIONS}):
        return {}
    sizes = {joint: inside(joint) for joint in JOINT if inside(joint) <= lacking}
    found = {joint: _matrices(joint, sublayer, linear, width, rows=len(parts)) for joint, parts in sizes.items()}
    return {joint: names for joint, names in found.items() if names}


def _together(part: str, groups: list[list[str]], most: int) -> list[str]:
    """The answers to a question about all places where a part is missing, from the modules in each."""
    if part == NORMS:
        names = dict.fromkeys(name for group in sorted(groups, key=len, reverse=True) for name in group)
        orders = permutations(sorted(names, key=_place), min(most, len(names)))
        return [",".join(one) for one in islice(orders, _MOST) if one]
    in_all = [one for one in groups[0] if all(one in group for group in groups)]
    return (in_all or [",".join(dict.fromkeys(one)) for one in islice(product(*groups), _MOST)])[:_MOST]


def _place(norm: str) -> tuple[int, str]:
    """The place of a norm in a layer, by its name."""
    order = ("self|attn1|mha|first", "cross|enc|src|memory", "attn|att", "ff|mlp|feed|last|final")
    place = next((i for i, sound in enumerate(order) if re.search(sound, norm)), len(order) - 2)
    return (1 if place == 2 else place, "".join(re.findall(r"\d+", norm)))


PREFIX = "prefix"  # the question which of several models is meant
WITHOUT = say("you said that the model does not need it")
_WHOLE = say("it holds whole numbers, so it is not a weight")
_OTHER = say("it belongs to another model in the file")
_WHOLE_NUMBERS = ("I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "BOOL")


def matched(weights: Weights, answers: Mapping[str, Any], card: tuple[KeyTable, str] | None = None) -> Match:
    """What the names of a file say, with what the user says of prefixes and of the parts of layers.

    They are those of tutorials, or those of a card's table, behind a prefix.
    """
    names = list(weights.tensors)
    found = match(card[0], names, prefix=card[1]) if card else best_match(tutorials(), names)
    others = []
    if PREFIX in answers:
        found = match(found.table, names, prefix=_prefix(answers[PREFIX], weights))
        others = rivals(found, names)
        theirs = tuple(filter(None, others))
        names = [name for name in names if not name.startswith(theirs)]
        names = [name for name in names if "" not in others or name.startswith(found.prefix)]
    called = names_said(names, found.prefix, answers)
    for _ in range(2):  # norms are counted once their layers are known
        found = match(found.table, names, prefix=found.prefix, called=called)
        called |= counted_norms(found, weights)
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
    for prefix, given in prefixes(found.table, names).items():
        layers = {target for target, name in given.items() if re.search(r"(^|\.)\d+\.", name.removeprefix(prefix))}
        there = {target.partition(".layers.")[0] for target in layers if ".layers." in target}
        nested = others and prefix.startswith(tuple(others))
        if stacks and stacks <= there and own.isdisjoint(given.values()) and not nested:
            others.append(prefix)
    return others


def _prefix(said: Any, weights: Weights) -> str:
    prefix = "" if said == NONE else f"{str(said).rstrip('.')}."
    if not any(name.startswith(prefix) for name in weights.tensors):
        raise ClauseError("{field}: no tensor has a name that begins with {found}", field=PREFIX, found=shown(said))
    return prefix


def places(found: Match, stack: str, called: Mapping[str, str] | None = None) -> dict[str, list[Rule]]:
    """Where a file has layers of a stack, and the tensors there; "" is a layer without a number."""
    there: dict[str, list[Rule]] = {}
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
        if ALL_TABLES.issuperset(one.targets):
            gone |= {one.source} if seen & {*one.targets} else set()
            seen |= {*one.targets}
    return found.leaving(gone)
