"""Tensors whose names no table knows: what they may be is asked, with their shapes.

    --set src_table=my.words.weight     the tensor that is the source's table of embeddings
    --set ignored=criterion.weight      tensors that the model does without

A name is never guessed from a shape alone: a table that is taken for another one of its size writes nonsense.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from transformer.errors import CheckpointError, shown
from transformer.importers.keys import Match, Taken
from transformer.importers.report import Choice, Field
from transformer.importers.reshapes import AS_IS, FLATTENED_FOR_BOTH
from transformer.importers.tutorial_fields import Understanding
from transformer.importers.tutorials import POSITION_OF
from transformer.importers.weights import Weights
from words import Sentence, joined, say, say_n

IGNORED, POSITIONS = "ignored", "positions"
TABLES = ("src_table", "tgt_table", "output_table")
NAMES = (*TABLES, IGNORED)  # questions that are no fields of config.json
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
}


def named(found: Match, answers: Mapping[str, Any], weights: Weights) -> Match:
    """The match with the names that the user gave; refuses one that the file has no tensor of."""
    for question in TABLES:
        if question in answers:
            name = _there(question, answers[question], weights)
            found = _taking(found, name, (question,))
            bias = f"{name.removesuffix('weight')}bias"
            if question == "output_table" and bias != name and bias in found.left_over:
                found = _taking(found, bias, ("output_bias",))
    if answers.get(POSITIONS) in weights.tensors:
        found = _taking(found, answers[POSITIONS], tuple(POSITION_OF.values()))
    return _ignoring(found, answers[IGNORED], weights) if IGNORED in answers else found


def used(answers: Mapping[str, Any], weights: Weights) -> set[str]:
    """Those of the answers that are names of tensors."""
    return {name for name in answers if name in NAMES or (name == POSITIONS and answers[name] in weights.tensors)}


def with_questions(
    fields: Sequence[Field], understood: Understanding, weights: Weights, answers: Mapping[str, Any]
) -> list[Field]:
    """The fields, with questions about the tensors that are left over in the place of those that they settle."""
    found, values = understood.match, {one.name: one.value for one in fields}
    asked = {one.name: one for one in _questions(understood, values, weights, answers) if one.choices}
    offered = {choice.value for one in asked.values() for choice in one.choices}
    rest = [name for name in found.left_over if name not in offered]
    if rest and not understood.report.missing:
        why = say("The purpose of these tensors is unknown. Name those that the model does not need: {tensors}.",
                  tensors=_listed(rest, weights))  # fmt: skip
        asked[IGNORED] = Field(IGNORED, "asked", None, why, _choices(rest))
    settled = {*asked, *(["tie_output"] if "output_table" in asked else [])}
    return [*(one for one in fields if one.name not in settled), *asked.values()]


def _questions(
    understood: Understanding, values: Mapping[str, Any], weights: Weights, answers: Mapping[str, Any]
) -> Iterator[Field]:
    found, known, width = understood.match, understood.known, values.get("d_model")
    shapes = {name: weights.tensors[name].shape for name in found.left_over}
    tables = [name for name, shape in shapes.items() if len(shape) == 2 and shape[1] == width]
    both = all(map(found.n_layers, POSITION_OF))
    embeddings = [found.sources[one].source for one in ("tgt_table", "src_table") if one in found.sources][:1]
    if "src_table" not in known:
        yield _question("src_table", tables, weights)
    if tables and both and "tgt_table" not in known:
        yield _question("tgt_table", [*tables, *embeddings], weights)
    if tables and found.n_layers("decoder") and "output_table" not in known and answers.get("tie_output") is not True:
        yield _question("output_table", [*tables, *embeddings], weights)
    if not known & {*POSITION_OF.values()} and POSITIONS not in answers:
        places = [name for name, shape in shapes.items() if _has_positions(shape, width)]
        if places:
            question = _question(POSITIONS, places, weights)
            yield replace(question, choices=(*question.choices, *_choices(["sinusoidal", "none"])))


def _question(question: str, names: Sequence[str], weights: Weights) -> Field:
    names = sorted(names, key=lambda name: _unlikely(name, question))
    why = joined(
        " ", [_WHY[question], say("Tensors with a matching shape: {tensors}.", tensors=_listed(names, weights))]
    )
    return Field(question, "asked", None, why, _choices(names))


def _unlikely(name: str, question: str) -> int:
    """-1 for a name that sounds like what is asked for, 1 for one that sounds like something else."""
    meant = {one for one, parts in _HINTS.items() if any(part in name.lower() for part in parts)}
    return -1 if question in meant else int(bool(meant))


def _there(question: str, name: Any, weights: Weights) -> str:
    if not isinstance(name, str) or name not in weights.tensors:
        names = list(weights.tensors)
        raise CheckpointError(
            "{label}: {field}: the file has no tensor named {found}; its tensors are {names}.",
            label=weights.label,
            field=question,
            found=shown(name),
            names=joined(", ", [*map(shown, names[:_MOST]), *["..."] * (len(names) > _MOST)]),
        )
    return name


def _taking(found: Match, name: str, targets: tuple[str, ...]) -> Match:
    """The match in which a tensor becomes others, whatever was thought of these before."""
    reshape = FLATTENED_FOR_BOTH if len(targets) > 1 else AS_IS
    kept = tuple(one for one in found.taken if not set(one.targets) & set(targets))
    again = {one.source for one in found.taken if one not in kept} - {name}
    left = (*(one for one in found.left_over if one != name), *sorted(again))
    return replace(found, taken=(*kept, Taken(name, targets, reshape)), left_over=left)


def _ignoring(found: Match, said: Any, weights: Weights) -> Match:
    patterns = said.split(",") if isinstance(said, str) else said
    if not isinstance(patterns, list | tuple) or not all(isinstance(one, str) for one in patterns):
        raise CheckpointError(
            "{label}: {field}: found {found}, expected names separated by commas.",
            label=weights.label,
            field=IGNORED,
            found=shown(said),
        )
    gone = dict.fromkeys(
        name for one in patterns for name in found.left_over if name == one.strip() or fnmatchcase(name, one.strip())
    )
    for one in patterns:
        if not any(name == one.strip() or fnmatchcase(name, one.strip()) for name in gone):
            raise CheckpointError(
                "{label}: {field}: {found} is not among the tensors whose purpose is unknown: {names}.",
                label=weights.label,
                field=IGNORED,
                found=shown(one),
                names=_listed(found.left_over, weights),
            )
    why = say("you said that the model does not need it")
    left = tuple(name for name in found.left_over if name not in gone)
    return replace(found, ignored={**found.ignored, **dict.fromkeys(gone, why)}, left_over=left)


def _has_positions(shape: Sequence[int], width: int | None) -> bool:
    flat = len(shape) == 3 and 1 in shape[:2]
    return (flat or len(shape) == 2) and shape[-1] == width


def _listed(names: Sequence[str], weights: Weights) -> Sentence:
    """Names with their shapes."""
    rest = len(names) - _MOST
    more = [say_n("{n} more", "{n} more", rest)] if rest > 0 else []
    return joined(", ", [*(f"{name} {list(weights.tensors[name].shape)}" for name in names[:_MOST]), *more])


def _choices(names: Iterable[str]) -> tuple[Choice, ...]:
    return tuple(Choice(name) for name in dict.fromkeys(names))
