r"""Rules from a file's tensor names to the model's: patterns, reshapes of values, and their matching.

A table is data. A rule's pattern is a name in which `{n}` is the number of a layer, `{m}` the same counted
from 1, `{h}` another number, and `{p}` "weight" or "bias"; letter case matters.

    Rule("encoder_layers.{n}.self_attn.W_q.{p}", ("encoder.layers.{n}.self_attn.q_proj.{p}",))

Each tensor is matched separately, so a model combined from two programs matches too. Names without a rule are left
over; nothing is dropped in silence.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import takewhile

import torch
from torch import Tensor

from glassformer.extensions.weight_files.weights import Weights
from transformer.errors import ClauseError, shown, within
from transformer.i18n import Sentence, say

Facts = Mapping[str, int]  # numbers that a reshape needs and no tensor says, such as n_heads


@dataclass(frozen=True)
class Reshape:
    """A named way to move values."""

    # From a tensor of the file to those of the model.
    apply: Callable[[Tensor, Facts], tuple[Tensor, ...]]
    said: Sentence | None = None  # what it does, for the report; None if values stay as they are
    needs: tuple[str, ...] = ()  # the facts that it reads
    exact: bool = True  # values only move, so 16 bits are enough
    stands_in: Sentence | None = None  # what the last target is, if the file has no such part and it changes nothing


AS_IS = Reshape(lambda tensor, _: (tensor,))

TRANSPOSED = Reshape(lambda tensor, _: (tensor.t(),), say("transposed"))  # [in, out] -> [out, in]

SPLIT_ROWS = Reshape(  # [3 D, D] -> q, k, v, each [D, D]; biases [3 D] alike
    lambda tensor, _: _thirds(tensor), say("split into queries, keys and values by rows")
)

SPLIT_COLUMNS = Reshape(  # [D, 3 D] -> q, k, v, each [D, D]; biases [3 D] alike
    lambda tensor, _: _thirds(tensor.t() if tensor.dim() == 2 else tensor),
    say("transposed, and split into queries, keys and values"),
)

SPLIT_HEADS = Reshape(  # rows are [head][q, k, v][d]
    lambda tensor, facts: _parts_of_heads(tensor, facts["n_heads"], 3),
    say("split into queries, keys and values head by head"),
    needs=("n_heads",),
)

SPLIT_HEADS_IN_TWO = Reshape(  # rows are [head][k, v][d]
    lambda tensor, facts: _parts_of_heads(tensor, facts["n_heads"], 2),
    say("split into keys and values head by head"),
    needs=("n_heads",),
)

SPLIT_ROWS_IN_TWO = Reshape(  # [2 D, D] -> k, v, each [D, D]; biases [2 D] alike
    lambda tensor, _: _parts_of_heads(tensor, 1, 2), say("split into keys and values by rows")
)

ONE_FOR_ALL_HEADS = Reshape(  # [d, d] -> [H d, H d], a block for each head
    lambda tensor, facts: (_block_diagonal(tensor, facts["n_heads"]),),
    say("repeated for each head, on the diagonal"),
    needs=("n_heads",),
)

PAIRS_APART = Reshape(  # rotary rows [head][d / 2][2] -> [head][2][d / 2]; see `transformer.model.rotary`
    lambda tensor, facts: (_pairs_apart(tensor, facts["d_head"]),),
    say("rows of a rotary pair moved half a head apart"),
    needs=("d_head",),
)


def with_pairs_apart(rule: "Rule") -> "Rule":
    """The rule with the pairs of its queries and keys moved apart; another one as it is."""
    turning = [".q_proj." in name or ".k_proj." in name for name in rule.targets]
    if not any(turning):
        return rule

    def apply(tensor: Tensor, facts: Facts) -> tuple[Tensor, ...]:
        made = zip(rule.reshape.apply(tensor, facts), turning, strict=True)
        return tuple(_pairs_apart(one, facts["d_head"]) if turns else one for one, turns in made)

    needs = (*rule.reshape.needs, *PAIRS_APART.needs)
    return replace(rule, reshape=replace(rule.reshape, apply=apply, said=PAIRS_APART.said, needs=needs))


KERNEL_OF_ONE = Reshape(  # of Conv1d: [out, in, 1] -> [out, in]; biases as they are
    lambda tensor, _: (_without_kernel(tensor),), say("axis of length 1 removed")
)

WITH_PLAIN_NORM = Reshape(  # a matrix [F, D], and the scale [D] of a norm that has no parameters
    lambda tensor, _: (tensor, torch.ones(tensor.size(1), device=tensor.device)),
    stands_in=say("ones, as this norm has no parameters"),
)

PLUS_ONE = Reshape(
    lambda tensor, _: (tensor if tensor.is_meta else tensor + 1,), say("plus 1"), exact=False
)  # a norm that scales by 1 + w

FLATTENED = Reshape(  # positions [1, L, D] or [L, 1, D] -> [L, D]
    lambda tensor, _: (_flat(tensor),), say("axis of length 1 removed")
)

FLATTENED_FOR_BOTH = Reshape(
    lambda tensor, _: (_flat(tensor),) * 2, say("used for both sides, without the axis of length 1")
)

FOR_BOTH = Reshape(lambda tensor, _: (tensor,) * 2, say("used for both sides"))

ONE_MAP = Reshape(  # a map [F, D], or its bias, and after it one [F, F] that changes nothing
    lambda tensor, _: (tensor, _nothing_more(tensor)),
    stands_in=say("identity (weight 1 on the diagonal, bias 0), as the feed-forward network is a single map"),
)

WITH_NO_OUTPUT_MAP = Reshape(  # of values [D, D] -> [D, D]
    lambda tensor, _: (_unit_vectors(len(tensor), tensor),),
    stands_in=say("identity matrix, as the heads have no output projection"),
)

UNIT_VECTORS = Reshape(  # of the first map of a feed-forward network [F, D] -> [D, D]
    lambda tensor, _: (_unit_vectors(tensor.size(1), tensor),),
    stands_in=say("unit vectors, as there are no embeddings"),
)


def cut_rows(n: int) -> Reshape:
    """Leave out the first rows of a table: those that count positions from `n` do not use them."""
    return Reshape(lambda tensor, _: (tensor[n:],), say("first {n} rows removed", n=n))


FROM_ROW_1 = cut_rows(1)


def shapes_of(reshape: Reshape, shape: Sequence[int], facts: Facts) -> tuple[tuple[int, ...], ...]:
    """The shapes that come out for a shape that goes in; ValueError if it cannot be reshaped so."""
    if reshape is AS_IS:  # as most are
        return (tuple(shape),)
    try:
        made = reshape.apply(torch.empty(tuple(shape), device="meta"), facts)
    except (RuntimeError, IndexError, TypeError, ZeroDivisionError) as error:  # TypeError: a number has no length
        raise ValueError("shape") from error
    return tuple(tuple(tensor.shape) for tensor in made)


def _nothing_more(tensor: Tensor) -> Tensor:
    """The weight or the bias of a map that changes nothing, behind the one of this weight or bias."""
    return tensor.new_zeros(tensor.shape) if tensor.dim() == 1 else _unit_vectors(len(tensor), tensor)


# Torch's own sum, identity and zeros without values would import its compiler, which takes seconds.


def _unit_vectors(n: int, where: Tensor) -> Tensor:
    return torch.zeros(n, n, device=where.device).fill_diagonal_(1)


def _thirds(tensor: Tensor) -> tuple[Tensor, ...]:
    if len(tensor) % 3:
        raise ValueError("three parts")
    return tensor.split(len(tensor) // 3)


def _parts_of_heads(tensor: Tensor, n_heads: int, n: int) -> tuple[Tensor, ...]:
    if n_heads < 1 or len(tensor) % (n * n_heads):
        raise ValueError("equal parts a head")
    by_head = tensor.reshape(n_heads, n, -1, *tensor.shape[1:])  # [H, n, d, D]
    return tuple(by_head[:, i].flatten(0, 1) for i in range(n))


def _block_diagonal(block: Tensor, n_heads: int) -> Tensor:
    rows, columns = block.shape
    made = torch.empty(n_heads, rows, n_heads, columns, device=block.device)
    if not made.is_meta:
        made.zero_()
        for head in range(n_heads):
            made[head, :, head] = block
    return made.view(n_heads * rows, n_heads * columns)


def _pairs_apart(tensor: Tensor, d_head: int) -> Tensor:
    return tensor.reshape(-1, d_head // 2, 2, *tensor.shape[1:]).transpose(1, 2).reshape(tensor.shape)


def _without_kernel(tensor: Tensor) -> Tensor:
    if tensor.dim() == 3 and tensor.size(2) != 1:
        raise ValueError("a kernel of 1")
    return tensor.flatten(1) if tensor.dim() == 3 else tensor


def _flat(table: Tensor) -> Tensor:
    if table.dim() == 3 and 1 in table.shape[:2]:
        return table.flatten(0, 1)
    if table.dim() != 2:
        raise ValueError("a table of positions")
    return table


MAX_PREFIX = 6  # parts of a name before what a table knows
NO_NAMES: Mapping[str, str] = {}
_HOLE = re.compile(r"\{([nmhp])\}")
_HOLES = {
    "n": r"(?P<n>0|[1-9]\d{0,3})", "m": r"(?P<m>[1-9]\d{0,3})", "h": r"\d{1,4}", "p": r"(?P<p>weight|bias)",
}  # fmt: skip
_DIGITS = re.compile(r"(?<![^.])(\d+|\{h\})(?![^.])")  # a part of a name that is a number
_GLUED = re.compile(r"[^.]\{[nmhp]\}")
_NUMBER = re.compile(r"(?<![^.])\d+\.")
_PARAMETER = re.compile(r"(?<![^.])(weight|bias)$")
_LAYER = re.compile(r"^(.*?\.layers)\.(\d+)\.")  # in the names of our model


@dataclass(frozen=True)
class Rule:
    """What a tensor of a file becomes, or why the model has no use for it."""

    source: str  # a pattern of its name
    targets: tuple[str, ...]  # patterns of the names in the model; none if it is ignored
    reshape: Reshape = AS_IS  # how the values are moved
    why_not: Sentence = say("the model does not use it")  # a clause for the report, where it is ignored


_EITHER = re.compile(r"\{([^{}]*,[^{}]*)\}")


def spelled(source: str, targets: Sequence[str] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The lines that one with alternatives stands for: `{stack}`, and `{a,b}` with the targets' at the same place.

    What only a target has gives several of them. A ValueError if alternatives at one place differ in number.

    Example:
        >>> dict(spelled("attn.{query,key}", ["{q,k}_proj"]))
        {'attn.query': ('q_proj',), 'attn.key': ('k_proj',)}
    """
    if "{stack}" in source:
        for stack in ("encoder", "decoder"):
            yield from spelled(source.replace("{stack}", stack), [one.replace("{stack}", stack) for one in targets])
        return
    found = _EITHER.search(source)
    if found is None:
        yield source, tuple(name for one in targets for name, _ in spelled(one))
        return
    if {one[1].count(",") for one in map(_EITHER.search, targets) if one} - {found[1].count(",")}:
        raise ValueError("alternatives")
    for i in range(found[1].count(",") + 1):
        yield from spelled(_chosen(source, i), [_chosen(one, i) for one in targets])


