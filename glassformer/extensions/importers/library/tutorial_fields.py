"""Understanding of tutorial weights: config fields inferred or asked, substitutes for missing parts, refusals.

Sizes follow from shapes, shared tables from ties, biases from names. Heads, the place of the norms, the scale of the
embedding, the activation and the special ids are in no file, unless numbers were saved next to the weights: a wrong
guess would load without an error and write nonsense, so they are asked, the likeliest choice first.

The smallest models of articles leave parts out. One has a block of an encoder only; another an encoder of one layer
with one head, without norms and residual connections. A substitute for a missing part changes nothing, and the report
says so.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from torch import Tensor

from glassformer.extensions.importers.library import cards, keys, parts
from glassformer.extensions.importers.library.cards import NameCard
from glassformer.extensions.importers.library.kept_answers import NO_ANSWERS
from glassformer.extensions.importers.library.keys import Facts, Match, Rule, check, shapes
from glassformer.extensions.importers.library.parts import matched, unused
from glassformer.extensions.importers.library.renaming import account
from glassformer.extensions.importers.library.report import Field, ImportReport, ask, inferred
from glassformer.extensions.importers.library.training_settings import with_settings
from glassformer.extensions.importers.library.tutorials import DEFAULTS, ORDER, POSITION_OF, TABLES, alone
from glassformer.extensions.weight_files.weights import Weights
from transformer.errors import ClauseError, shown
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.config import MAX_PARAMETERS, MAX_POSITION_VALUES, MAX_VOCAB
from transformer.model.positions import sinusoidal_table

Shapes = Mapping[str, tuple[int, ...]]

PAIRS, ORDERS = "rotary_pairs", ("halves", "neighbours")
SINUSOID = 2e-3  # how far a stored table may be from the formula: float32 angles at position 5,000 are this coarse
EPS, EPS_OF_DEVIATION = 1e-5, 1e-6  # of torch's LayerNorm; of norms written by hand
EPS_OF_FLOAT = 2**-23  # of torch's RMSNorm, in float32
# The scale of a norm has a name: gamma goes with the biased deviation.
NORM_OF = {"weight": "layer", "gamma": "biased_deviation", "a_2": "deviation", "alpha": "deviation"}

BIASES = {"attention_bias": "q_proj.bias", "attention_output_bias": "out_proj.bias", "ffn_bias": "up_proj.bias",
          "norm_bias": "norm.bias", "output_bias": "output_bias"}  # fmt: skip
_FIRST = "encoder.layers.0.ffn.up_proj.weight"


@dataclass(frozen=True)
class Understanding:
    """What was understood of a file."""

    match: Match  # what becomes of its tensors
    report: ImportReport  # for people
    # The tensors of the model whose names were found, including those later recognised as others.
    known: frozenset[str]
    named: Match | None  # what the names alone say; None where a card says it
    facts: Facts  # numbers that its reshapes need
    said: Mapping[str, Field]  # what a card says of ids and of what is around a text


def understand(
    weights: Weights,
    answers: Mapping[str, Any] = NO_ANSWERS,
    settle: Callable[[Match], Match] = lambda found: found,
    own: NameCard | None = None,
) -> Understanding:
    """Match a file with the names of a card, or else of tutorials; reads only tables that decide something.

    The answers say which parts unknown names are, and `settle` which tables; `own` is the user's card. Refuses tensors
    with the same target, missing layers, and impossible shapes.
    """
    card, prefix = cards.recognised(weights, answers, own) or (None, "")
    found = settle(matched(weights, answers, (card.table, prefix) if card else None))
    found = named = found if card else alone(found)
    found = completed(found, weights, joined=answers.get("out_proj") != parts.NONE)
    if (pairs := answers.get(PAIRS, ORDERS[0])) not in ORDERS:
        raise ClauseError(
            "{field}: found {found}, expected one of {choices}",
            field=PAIRS,
            found=shown(pairs),
            choices=", ".join(ORDERS),
        )
    if pairs != ORDERS[0]:
        found = replace(found, taken=tuple(map(keys.with_pairs_apart, found.taken)))
    check(found, label=weights.label)
    _check_final(found, weights, answers)
    known = frozenset(found.sources)
    facts = cards.facts(card, found, weights, answers)
    sizes = shapes(found, weights, facts)
    _check_ranks(found, sizes, weights)
    found, shared = _shared(found, weights)
    if answers.get("tie_output") is True and "output_table" in found.sources:
        raise ClauseError(
            "tie_output: the output layer {name} is not the target's embedding table, so the answer is false",
            name=shown(found.sources["output_table"].source),
        )
    found, positions = _positions(found, weights, answers)
    sizes = {name: shape for name, shape in sizes.items() if name in found.sources}
    bare = bare_fields(found, weights, _asked(sizes))
    fields = [*_sizes(found, sizes), *shared, *positions, *_norms(found), *_biases(found), *_asked(sizes)]
    if card is None:
        fields += _heads(sizes, facts.get("n_heads", 0))
    fields = [*(one for one in fields if one.name not in bare), *bare.values()]
    rows = min((sizes[name][0] for name in ("src_table", "tgt_table") if name in sizes), default=MAX_VOCAB)
    usual = _defaults(found)
    fields, others = with_settings(fields, weights.settings, rows)
    fields, said = cards.merged(card, fields, found, weights, sizes, answers)
    fields = [_with_usual(one, *usual) for one in fields]
    needed = list(_needed(found, {one.name: one.value for one in fields}))
    notes = (*notes_of(found, weights, answers), *others)
    if card and card.of("otherwise"):
        notes = (*notes, card.record["otherwise"])
    report = account(found, weights, needed=needed, fields=fields, notes=notes)
    return Understanding(found, report, known, None if card else named, facts, said)


def _check_final(found: Match, weights: Weights, answers: Mapping[str, Any]) -> None:
    """Refuse a norm behind one stack of two, unless a tensor that is not known may be the other's."""
    ends = {stack: found.sources.get(f"{stack}.final_norm.weight") for stack in POSITION_OF if found.n_layers(stack)}
    norms = [one.source for one in ends.values() if one is not None]
    other = next((stack for stack, one in ends.items() if one is None), "")
    unknown = any(
        weights.tensors[name].shape == weights.tensors[norm].shape for name in unused(found) for norm in norms
    )
    if norms and other and (not unknown or answers.get(f"{other}_norm") == parts.NONE):
        raise ClauseError(
            "{norm} is a norm behind the last layer of one stack, and there is none behind that of the other; this "
            "program needs both or neither, so if your model has both, save it whole",
            norm=shown(norms[0]),
        )


