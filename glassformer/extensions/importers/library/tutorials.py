"""Key table of the tensor names that tutorials teach, and matches of encoder-only and decoder-only models.

The Annotated Transformer (Rush et al., 2018 and 2022), models around PyTorch's own layers with the user's embeddings
and output, and articles that write the model out. `tutorials.toml` lists the names of each component.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from glassformer.extensions.importers.library import keys
from glassformer.extensions.importers.library.keys import KeyTable, Match, Rule
from transformer.i18n import say
from transformer.i18n.sentence import read_table

Names = Mapping[str, Sequence[str]]

_SAID = read_table(Path(__file__).with_suffix(".toml"))
LAYERS: Names = _SAID["layers"]
FINAL_NORMS: Names = {stack: [one.format(stack) for one in _SAID["final_norms"]] for stack in LAYERS}
ATTENTIONS: Names = _SAID["attentions"]
PROJECTIONS: Names = _SAID["projections"]
TABLES: Names = _SAID["tables"]
DEFAULTS: Sequence[Mapping[str, Any]] = _SAID["defaults"]
BY_HEAD = "/by_head"  # the order of the rows of maps in one: those of each head are together
JOINT = {
    "qkv_proj": {"/in_rows": keys.SPLIT_ROWS, BY_HEAD: keys.SPLIT_HEADS},
    "kv_proj": {"/in_rows": keys.SPLIT_ROWS_IN_TWO, BY_HEAD: keys.SPLIT_HEADS_IN_TWO},
}
ORDER = {"encoder": ("self_attn", "ffn"), "decoder": ("self_attn", "cross_attn", "ffn")}
POSITION_OF = {stack: f"{stack}.embedding.positions.table" for stack in LAYERS}
ALL_TABLES = frozenset((*TABLES, *POSITION_OF.values()))


def _places() -> Iterator[tuple[str, str, str]]:
    """Where layers stand: the stack, and what names begin with there and in our model."""
    for stack, layers in LAYERS.items():
        yield from ((stack, f"{place}.{{n}}.", f"{stack}.layers.{{n}}.") for place in layers)
    yield from (("encoder", place, "encoder.layers.0.") for place in _SAID["one_layer"])


def _attentions() -> Iterator[Rule]:
    for (_, place, layer), (ours, theirs) in product(_places(), ATTENTIONS.items()):
        to = f"{layer}{ours}"
        for name in theirs:
            for projection, called in PROJECTIONS.items():
                yield from (Rule(f"{place}{name}.{one}.{{p}}", (f"{to}.{projection}.{{p}}",)) for one in called)
            for part, kinds in JOINT.items():  # under names that only answers give
                both = tuple(f"{to}.{one}_proj.{{p}}" for one in part.removesuffix("_proj"))
                yield from (Rule(f"{place}{name}.{part}{how}.{{p}}", both, one) for how, one in kinds.items())
            for kind in ("weight", "bias"):  # of nn.MultiheadAttention
                three = tuple(f"{to}.{projection}.{kind}" for projection in ("q_proj", "k_proj", "v_proj"))
                yield Rule(f"{place}{name}.in_proj_{kind}", three, keys.SPLIT_ROWS)


def _feed_forwards() -> Iterator[Rule]:
    for (_, place, layer), inside in product(_places(), _SAID["feed_forwards"]):
        both = (f"{layer}ffn.up_proj.{{p}}", f"{layer}ffn.down_proj.{{p}}")
        for pair in (*_SAID["up_down"], *(_SAID["in_a_row"] if inside else ())):
            yield from (Rule(f"{place}{inside}{name}.{{p}}", (to,)) for name, to in zip(pair, both, strict=True))
        yield Rule(f"{place}{inside}gate_proj.{{p}}", (f"{layer}ffn.gate_proj.{{p}}",))
        if inside.count(".") == 1:  # one map instead of two
            yield Rule(f"{place}{inside}{{p}}", both, keys.ONE_MAP)


def _norms() -> Iterator[Rule]:
    counted = [(name, 1) for name in _SAID["norms"]] + [(name, 0) for name in _SAID["counted_from_0"]]
    for stack, place, layer in _places():
        for (name, first), (i, part) in product(counted, enumerate(ORDER[stack])):
            yield from _norm(f"{place}{name.format(i + first)}", f"{layer}{part}_residual.norm")
    for stack in LAYERS:  # under a name that only an answer gives
        yield from _norm(f"{stack}.embedding/norm", f"{stack}.embedding.norm")
    for stack, names in FINAL_NORMS.items():
        for name in names:
            yield from _norm(name, f"{stack}.final_norm")


def _norm(theirs: str, ours: str) -> Iterator[Rule]:
    for scale, shift in _SAID["scales"]:
        yield Rule(f"{theirs}.{scale}", (f"{ours}.weight",))
        if (scale, shift) != ("alpha", "bias"):  # "bias" is said already
            yield Rule(f"{theirs}.{shift}", (f"{ours}.bias",))


def _tables() -> Iterator[Rule]:
    for ours, names in TABLES.items():
        yield from (Rule(f"{name}.weight", (ours,)) for name in names)
    yield from (Rule(f"{name}.bias", ("output_bias",)) for name in TABLES["output_table"])


def _positions() -> Iterator[Rule]:
    both = tuple(POSITION_OF.values())
    for name, table in product(_SAID["positions"], _SAID["position_tables"]):
        of_one, of_both = keys.FLATTENED, keys.FLATTENED_FOR_BOTH
        if table == ".weight":
            of_one, of_both = keys.AS_IS, keys.FOR_BOTH
        yield Rule(name + table, both, of_both)
        for stack, before in _SAID["sides"].items():
            yield from (Rule(side + name + table, (POSITION_OF[stack],), of_one) for side in before)
    for stack, side in zip(LAYERS, ("src", "tgt"), strict=True):  # of The Annotated Transformer
        yield Rule(f"{side}_embed.1.pe", (POSITION_OF[stack],), keys.FLATTENED)


def _masks() -> Iterator[Rule]:
    why = say("it is a mask, rebuilt for each text")
    yield from (Rule(name, (), why_not=why) for name in ("src_mask", "tgt_mask", "mask"))


@cache
def tutorials() -> KeyTable:
    """All rules; thousands, so they are made when the first file is read."""
    return KeyTable(
        name=say("An encoder and a decoder whose tensors have names of PyTorch or of tutorials."),
        rules=(*_attentions(), *_feed_forwards(), *_norms(), *_tables(), *_positions(), *_masks()),
    )


ALONE = {
    "encoder": say("An encoder whose tensors have names of PyTorch or of tutorials."),
    "decoder": say("A decoder whose tensors have names of PyTorch or of tutorials."),
}


def alone(found: Match) -> Match:
    """The match of an encoder-only or decoder-only model, whose parts have other places than in two stacks.

    A decoder without an encoder has two norms in a layer, and its table is the only one; a table of positions is for
    one side. An encoder-only model's output is left over: it may be a head for classes, or the output of a decoder that
    was built from encoder layers.
    """
    stacks = [stack for stack in LAYERS if found.n_layers(stack)]
    if len(stacks) != 1:
        return found
    (stack,) = stacks
    two_norms = not any(".cross_attn." in name for name in found.sources)
    found = _with_final_norm(found, stack)
    outputs = {"output_table", "output_bias"} if stack == "encoder" else set()
    table = replace(found.table, name=ALONE[stack])
    if POSITION_OF[stack] in found.sources:  # a table of the other side's does not count as a second one
        outputs |= set(POSITION_OF.values()) - {POSITION_OF[stack]}
    found = found.leaving([one.source for one in found.taken if set(one.targets) <= outputs])
    one_table = "src_table" not in found.sources
    taken = tuple(_alone(one, stack, two_norms=two_norms, one_table=one_table) for one in found.taken)
    return replace(found, table=table, taken=taken)


def _with_final_norm(found: Match, stack: str) -> Match:
    """The match in which a norm beside the only stack's layers is its own: nn.TransformerEncoder's, in a decoder."""
    (other,) = {*LAYERS} - {stack}
    ours, theirs = f"{stack}.final_norm.", f"{other}.final_norm."
    beside = tuple(re.sub(r"layers\.(\d+\.)?$", "", begin) for begin in found.layers)
    its = [one.source for one in found.taken if one.targets[0].startswith(theirs)]
    if any(name.startswith(ours) for name in found.sources) or not all(name.startswith(beside) for name in its):
        return found.leaving(its)
    taken = (replace(one, targets=tuple(name.replace(theirs, ours) for name in one.targets)) for one in found.taken)
    return replace(found, taken=tuple(taken))


def _alone(one: Rule, stack: str, *, two_norms: bool, one_table: bool) -> Rule:
    if set(one.targets) & set(POSITION_OF.values()):
        return Rule(one.source, (POSITION_OF[stack],), keys.FLATTENED)
    (target, *rest) = one.targets
    if two_norms:
        target = target.replace("cross_attn_residual", "ffn_residual")
    if one_table and target == "tgt_table":
        target = "src_table"
    return Rule(one.source, (target, *rest), one.reshape)