def _chosen(name: str, i: int) -> str:
    return _EITHER.sub(lambda found: found[1].split(",")[i], name, count=1)


@dataclass(frozen=True)
class KeyTable:
    """How one kind of program names its tensors."""

    name: Sentence  # what it is called
    rules: tuple[Rule, ...]  # what becomes of them; the first that fits counts
    of_one_code: bool = False  # all models of it have these names: they leave no part open

    @cached_property
    def by_form(self) -> Mapping[str, Sequence[Rule]]:
        """The rules by the form of their tensor's name, "" for `block{n}`: files have many names, tables many rules."""
        found: dict[str, list[Rule]] = {}
        for rule in self.rules:
            found.setdefault("" if _GLUED.search(rule.source) else form(rule.source), []).append(rule)
        return found


@dataclass(frozen=True)
class Match:
    """What a table makes of the names of a file."""

    table: KeyTable  # the table
    prefix: str  # what the names of the model begin with in the file, and the table does not know
    taken: tuple[Rule, ...]  # what becomes of each tensor, with its names, in the order of the file
    ignored: Mapping[str, Sentence]  # name -> why it is not used
    left_over: tuple[str, ...]  # names that the table does not know

    @cached_property
    def sources(self) -> Mapping[str, Rule]:
        """For each tensor of the model, where it comes from."""
        return {target: one for one in self.taken for target in one.targets}

    @property
    def standing_in(self) -> dict[str, Sentence]:
        """The tensors of the model that replace a part missing in the file, and what they are."""
        return {one.targets[-1]: one.reshape.stands_in for one in self.taken if one.reshape.stands_in is not None}

    @cached_property
    def layers(self) -> dict[str, tuple[str, int]]:
        """What the names of each layer begin with in the file -> its stack, and how many sub-layers are known."""
        sources: dict[tuple[str, str], list[list[str]]] = {}
        attentions: dict[str, set[str]] = {}
        for one in self.taken:
            stack, _, rest = one.targets[0].partition(".layers.")
            if rest:
                number, part = rest.split(".")[:2]
                sources.setdefault((stack, number), []).append(one.source.split("."))
                attentions.setdefault(stack, set()).update({part} & {"self_attn", "cross_attn"})
        made = {}
        for (stack, number), names in sources.items():
            shared = [column[0] for column in takewhile(lambda parts: len(set(parts)) < 2, zip(*names, strict=False))]
            if number in shared:
                shared = shared[: len(shared) - shared[::-1].index(number)]
            made["".join(f"{part}." for part in shared)] = (stack, len(attentions[stack]) + 1)
        return {begin: of for begin, of in made.items() if begin}

    def layer_of(self, name: str) -> str:
        """What the names of a tensor's layer begin with; empty for one outside of layers."""
        return next((begin for begin in self.layers if name.startswith(begin)), "")

    def n_layers(self, stack: str) -> int:
        """How many layers a stack of the model has."""
        return len({m[2] for name in self.sources if (m := _LAYER.match(name)) and m[1] == f"{stack}.layers"})

    def leaving(self, sources: Collection[str]) -> "Match":
        """The match in which some tensors of the file are left over."""
        kept = tuple(one for one in self.taken if one.source not in sources)
        return replace(self, taken=kept, left_over=(*self.left_over, *sorted(sources)))

    def without(self, targets: Iterable[str], why: Sentence) -> "Match":
        """The match in which some tensors of the model are not taken, and what they came from is ignored."""
        gone = set(targets)
        kept = tuple(one for one in self.taken if not gone & set(one.targets))
        ignored = {one.source: why for one in self.taken if gone & set(one.targets)}
        return replace(self, taken=kept, ignored={**self.ignored, **ignored})