def _check_ranks(found: Match, sizes: Shapes, weights: Weights) -> None:
    """Vectors are where vectors belong, and matrices elsewhere."""
    for name, shape in sizes.items():
        most_values = MAX_POSITION_VALUES if name in POSITION_OF.values() else MAX_PARAMETERS
        expected = 1 if name.endswith(("bias", "norm.weight")) else 2
        if len(shape) != expected or not all(0 < n <= MAX_VOCAB for n in shape) or math.prod(shape) > most_values:
            source = found.sources[name].source
            raise ClauseError(
                "tensor {tensor} has the shape {shape}; expected {expected} of length 1 to {most:,}, and at most "
                "{values:,} values in all",
                tensor=shown(source),
                shape=shown(list(weights.tensors[source].shape)),
                expected=say_n("{n} axis", "{n} axes", expected),
                most=MAX_VOCAB,
                values=most_values,
            )


def _shared(found: Match, weights: Weights) -> tuple[Match, list[Field]]:
    """Tables that are one: tied in the file, or there for both sides."""

    def holder(target: str) -> str:
        name = found.sources[target].source if target in found.sources else ""
        return weights.ties.get(name, name)

    source, target, output = holder("src_table"), holder("tgt_table"), holder("output_table")
    one = not target or target == source
    why = say("the file has two embedding tables")
    if one:
        why = say("the two tables are equal") if target else say("the file has one embedding table")
    fields = [inferred("shared_vocab", one, why)] if source else []
    if target and one:
        found = found.without(["tgt_table"], say("it is the source's table"))
    if not found.n_layers("decoder"):
        return found, fields
    if output and output == (target or source):
        fields.append(inferred("tie_output", True, say("The output layer shares its weights with the embeddings.")))
        return found.without(["output_table"], say("it is the embedding table")), fields
    if output:
        return found, [*fields, inferred("tie_output", False, say("the file has a separate output layer"))]
    why = say("No tensor's name suggests an output layer; perhaps the model uses its embedding table as one.")
    return found, [*fields, ask("tie_output", why, True, False)]


