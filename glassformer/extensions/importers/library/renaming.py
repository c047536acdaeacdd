"""Renaming of a file's tensors: rules, tied tables and stored sinusoids settled, a report on every tensor.

A file may have the table of embeddings once, or again for each stack and for the output. Its rules name these tables by
role; which of them the model needs is decided with the file. It may also hold tables of positions that a formula gives:
models trained in 16 bits hold them rounded, and their own program uses the rounded ones.

Where a config lists the tensors, none may be missing or left over, and each has its shape. Messages use the file's
names.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import torch
from torch import Tensor

from glassformer.extensions.importers.library import config_settings, keys
from glassformer.extensions.importers.library.config_settings import Fields, Known, Present, Settings, inferred
from glassformer.extensions.importers.library.keys import KeyTable, Match, Reshape, Rule, form, spelled
from glassformer.extensions.importers.library.report import Content, Field, FileTensor, Imported, ImportReport, Stored
from glassformer.extensions.weight_files.weights import Weights
from transformer.checkpoint.consistency import clauses, expected_shapes
from transformer.errors import CheckpointError, ClauseError, shown, within
from transformer.i18n import Sentence, joined, say
from transformer.model.attention_features import SinusoidLayout
from transformer.model.positions import table_of

# The roles of a table.
INPUT, SOURCE, TARGET, OUTPUT = "?input", "?source", "?target", "?output"
BIAS, OUTPUT_BIAS = "?bias", "?output_bias"  # a bias of the logits that is stored alone, or beside the output's table
ROLES = {INPUT: "src_table", SOURCE: "src_table", TARGET: "tgt_table", OUTPUT: "output_table", BIAS: "output_bias"}

MASK = say("it is a mask, rebuilt for each text")
FORMULA = say("a formula computes it")
CLASSES = say("it is a head for another task")

ONE_ROW = Reshape(lambda tensor, _: (tensor.flatten(),), say("flattened into one row"))
TABLES = ("encoder.embedding.positions.table", "decoder.embedding.positions.table")
CLOSE, COARSE = 1e-5, 2**-23  # angles in float32 are this coarse for each position


Becomes = str | tuple[Reshape, str] | Sentence
"""What a tensor of a file becomes: one of the model, one with its values moved, or why it is ignored."""


def renamed(names: Mapping[str, Becomes], *, prefixes: Iterable[str] = ("",)) -> Iterator[Rule]:
    """Rules for names, which may have alternatives, with each of the prefixes that files have or have not."""
    for prefix, (theirs, said) in product(prefixes, names.items()):
        if isinstance(said, Sentence):
            yield from (Rule(prefix + source, (), why_not=said) for source, _ in spelled(theirs))
            continue
        reshape, ours = said if isinstance(said, tuple) else (keys.AS_IS, said)
        yield from (Rule(prefix + source, targets, reshape) for source, targets in spelled(theirs, [ours]))


def key_table(
    name: Sentence, names: Mapping[str, Becomes], *, prefixes: Iterable[str], head: Mapping[str, Becomes]
) -> KeyTable:
    """The table of a model's names behind one of the prefixes, and of its head's, which have none."""
    return KeyTable(name, (*renamed(names, prefixes=prefixes), *renamed(head)))


def in_layers(theirs: str, ours: str, names: Mapping[str, str]) -> dict[str, str]:
    """Names in the layers of a file and of the model, from those of the modules in one."""
    return {f"{theirs}.{{n}}.{one}.{{p}}": f"{ours}.layers.{{n}}.{other}.{{p}}" for one, other in names.items()}


FAIRSEQ = {  # and its followers
    "{encoder,decoder}.embed_tokens.weight": "?{source,target}",
    "{stack}.layer_norm.{p}": "{stack}.final_norm.{p}",
    "{stack}.layernorm_embedding.{p}": "{stack}.embedding.norm.{p}",
    **in_layers("{stack}.layers", "{stack}", {
        "{self,encoder}_attn.{q,k,v,out}_proj": "{self,cross}_attn.{q,k,v,out}_proj",
        "{self_attn,encoder_attn,final}_layer_norm": "{self_attn,cross_attn,ffn}_residual.norm",
        "fc{1,2}": "ffn.{up,down}_proj",
    }),
}  # fmt: skip


def settled(
    table: KeyTable, weights: Weights, settings: Settings, fields: Callable[[Present], Fields], *, tied: bool
) -> tuple[Match, Fields]:
    """What becomes of the tensors of a file with a config, and the fields of ours; `tied` is as for `settle_tables`."""
    found = keys.match(table, list(weights.tensors))
    said = fields(frozenset(found.sources))
    head = said.get("mlm_head")
    with within(weights.label):
        has_output = head is None or bool(head.value)
        found, tables = settle_tables(found, weights, settings, tied=tied, has_output=has_output)
    if head is not None:
        tables["output_bias"] = head  # no model with such a head is without
    found, sinusoids = settle_sinusoids(found, weights, said)
    keys.check(found, label=weights.label)
    return found, {
        **said,
        **tables,
        **sinusoids,
        "normalisation": config_settings.fixed(()),
        "max_len": config_settings.at_most(said["max_len"]),
    }


def imported(
    found: Match,
    weights: Weights,
    said: Fields,
    stored: Stored | None,
    *,
    label: str,
    kind: str,
    notes: Sequence[Sentence],
    asked: Sequence[Field] = (),
) -> Imported:
    """The model of a file with a config, none while something is asked; refuses other tensors than such a model has."""
    config, facts = config_settings.config_of(said, label=label), {"n_heads": said["n_heads"].value}
    shapes, expected = keys.shapes(found, weights, facts), expected_shapes(config)
    check_agreement(found, weights, shapes, expected)
    open_ = {one.name for one in asked}
    fields = [*(one for one in config_settings.reported(said) if one.name not in open_), *asked]
    report = account(found, weights, needed=list(expected), fields=fields, notes=notes)
    card = {"title": label, "description": f"A {kind} model."}
    content = None if asked or stored is None else Content(config, stored, card, found, facts, weights.again)
    return Imported(replace(report, source=label), content)


def settle_tables(
    found: Match, weights: Weights, settings: Settings, *, tied: bool, has_output: bool
) -> tuple[Match, Fields]:
    """Decide which tables the model has: one for both sides or two, and one more for the output or not.

    The match has roles among its targets. The config's `tie_word_embeddings`, or else `tied`, decides where the file
    has one table only. A missing table is refused, and a copy with other values.
    """
    names = {target: one.source for target, one in found.sources.items() if target.startswith("?")}
    tie = settings.flag("tie_word_embeddings", tied)
    one_output = has_output and OUTPUT in names
    if one_output and tie.value and not names.keys() & {INPUT, SOURCE, TARGET}:
        names[INPUT], one_output = names.pop(OUTPUT), False  # kept under the name of the output
    becomes, shared = _sides(names, weights, found)
    fields = {"shared_vocab": shared}
    if has_output:
        table = names.get(TARGET, names.get(INPUT, names.get(SOURCE, "")))
        own = one_output and not equal(names[OUTPUT], table, weights)
        if one_output:
            becomes[OUTPUT] = "output_table" if own else _copy_of("output_table")
        elif not tie.value:
            raise ClauseError(
                "has no output layer ({names}), but tie_word_embeddings is false in config.json; save the whole model",
                names=_sought(found, OUTPUT),
            )
        why = say("the file has a separate output layer") if own else say("the file has no separate output layer")
        biases = [name for name in ((OUTPUT_BIAS, BIAS) if own else (BIAS, OUTPUT_BIAS)) if name in names]
        becomes |= dict(zip(biases, ("output_bias", _copy_of("output_bias")), strict=False))
        of_bias = say("the file has an output bias") if biases else say("the file has no output bias")
        fields |= {"tie_output": inferred(not own, why), "output_bias": inferred(bool(biases), of_bias)}
    taken, ignored, role_of = list[Rule](), dict(found.ignored), {name: role for role, name in names.items()}
    for one in found.taken:
        new = becomes.get(role_of[one.source], CLASSES) if one.source in role_of else one.targets
        if isinstance(new, Sentence):
            ignored[one.source] = new
        else:
            taken.append(replace(one, targets=(new,) if isinstance(new, str) else new))
    return replace(found, taken=tuple(taken), ignored=ignored), fields


def _sides(names: Mapping[str, str], weights: Weights, found: Match) -> tuple[dict[str, str], Known]:
    """What becomes of the tables of both sides, by role: a tensor of the model or why it is none; whether it is one."""
    one_table = inferred(True, say("the file has one embedding table"))
    if INPUT in names:
        copies = [role for role in (SOURCE, TARGET) if role in names]
        for role in copies:
            if not equal(names[role], names[INPUT], weights):
                raise ClauseError(
                    "{copy} should be a copy of {table} but differs from it; save the model again",
                    copy=shown(names[role]),
                    table=shown(names[INPUT]),
                )
        return {INPUT: "src_table", **dict.fromkeys(copies, _copy_of("src_table"))}, one_table
    if SOURCE in names and TARGET in names:
        if equal(names[TARGET], names[SOURCE], weights):
            shared = inferred(True, say("the two tables are equal"))
            return {SOURCE: "src_table", TARGET: _copy_of("src_table")}, shared
        return {SOURCE: "src_table", TARGET: "tgt_table"}, inferred(False, say("the file has two embedding tables"))
    only = next((role for role in (SOURCE, TARGET) if role in names), None)
    if only is None:
        raise ClauseError("has no embedding table ({names}); save the whole model", names=_sought(found, INPUT))
    return {only: "src_table"}, one_table


def _copy_of(name: str) -> Sentence:
    return say("it is a copy of {name}", name=name)


def _sought(found: Match, role: str) -> str:
    """The names that a table of this role may have."""
    return joined(", ", [shown(rule.source) for rule in found.table.rules if rule.targets == (role,)])


def equal(name: str, other: str, weights: Weights) -> bool:
    """Whether two tensors of a file are one, or have the same values."""
    if weights.ties.get(name, name) == weights.ties.get(other, other):
        return True
    if weights.tensors[name].shape != weights.tensors[other].shape:
        return False
    return torch.equal(weights.read(name), weights.read(other))


def settle_sinusoids(found: Match, weights: Weights, said: Fields) -> tuple[Match, Fields]:
    """Leave stored sinusoids out if they are those of the formula, or use them as they are."""
    there = [name for name in TABLES if name in found.sources]
    if said["positions"].value != "sinusoidal" or not there:
        return found, {}
    taken, shapes = [found.sources[name] for name in there], keys.shapes(found, weights, {})
    stored = [one.reshape.apply(weights.read(one.source), {})[0] for one in taken]
    fits = all(shapes[name][1:] == (said["d_model"].value,) for name in there)
    layout = said["sinusoid_layout"].value
    apart = torch.tensor([_apart(table, layout) for table in stored] if fits else [torch.inf])
    if not apart.any():
        return found.without(there, FORMULA), {}
    why = say(
        "the sinusoids in the file differ from the formula by up to {most:.1g}; the file's values are used",
        most=float(apart.max()),
    )
    return found, {"positions": inferred("learned", why), "sinusoid_layout": inferred("interleaved", why)}


def _apart(table: Tensor, layout: SinusoidLayout) -> float:
    """By how much a table differs from the formula's; 0 where rounding explains it, NaN where it holds one."""
    if table.dim() != 2:
        return torch.inf
    differences = (table - table_of(layout, *table.shape)).abs().amax(dim=1)  # [position]
    allowed = CLOSE + COARSE * torch.arange(len(table))
    return 0.0 if (differences <= allowed).all() else float(differences.max())