def match(table: KeyTable, names: Sequence[str], *, prefix: str = "", called: Mapping[str, str] = NO_NAMES) -> Match:
    """Match names with one table, without their `prefix`, if any; a name in `called` is matched as its value.

    A tensor without the prefix gives way to one with it.
    """
    taken: list[Rule] = []
    ignored: dict[str, Sentence] = {}
    left: list[str] = []
    for name in names:
        rule, targets = _found(table, called.get(name, name.removeprefix(prefix)))
        if rule is None:
            left.append(name)
        elif targets:
            taken.append(Rule(name, targets, rule.reshape))
        else:
            ignored[name] = rule.why_not
    inside = {target for one in taken if one.source.startswith(prefix) for target in one.targets}
    second = [one.source for one in taken if not one.source.startswith(prefix) and inside & set(one.targets)]
    return Match(table, prefix, tuple(taken), ignored, tuple(left)).leaving(second)


def best_match(table: KeyTable, names: Sequence[str]) -> Match:
    """The match behind the prefix that gives the most of a model."""
    prefix, _ = max(prefixes(table, names).items(), key=lambda one: len({*one[1].values()}))
    return match(table, names, prefix=prefix)


def check(found: Match, *, label: str) -> None:
    """Refuse a match in which two tensors become the same, or in which layers are not counted from 0 without gaps."""
    with within(label):
        holder: dict[str, Rule] = {}
        numbers: dict[str, set[int]] = {}
        for one in found.taken:
            for target in one.targets:
                if target in holder:
                    raise ClauseError(
                        "{first} and {second} would both become {target}; save the model without one of them",
                        first=shown(holder[target].source),
                        second=shown(one.source),
                        target=target,
                    )
                holder[target] = one
                if layer := _LAYER.match(target):
                    numbers.setdefault(layer[1], set()).add(int(layer[2]))
        for stack, there in numbers.items():
            gaps = sorted(set(range(max(there) + 1)) - there)
            if gaps:
                raise ClauseError(
                    "the layers of {stack} are numbered up to {last}, but layer {missing} is missing; save the whole "
                    "model",
                    stack=stack,
                    last=max(there),
                    missing=gaps[0],
                )