def _positions(found: Match, weights: Weights, answers: Mapping[str, Any]) -> tuple[Match, list[Field]]:
    """The tables of positions: the formula's, or learned."""
    there = [table for table in POSITION_OF.values() if table in found.sources]
    if not there:
        why = say("No tensor's name suggests a table of positions; perhaps a formula computes the positions.")
        unknown = say("Without a table of positions, the number of positions is unknown.")
        return found, [ask("positions", why, *formulas(found)), ask("max_len", unknown)]
    differences, lengths, moved = [], [], None
    for one in {found.sources[table] for table in there}:
        table = one.reshape.apply(weights.read(one.source), {})[0]
        lengths.append(len(table))
        differences.append(float((table - sinusoidal_table(*table.shape)).abs().max()))
        moved = _moved(table) if moved is None else moved
    rows = inferred("max_len", min(lengths), say("The table has this many rows."))
    difference = max(differences)
    if moved is not None and not all(one <= SINUSOID for one in differences):
        field = ask("positions", moved[0], *moved[1])
        formula = answers.get("positions") == "sinusoidal"
        return found.without(there, say("a formula computes it")) if formula else found, [field, rows]
    if not all(one <= SINUSOID for one in differences):  # NaN is not
        why = say("The table of positions differs from the sinusoids by up to {most:.2g}.", most=difference)
        return found, [inferred("positions", "learned", why), rows]
    why = say("The table of positions matches the sinusoids; the difference is at most {most:.1g}.", most=difference)
    found = found.without(there, say("a formula computes it"))
    return found, [inferred("positions", "sinusoidal", why), rows]


def formulas(found: Match) -> tuple[str, ...]:
    """The kinds of positions without a table; rotary ones where one stack has all attentions."""
    return ("sinusoidal", *(["none"] if all(map(found.n_layers, POSITION_OF)) else ["rotary", "none"]))


def _moved(table: Tensor) -> tuple[Sentence, tuple[str, ...]] | None:
    """What is said of a table that is the formula's but for its first rows, or moved by some; and the answers."""
    for first, start in product(range(3), range(min(3, len(table) - 1))):  # row `first` is the position `start`
        formula = sinusoidal_table(len(table) - first + start, table.size(1))[start:]
        if float((table[first:] - formula).abs().max()) <= SINUSOID:
            why = say(
                "From row {first} on, the table of positions is the sinusoids from p = {start} on; rows "
                "before that are something else, such as zeros for padding. The answer {learned} reads the "
                "table from row 0 on. If your code begins at another row, remove the rows before it and save "
                "the model again.",
                first=first,
                start=start,
                learned="learned",
            )
            return why, ("learned", *(["sinusoidal"] if start == 0 else []))
    return None


