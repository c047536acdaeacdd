"""Questions about tensors with unknown names, and the answers applied: named, ignored.

    --set src_table=my.words.weight     the tensor that is the source's table of embeddings
    --set ignored=criterion.weight      tensors that the model does without

A name is never guessed from a shape: the wrong table of the same size writes nonsense. A part is not missing while the
file has a candidate for it. A weight inside a layer is never offered as unused; users who know better can name it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from glassformer.extensions.importers.library import keys, parts
from glassformer.extensions.importers.library.cards import ANSWER
from glassformer.extensions.importers.library.keys import Match, Rule, match
from glassformer.extensions.importers.library.parts import PREFIX, WITHOUT, places, rivals, unused
from glassformer.extensions.importers.library.report import Field, ask
from glassformer.extensions.importers.library.tutorial_fields import (
    ORDERS,
    PAIRS,
    Understanding,
    formulas,
    outputs_behind,
    stack_unsaid,
)
from glassformer.extensions.importers.library.tutorials import LAYERS, POSITION_OF, TABLES
from glassformer.extensions.weight_files.weights import Weights
from transformer.checkpoint.consistency import first
from transformer.errors import ClauseError, shown
from transformer.i18n import Sentence, joined, say, say_n

IGNORED, POSITIONS, OUTPUT_BIAS = "ignored", "positions", "output_bias"
NAMES = (*TABLES, IGNORED, PREFIX, ANSWER, PAIRS, *parts.PARTS)  # questions that are not fields of config.json
_MOST = 12  # tensors that a question lists

_HINTS = {  # what names often have in them; the order of the choices is all that depends on it
    "src_table": ("src", "source", "enc"),
    "tgt_table": ("tgt", "trg", "target", "dec"),
    "output_table": ("out", "proj", "head", "fc", "gen", "logit", "linear"),
    POSITIONS: ("pos", "pe", "place"),
}
_WHY = {
    "src_table": say("No tensor's name suggests the source's embedding table."),
    "tgt_table": say(
        "No tensor's name suggests the target's embedding table; perhaps the source's table is used for both."
    ),
    "output_table": say(
        "No tensor's name suggests an output layer; perhaps the model uses its embedding table as one."
    ),
    POSITIONS: say("No tensor's name suggests a table of positions; perhaps a formula computes the positions."),
    OUTPUT_BIAS: say("No tensor's name suggests a bias of the output layer; perhaps it has none."),
}
_OUTPUT = say("an output layer")
_SOUNDS = (  # what is in the names of what a result depends on, outside the layers; the last one counts
    (r"emb|segment|token_?type|lang", say("an embedding")),
    (r"norm|(^|[._])ln([._\d]|$)|emb\w*ln", say("a norm")),
    (r"alibi|slope|rel\w*(pos|bias|att)", say("positions that are added to scores")),
    (r"inv_freq|rotary|rope|freqs|(cos|sin)_cached", say("rotary positions")),
)
_NORM = say("No tensor's name suggests a norm after the last layer; perhaps there is none.")
_EMBEDDING_NORM = say("No tensor's name suggests a norm behind the sum of the embeddings; perhaps there is none.")
_PAIRS = say(
    "Rotary positions turn pairs of dimensions. The file does not record which: dimension i and i + d_head / 2, as in "
    "`rotate_half` (halves), or 2i and 2i + 1, as in Meta’s Llama (neighbours). The base is 10000 "
    "unless you answer rotary."
)
_MODELS = say("The file has several models, behind different prefixes. Choose one.")
_SEVERAL = say("The names of several tensors suggest the same part of the model.")


def named(found: Match, answers: Mapping[str, Any], weights: Weights) -> Match:
    """The match with the names that the user gave; refuses one that the file has no tensor of."""
    both = tuple(POSITION_OF.values())
    for question in (*TABLES, POSITIONS, OUTPUT_BIAS):
        if question in used(answers, weights):
            name = _there(question, answers[question], weights)
            without = tuple(one for one in both if one not in found.sources) or both
            found = _taking(found, name, without if question == POSITIONS else (question,))
            bias = f"{name.removesuffix('weight')}bias"
            if question == "output_table" and bias != name and bias in found.left_over:
                found = _taking(found, bias, (OUTPUT_BIAS,))
    return _ignoring(found, answers[IGNORED], weights) if IGNORED in answers else found


def used(answers: Mapping[str, Any], weights: Weights) -> set[str]:
    """Those of the answers that are names of tensors."""
    of_both = {name for name in (POSITIONS, OUTPUT_BIAS) if answers.get(name) in weights.tensors}
    return of_both | (answers.keys() & set(NAMES))


def with_questions(
    fields: Sequence[Field], understood: Understanding, weights: Weights, answers: Mapping[str, Any]
) -> list[Field]:
    """The fields, with questions about the tensors that are left over in the place of those that they settle."""
    found, values = understood.match, {one.name: one.value for one in fields}
    models = [] if PREFIX in answers else rivals(found, list(weights.tensors))
    prefixes = (one or parts.NONE for one in (found.prefix, *models))
    several = {PREFIX: ask(PREFIX, _MODELS, *prefixes)} if models else {}
    missing = understood.report.missing
    inside = [*parts.questions(found, missing, unused(found), weights), *parts.stacks(found, answers)]
    outside = _questions(understood, values, weights, answers)
    asked = several or {one.name: one for one in (*_doubles(found, weights, answers), *inside, *outside) if one.choices}
    offered = {name for one in asked.values() for choice in one.choices for name in str(choice.value).split(",")}
    rest = [name for name in found.left_over if name not in offered and not offered & set(parts.paths(name, found))]
    if rest and not missing and not several and asked.keys().isdisjoint(parts.STACKS):
        asked[IGNORED] = _needless(rest, found, weights, answers.get(IGNORED, ()))
    settled = {*asked, *(["tie_output"] if "output_table" in asked else [])}
    if {"src_table", "tgt_table"} & asked.keys():
        settled |= {"shared_vocab", "tgt_vocab_size"}
    return [*(one for one in fields if one.name not in settled), *asked.values()]


def _needless(rest: Sequence[str], found: Match, weights: Weights, said: Any) -> Field:
    """Which tensors the model does not need, those already named first; those inside layers are not offered."""
    why = say("The purpose of these tensors is unknown. Name those that the model does not need: {tensors}.",
              tensors=_listed(rest, weights))  # fmt: skip
    copied = tuple(parts.templates(found, weights))
    within = {name for name in parts.in_layers(found, rest) if not name.startswith(copied)}
    if copied:
        why = joined(" ", [why, say("{names}: a layer without a number beside numbered ones. `nn.TransformerEncoder` "
                                    "copies the layer that it is given, and never uses that layer itself.",
                                    names=", ".join(copied))])  # fmt: skip
    if within:
        why = joined(" ", [why, say("Weights inside layers take part in what the model computes, so those are not "
                                    "offered. Type their names if you are sure.")])  # fmt: skip
    output = dict.fromkeys(outputs_behind(found, weights, named=False), _OUTPUT)
    sounds = {name: what for name in rest for sound, what in _SOUNDS if re.search(sound, name.lower())}
    used = {name: what for name, what in (output | sounds).items() if name in rest and name not in within}
    if used:
        named = joined(", ", [say("{title}: {text}", title=name, text=what) for name, what in used.items()])
        unread = say(
            "Some seem to take part in what the model computes. They cannot be read here, so they are not offered "
            "({named}).",
            named=named,
        )
        why = joined(" ", [why, unread])
    outside = [name for name in rest if name not in within and name not in used]
    groups = [next((f"{one}*" for one in copied if name.startswith(one)), name) for name in outside]
    before = said.split(",") if isinstance(said, str) else said
    return ask(IGNORED, why, *before, *groups)


def _doubles(found: Match, weights: Weights, answers: Mapping[str, Any]) -> Iterator[Field]:
    """Questions about tables, and layers as a whole, that a file has twice."""
    again = match(found.table, found.left_over, prefix=found.prefix)
    for question in TABLES:
        second = [one.source for one in again.taken if one.targets == (question,)]
        if second and question in found.sources and question not in answers:
            yield ask(question, _SEVERAL, found.sources[question].source, *second)
    sides = {POSITION_OF[stack] for stack in LAYERS if found.n_layers(stack)}
    second = [one.source for one in again.taken if sides & {*one.targets}]
    if second and POSITIONS not in answers:
        first = [found.sources[one].source for one in sides if one in found.sources]
        yield ask(POSITIONS, _SEVERAL, *(first or ["sinusoidal"]), *second)
    over, outputs = (outputs_behind(found, weights, named=one) for one in (False, True))
    names = stack_unsaid(found, answers, whatever_named=bool(over))
    if names and outputs:
        why = say(
            "Layers such as that of {name} are a decoder's where a causal mask hides later tokens, and an "
            "encoder's where there is none; names do not decide it. The file also has an output layer, "
            "{output}, so they may be a decoder's.",
            name=shown(names[0]),
            output=shown(outputs[0]),
        )
        yield ask("decoder_layers", why, *places(found, "encoder"), parts.NONE)
    for question, stack in parts.STACKS.items():
        second = [place for place in places(again, stack) if place]
        if second and question not in answers and found.n_layers(stack):
            yield ask(question, _SEVERAL, *places(found, stack), *second)


def _questions(
    understood: Understanding, values: Mapping[str, Any], weights: Weights, answers: Mapping[str, Any]
) -> Iterator[Field]:
    found, known, width = understood.match, understood.known, values.get("d_model")
    copied = tuple(parts.templates(found, weights))
    within = parts.in_layers(found, found.left_over)
    outside = [one for one in found.left_over if not (one in within or one.startswith(copied))]
    shapes = {name: weights.tensors[name].shape for name in outside}
    tables = [name for name, shape in shapes.items() if len(shape) == 2 and shape[1] == width]
    both = all(map(found.n_layers, POSITION_OF))
    taken = {one: found.sources[one].source for one in TABLES if one in found.sources}
    embeddings = [taken[one] for one in ("tgt_table", "src_table") if one in taken][:1]
    output = weights.ties.get(taken.get("output_table", ""), taken.get("output_table", ""))
    own = bool(output) and output != weights.ties.get(taken.get("src_table", ""), taken.get("src_table", ""))
    if "src_table" not in known:
        yield _question("src_table", [*_embeddings(tables, weights), *taken.values()], weights)
    if (tables or own) and both and "tgt_table" not in known and answers.get("shared_vocab") is not True:
        yield _question("tgt_table", [*_embeddings(tables, weights), *embeddings, *taken.values()], weights)
    if tables and found.n_layers("decoder") and "output_table" not in known and answers.get("tie_output") is not True:
        yield _question("output_table", [*tables, *embeddings], weights)
    sides = {POSITION_OF[stack] for stack in LAYERS if found.n_layers(stack)}
    if not sides <= known and POSITIONS not in answers:
        wide = {name: shape[:-1] for name, shape in shapes.items() if shape[-1:] == (width,)}
        places = [name for name, rows in wide.items() if len(rows) == 1 or (len(rows) == 2 and 1 in rows)]
        if places:
            yield _question(POSITIONS, _embeddings(places, weights), weights, *formulas(found))
    if answers.get(POSITIONS) == "rotary" and PAIRS not in answers:
        yield ask(PAIRS, _PAIRS, *ORDERS)
    biases = [name for name, shape in shapes.items() if tuple(shape) == (values.get("tgt_vocab_size"),)]
    if biases and found.n_layers("decoder") and OUTPUT_BIAS not in found.sources and OUTPUT_BIAS not in answers:
        yield _question(OUTPUT_BIAS, biases, weights, False)
    modules = Counter(parts.paths(name, found)[0] for name in shapes)
    norms = [parts.paths(name, found)[0] for name, shape in shapes.items() if tuple(shape) == (width,)]
    norms = [module for module in norms if module and modules[module] <= 2]
    behind = [module for module in norms if "emb" not in module.lower()]
    open_ = False
    for name, stack in (parts.FINAL | parts.EMBEDDING).items():
        ours, why, names = ("final_norm", _NORM, behind)
        if name in parts.EMBEDDING:  # asked once those behind the last layers are known
            ours, why, names = "embedding.norm", _EMBEDDING_NORM, [] if open_ else norms
        if names and found.n_layers(stack) and f"{stack}.{ours}.weight" not in found.sources and name not in answers:
            open_ = open_ or name in parts.FINAL
            yield ask(name, why, *names, parts.NONE)


def _embeddings(names: Sequence[str], weights: Weights) -> list[str]:
    """Those of some names that have no bias beside them, as an output layer may have; all if each has one."""
    return [one for one in names if f"{one.removesuffix('weight')}bias" not in weights.tensors] or [*names]


def _question(question: str, names: Iterable[str], weights: Weights, *others: Any) -> Field:
    names = sorted(dict.fromkeys(names), key=lambda name: _unlikely(name, question))
    there = say("Tensors with a matching shape: {tensors}.", tensors=_listed(names, weights))
    return ask(question, joined(" ", [_WHY[question], there]), *names, *others)


def _unlikely(name: str, question: str) -> int:
    """-1 for a name that sounds like what is asked for, 1 for one that sounds like something else."""
    meant = {one for one, sounds in _HINTS.items() if any(part in name.lower() for part in sounds)}
    return -1 if question in meant else int(bool(meant))


def _there(question: str, name: Any, weights: Weights) -> str:
    if not isinstance(name, str) or name not in weights.tensors:
        raise ClauseError(
            "{field}: the file has no tensor named {found}; its tensors are {names}",
            field=question,
            found=shown(name),
            names=first([shown(one) for one in weights.tensors]),
        )
    return name


def _taking(found: Match, name: str, targets: tuple[str, ...]) -> Match:
    """The match in which a tensor becomes others, whatever was thought of these before."""
    reshape = keys.FLATTENED if targets[0] in POSITION_OF.values() else keys.AS_IS
    reshape = keys.FLATTENED_FOR_BOTH if len(targets) > 1 else reshape
    kept = tuple(one for one in found.taken if not set(one.targets) & set(targets))
    again = {one.source for one in found.taken if one not in kept} - {name}
    left = (*(one for one in found.left_over if one != name), *sorted(again))
    return replace(found, taken=(*kept, Rule(name, targets, reshape)), left_over=left)


def _ignoring(found: Match, said: Any, weights: Weights) -> Match:
    """The match without some tensors: of those that are left over, or else of those whose names are known."""
    patterns = said.split(",") if isinstance(said, str) else said
    if not isinstance(patterns, list | tuple) or not all(isinstance(one, str) for one in patterns):
        raise ClauseError(
            "{field}: found {found}, expected names separated by commas", field=IGNORED, found=shown(said)
        )
    known = [one.source for one in found.taken]
    gone = dict[str, Sentence]()
    for pattern in map(str.strip, patterns):
        meant = [
            [name for name in names if name == pattern or fnmatchcase(name, pattern)]
            for names in (found.left_over, known, found.ignored)
        ]
        if not any(meant):
            raise ClauseError(
                "{field}: {found} is not among the tensors whose purpose is unknown: {names}",
                field=IGNORED,
                found=shown(pattern),
                names=_listed(found.left_over, weights),
            )
        gone |= dict.fromkeys(meant[0] or meant[1], WITHOUT)  # or they are ignored already
    left = tuple(name for name in found.left_over if name not in gone)
    taken = tuple(one for one in found.taken if one.source not in gone)
    return replace(found, taken=taken, ignored={**found.ignored, **gone}, left_over=left)


def _listed(names: Sequence[str], weights: Weights) -> Sentence:
    """Names with their shapes."""
    rest = len(names) - _MOST
    more = [say_n("{n} more", "{n} more", rest)] if rest > 0 else []
    return joined(", ", [*(f"{name} {list(weights.tensors[name].shape)}" for name in names[:_MOST]), *more])