def shapes(found: Match, weights: Weights, facts: Facts) -> dict[str, tuple[int, ...]]:
    """The shape of each tensor of the model, before anything is read; refuses one that its reshape cannot take."""
    with within(weights.label):
        made: dict[str, tuple[int, ...]] = {}
        for one in found.taken:
            if not set(one.reshape.needs) <= set(facts):
                continue
            before = weights.tensors[one.source].shape
            try:
                made.update(zip(one.targets, shapes_of(one.reshape, before, facts), strict=True))
            except ValueError:
                raise ClauseError(
                    "tensor {tensor} has the shape {shape}, which does not allow this conversion: {reshape}",
                    tensor=shown(one.source),
                    shape=shown(list(before)),
                    reshape=one.reshape.said or say("used unchanged"),
                ) from None
    return made


def _found(table: KeyTable, name: str) -> tuple[Rule | None, tuple[str, ...]]:
    """The first rule that fits a name, and what it becomes by that."""
    for rule in (*table.by_form.get(form(name), ()), *table.by_form.get("", ())):
        if there := expression(rule.source).fullmatch(name):
            return rule, tuple(_filled(pattern, there.groupdict()) for pattern in rule.targets)
    return None, ()


@lru_cache(maxsize=2048)
def form(name: str) -> str:
    """A name or a pattern without its numbers, and without weight or bias."""
    return _PARAMETER.sub("{p}", _DIGITS.sub("{n}", name))