def _heads(sizes: Shapes, n_heads: int) -> Iterator[Field]:
    """What the shapes of the maps say once the number of heads is known: key-value heads, and a width of their own."""
    ends = ("q_proj.weight", "k_proj.weight")
    q, k = (next((one for name, one in sizes.items() if name.endswith(end)), (0, 0)) for end in ends)
    why = say("The shapes of the maps to queries and keys show it, with {n} heads.", n=n_heads)
    if n_heads and q[0] != k[0] and n_heads * k[0] % q[0] == 0:
        yield inferred("n_kv_heads", n_heads * k[0] // q[0], why)
    if n_heads and q[0] != q[1] and q[0] % n_heads == 0:
        yield inferred("d_head", q[0] // n_heads, why)


def _sizes(found: Match, sizes: Shapes) -> Iterator[Field]:
    for stack in POSITION_OF:
        why = say("The number of layers follows from the tensor names.")
        yield inferred(f"n_{stack}_layers", found.n_layers(stack), why)
    up = next((shape for name, shape in sizes.items() if name.endswith("up_proj.weight") and len(shape) == 2), None)
    if up is not None:
        why = say("It is a size of the first matrix of a feed-forward network.")
        yield from (inferred("d_model", up[1], why), inferred("d_ff", up[0], why))
    source = sizes.get("src_table") or sizes.get("tgt_table")
    target = sizes.get("tgt_table") or source
    for side, shape in (("src", source), ("tgt", target)):
        if shape:
            yield inferred(f"{side}_vocab_size", shape[0], say("The table has this many rows."))


def _norms(found: Match) -> Iterator[Field]:
    names = [name for name in found.sources if "norm." in name and name.endswith(".weight")]
    final = any("final_norm" in name for name in names)
    why = say("A norm follows the last layer.") if final else say("No norm follows the last layer.")
    yield inferred("final_norm", final, why)
    if any(name.endswith("ffn.gate_proj.weight") for name in found.sources):
        yield inferred("gated", True, say("A gate is among the tensors."))
    if any("embedding.norm." in name for name in names):
        yield inferred("embedding_norm", True, say("A norm follows the embeddings."))
    if not names:
        return
    said = {found.sources[name].source.rpartition(".")[2] for name in names}
    kinds = dict.fromkeys(NORM_OF.get(name, "layer") for name in sorted(said))
    if len(kinds) > 1:
        why = say(
            "The norms' scales are called {names}, so the norms are of different kinds. This program needs all "
            "norms to be of the same kind.",
            names=", ".join(sorted(said)),
        )
        yield ask("norm_kind", why, *kinds)
        yield ask("norm_eps", why, EPS, EPS_OF_DEVIATION)
    elif "weight" not in said:
        why = say(
            "The scale of the norms is called {names}, the usual name in norms that divide by the standard "
            "deviation plus epsilon.",
            names=", ".join(sorted(said)),
        )
        kind = next(iter(kinds))
        others = ("layer", "deviation") if kind == "biased_deviation" else ("biased_deviation",)
        yield inferred("norm_kind", kind, why, kind, *others)
        why = say("Norms of this kind usually use this value.")
        yield inferred("norm_eps", EPS_OF_DEVIATION, why, EPS_OF_DEVIATION, EPS, 1e-12)
    elif not any(name.endswith("norm.bias") for name in found.sources):
        why = say("The norms have no biases: PyTorch's RMSNorm never has any, and its LayerNorm may be without.")
        yield ask("norm_kind", why, "rms", "layer")
        yield ask("norm_eps", why, EPS, EPS_OF_DEVIATION, EPS_OF_FLOAT)
    else:
        yield inferred("norm_kind", "layer", say("The norms are named as in PyTorch's LayerNorm."))
        yield inferred("norm_eps", EPS, say("Norms of this kind usually use this value."))


def _biases(found: Match) -> Iterator[Field]:
    said = {True: say("The file has these biases."), False: say("The file does not have these biases.")}
    for field, end in BIASES.items():
        there = any(name.endswith(end) for name in found.sources)
        yield inferred(field, there, said[there])


def _asked(sizes: Shapes) -> Iterator[Field]:
    width = next((shape[1] for name, shape in sizes.items() if name.endswith("up_proj.weight")), 0)
    divisors = [n for n in range(1, width + 1) if width % n == 0]
    usual = max(width / 64, 8 if width >= 64 else 4)
    likely = sorted(divisors, key=lambda n: abs(math.log2(n / usual)))
    why = say(
        "The tensor shapes are the same for any number of heads, so the number of heads cannot be seen from them."
    )
    yield ask("n_heads", why, *likely)
    final = "encoder.final_norm.weight" in sizes or "decoder.final_norm.weight" in sizes
    places = ("pre", "post") if final else ("post", "pre")
    yield ask("norm", say("The position of the norms cannot be seen from the tensor names."), *places)
    why = say("The file does not record whether embeddings are multiplied by √d_model.")
    yield ask("scale_embedding", why, True, False)
    why = say(
        "This is assumed, because nearly all code divides q·k by √d_head. Some code does not divide q·k at all "
        "(factor 1), and some divides it by √d_model, with d_model = {width}.",
        width=width,
    )
    yield inferred("score_scale", None, why, *((None, 1.0, width**-0.5) if width else ()))
    why = say("An activation function has no parameters, so the file does not show which one it is.")
    yield ask("activation", why, "relu", "gelu", "gelu_tanh", "silu")
    for name in ("pad_id", "unk_id", "bos_id", "eos_id"):
        yield ask(name, say("This id can be found only in the tokenizer or in the training code."))


def _defaults(found: Match) -> tuple[Sentence | str, Mapping[str, Any]]:
    """The code that such names come from, and its defaults; none if no code is known by them."""
    names = [one.source for one in found.taken]
    for one in DEFAULTS:
        if all(any(name.endswith(end) for name in names) for end in one["names"]):
            return one["code"], one["values"] | (one["of_both"] if all(map(found.n_layers, POSITION_OF)) else {})
    return "", {}


def _with_usual(field: Field, code: Sentence | str, values: Mapping[str, Any]) -> Field:
    """The field with the default of the code that the file seems to come from, if it is asked and can have it."""
    usual = [one for one in field.choices if field.name in values and one.value == values[field.name]]
    if field.how != "asked" or not usual:
        return field
    why = joined(" ", [field.evidence, say("Usual: the default of {code}.", code=code)])
    choices = (*usual, *(one for one in field.choices if one not in usual))
    return replace(field, choices=choices, usual=(usual[0].value,), evidence=why)


def _needed(found: Match, fields: Mapping[str, Any]) -> Iterator[str]:
    """The names that any such model has; `*` is each layer."""
    stacks = [stack for stack in POSITION_OF if found.n_layers(stack)]
    for stack in stacks:
        attentions = ORDER[stack][:-1] if len(stacks) == 2 else ORDER[stack][:1]
        for attention in attentions:
            for projection in ("q_proj", "k_proj", "v_proj", "out_proj"):
                yield f"{stack}.layers.*.{attention}.{projection}.weight"
        for part in (*attentions, "ffn") if fields.get("norm_kind") != "none" else ():
            yield f"{stack}.layers.*.{part}_residual.norm.weight"
        yield from (f"{stack}.layers.*.ffn.{one}.weight" for one in ("up_proj", "down_proj"))
        for field, place in (("final_norm", "final_norm"), ("embedding_norm", "embedding.norm")):
            if fields.get(field):
                yield f"{stack}.{place}.weight"
        if fields.get("positions") == "learned":
            yield POSITION_OF[stack]
    yield "src_table"
    if fields.get("shared_vocab") is False:
        yield "tgt_table"
    if "decoder" in stacks and fields.get("tie_output") is False:
        yield "output_table"


def completed(found: Match, weights: Weights, *, joined: bool = True) -> Match:
    """The match with the missing parts of a bare model, where they change nothing: a map of joined heads, a table.

    The smallest models of articles have one head without an output matrix. A single block has no embeddings; its piece
    i then is the unit vector of dimension i, which shows what the block does with it.
    """
    there = found.sources
    added = []
    for name, one in there.items():
        output = name.replace("v_proj.weight", "out_proj.weight")
        if output == name or output in there or len(one.targets) > 1:
            continue
        layer = tuple(begin for begin in found.layers if one.source.startswith(begin)) or one.source.split(".")[0]
        shape = weights.tensors[one.source].shape[:1]  # of values; a matrix that combines them has so many columns
        beside = [name for name in unused(found) if name.startswith(layer)]
        if not (joined and any(weights.tensors[name].shape[1:] == shape for name in beside)):
            added.append(Rule(one.source, (output,), keys.WITH_NO_OUTPUT_MAP))
    tables = {"src_table", "tgt_table", *POSITION_OF.values()}
    no_table = not tables & there.keys() and not _unknown(found, weights, 2)
    if _FIRST in there and no_table and not found.n_layers("decoder"):
        added.append(Rule(there[_FIRST].source, ("src_table",), keys.UNIT_VECTORS))
    return replace(found, taken=(*found.taken, *added))


def _unknown(found: Match, weights: Weights, axes: int) -> bool:
    """Whether a tensor without a meaning is inside a layer, or has so many axes and the model's width."""
    width = weights.tensors[found.sources[_FIRST].source].shape[-1:] if _FIRST in found.sources else ()
    shapes = [weights.tensors[name].shape for name in unused(found)]
    return bool(parts.in_layers(found, unused(found))) or any(
        len(shape) == axes and shape[-1:] == width for shape in shapes
    )


def bare_fields(found: Match, weights: Weights, asked: Iterable[Field]) -> dict[str, Field]:
    """What a model says by what it does not have."""
    fields = list[Field]()
    how = {one.reshape for one in found.taken}
    if keys.WITH_NO_OUTPUT_MAP in how:
        why = say("This is assumed, because the file has no matrix that combines the outputs of several heads.")
        heads = next((one.choices for one in asked if one.name == "n_heads"), ())
        fields.append(Field("n_heads", "inferred", 1, why, tuple(sorted(heads, key=lambda one: one.value != 1))))
    if keys.ONE_MAP in how:
        why = say("The feed-forward network is a single matrix, so it has no activation function.")
        fields.append(inferred("activation", "none", why))
    if not _unknown(found, weights, 1) and not any(name.endswith("norm.weight") for name in found.sources):
        why = say("This model has no norms.")
        fields += [inferred("norm_kind", "none", why), inferred("norm", "post", why)]
        fields.append(inferred("norm_eps", 1e-5, why))
        why = say("The file does not record whether a sub-layer's output is added to its input.")
        fields.append(ask("residual", why, False, True))
    if keys.UNIT_VECTORS in how:
        why = say("The file has no embeddings, so the layers read unit vectors instead.")
        fields += [inferred("scale_embedding", False, why), inferred("positions", "none", why)]
    return {one.name: one for one in fields}


def stack_unsaid(found: Match, answers: Mapping[str, Any], *, whatever_named: bool = False) -> list[str]:
    """The names of layers read as an encoder's that do not say which stack they are of, nor does an answer."""
    if found.table.of_one_code:
        return []
    names = [one.source for one in found.taken if one.targets[0].startswith("encoder.layers.")]
    said = not whatever_named and any("enc" in name.lower() for name in names)
    return [] if said or answers.keys() & set(parts.STACKS) else names


def outputs_behind(found: Match, weights: Weights, *, named: bool = True) -> list[str]:
    """Left-over tensors of an output layer after encoder layers, which may well be a decoder's.

    It is a table or a vector over the vocabulary; if `named`, also what has a name that is usual for an output.
    """
    if found.n_layers("decoder") or _FIRST not in found.sources:
        return []
    inside = parts.in_layers(found, found.left_over)
    shapes = {name: weights.tensors[name].shape for name in found.left_over if name not in inside}
    width = weights.tensors[found.sources[_FIRST].source].shape[1]
    source = found.sources.get("src_table")
    taken = [weights.tensors[source.source].shape] if source else []
    tables = Counter(shape for shape in (*taken, *shapes.values()) if len(shape) == 2 and shape[1] == width)
    rows = {shape[0] for shape, n in tables.items() if n > 1 or shape in taken}
    outputs = {f"{found.prefix}{name}.weight" for name in TABLES["output_table"]} if named else set()
    over = {(n, width) for n in rows} | {(n,) for n in rows}
    return [name for name, shape in shapes.items() if tuple(shape) in over or name in outputs]


def notes_of(found: Match, weights: Weights, answers: Mapping[str, Any]) -> tuple[Sentence, ...]:
    """What was taken for granted of layers whose names do not say which stack they are of."""
    notes = list[Sentence]()
    if any(one.reshape is keys.UNIT_VECTORS for one in found.taken):
        notes.append(say("The file has no embeddings, so the unit vector of dimension i represents token i."))
    if stack_unsaid(found, answers) and not outputs_behind(found, weights):
        said = say(
            "The tensor names do not show whether the layers belong to an encoder or a decoder. They are read as "
            "encoder layers, in which every token sees all other tokens."
        )
        notes.append(said)
    return tuple(notes)