_LAYER = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.(.*)$")
Shapes = Mapping[str, tuple[int, ...]]
_HOLE = re.compile(r"\{([np])\}")
_LONGEST = 140  # characters of a name


def account(
    found: Match, weights: Weights, *, needed: Iterable[str], fields: Sequence[Field], notes: Sequence[Sentence] = ()
) -> ImportReport:
    """The report of a match.

    `needed` are names that the model must have; a `*` means each layer of the stack before it. What one layer has all
    layers of its stack must have, too.
    """
    names = [*needed, *(_LAYER.sub(r"\1.layers.*.\3", name) for name in found.sources)]
    layers = {stack: range(found.n_layers(stack)) for stack in ("encoder", "decoder")}
    every = (name.replace("*", str(n), 1) for name in names for n in layers.get(name.split(".layers.*")[0], (0,)))
    return ImportReport(
        source=weights.label,
        recognised=found.table.name,
        file_tensors=tuple(_of_file(name, found, weights) for name in weights.tensors),
        missing=tuple(name for name in dict.fromkeys(every) if name not in found.sources),
        filled=found.standing_in,
        fields=tuple(fields),
        notes=(*weights.notes, *notes),
    )


def _of_file(name: str, found: Match, weights: Weights) -> FileTensor:
    info = weights.tensors[name]
    taken = [one for one in found.taken if name == one.source]
    if taken:
        targets = tuple(target for one in taken for target in one.targets if target not in found.standing_in)
        return FileTensor(name, info.dtype, info.shape, "renamed", targets, taken[0].reshape.said)
    why = found.ignored.get(name)
    return FileTensor(name, info.dtype, info.shape, "unknown" if why is None else "ignored", how=why)