@lru_cache(maxsize=2048)
def expression(pattern: str) -> re.Pattern[str]:
    """What the names of a pattern match."""
    parts = _HOLE.split(pattern)
    return re.compile("".join(_HOLES[part] if i % 2 else re.escape(part) for i, part in enumerate(parts)))


def _filled(pattern: str, holes: Mapping[str, str]) -> str:
    return _HOLE.sub(lambda hole: holes[hole[1]] if hole[1] in holes else str(int(holes["m"]) - 1), pattern)


def _is_layers(table: KeyTable, name: str) -> bool:
    rules = (rule for rule in table.by_form.get(form(name), ()) if rule.targets and "{n}" in rule.source)
    return any(expression(rule.source).fullmatch(name) for rule in rules)


def prefixes(table: KeyTable, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Each beginning of a name, up to a dot -> what the rest of the names gives: target -> name; shortest first."""
    given: dict[str, dict[str, str]] = {"": {}}
    ends = (min(names, default=""), max(names, default=""))  # what both begin with, all do
    for name in names:
        parts = name.split(".")[:-1]
        for i in range(min(len(parts), MAX_PREFIX) + 1):
            prefix = "".join(f"{part}." for part in parts[:i])
            rest = name.removeprefix(prefix)
            _, targets = _found(table, rest)
            # There is no model below the number of one of several layers, unless it has numbered layers itself.
            alone = not _NUMBER.search(prefix) or all(one.startswith(prefix) for one in ends)
            if targets and (alone or _is_layers(table, rest)):
                given.setdefault(prefix, {}).update(dict.fromkeys(targets, name))
    return dict(sorted(given.items(), key=lambda one: one[0].count(".")))
