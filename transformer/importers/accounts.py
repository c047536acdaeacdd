"""Account for every tensor of a file and of the model, once it is known which becomes which."""

import re
from collections.abc import Iterable, Mapping, Sequence

from transformer.importers.keys import Match
from transformer.importers.report import Field, FileTensor, ImportReport, ModelTensor
from transformer.importers.weights import Weights
from words import Sentence

_LAYER = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.(.*)$")


def account(
    found: Match,
    weights: Weights,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    needed: Iterable[str],
    fields: Sequence[Field],
    notes: Sequence[Sentence] = (),
) -> ImportReport:
    """The report of a match; `shapes` are those of the model's tensors, as far as they are known.

    `needed` are names that the model must have; a `*` stands for each layer of the stack before it. What one layer
    has all layers of its stack must have, too.
    """
    sources = found.sources
    names = dict.fromkeys((*sources, *_in_every_layer(found, [*needed, *map(_starred, sources)])))
    return ImportReport(
        source=weights.label,
        recognised=found.table.name,
        file_tensors=tuple(_of_file(name, found, weights) for name in weights.tensors),
        model_tensors=tuple(
            ModelTensor(name, shapes.get(name), sources[name].sources if name in sources else ()) for name in names
        ),
        fields=tuple(fields),
        notes=(*weights.notes, *notes),
    )


def _of_file(name: str, found: Match, weights: Weights) -> FileTensor:
    info = weights.tensors[name]
    taken = [one for one in found.taken if name in one.sources]
    if taken:
        targets = tuple(target for one in taken for target in one.targets)
        return FileTensor(name, info.dtype, info.shape, "renamed", targets, taken[0].reshape.said)
    if name in found.ignored:
        return FileTensor(name, info.dtype, info.shape, "ignored", why=found.ignored[name])
    return FileTensor(name, info.dtype, info.shape, "unknown")


def _starred(name: str) -> str:
    return _LAYER.sub(r"\1.layers.*.\3", name)


def _in_every_layer(found: Match, names: Iterable[str]) -> Iterable[str]:
    for name in dict.fromkeys(names):
        if "*" not in name:
            yield name
            continue
        for n in range(found.n_layers(name.split(".", 1)[0])):
            yield name.replace("*", str(n), 1)