def check_agreement(found: Match, weights: Weights, shapes: Shapes, expected: Shapes) -> None:
    """Refuse tensors other than those that a model of the file's config has; names the first five of each kind."""
    sources = found.sources
    missing = list(map(named, _theirs(found, [name for name in expected if name not in sources])))
    surplus = [named(sources[name].source) for name in sources if name not in expected]
    surplus += map(named, found.left_over)
    wrong = [
        say(
            "{name} (found {found}, expected {expected})",
            name=named(sources[name].source),
            found=list(shapes[name]),
            expected=list(shape),
        )
        for name, shape in expected.items()
        if name in shapes and shapes[name] != shape
    ]
    if faults := list(clauses(missing=missing, unknown=surplus, wrong_shape=wrong)):
        raise CheckpointError("{label}: {faults}.", label=weights.label, faults=joined("; ", faults))


# What names of one kind share: all but the number of the layer, the end, the beginning.
_PARTS: tuple[Callable[[str], str], ...] = (
    form,
    lambda name: name.rsplit(".", 1)[0].rsplit(".", 1)[-1],
    lambda name: name.split(".", 1)[0],
)


def named(name: str) -> str:
    """The name of a tensor as a message has it, whole unless it is very long."""
    text = repr(name)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _theirs(found: Match, names: Collection[str]) -> Iterator[str]:
    """The file's names of tensors of the model; the names in the model where the table has none.

    Of several names the likeliest is in another layer of the file, in another stack, or has the usual prefix.
    """
    if not names:
        return
    sources = [one.source for one in found.taken]
    known = [{part(source) for source in sources} for part in _PARTS]
    rules = sorted(  # once for all names: tables have thousands of rules
        found.table.rules,
        key=lambda rule: [part(rule.source) not in there for part, there in zip(_PARTS, known, strict=True)],
    )
    yield from (_by_rules(rules, name) for name in names)


def _by_rules(rules: Sequence[Rule], name: str) -> str:
    """What the first rule that gives a tensor of the model calls it in the file; its own name if none does."""
    for rule in rules:
        for target in rule.targets:
            parts = _HOLE.split(ROLES.get(target, target))
            holes = {"n": r"\d+", "p": "weight|bias"}
            text = "".join(f"(?P<{part}>{holes[part]})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
            if there := re.fullmatch(text, name):
                return rule.source.format(**there.groupdict(), m=int(there.groupdict().get("n", 0)) + 1)
    return name
