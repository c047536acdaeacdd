"""Account for every tensor of a file and of the model, once it is known which becomes which.

Where a config says what there must be, none may be missing, none left over, and each has its shape. What is said
names tensors as the file does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from glassformer.extensions.importers.library.keys import Match, form
from glassformer.extensions.importers.library.renaming import ROLES
from glassformer.extensions.importers.library.report import Field, FileTensor, ImportReport, ModelTensor
from glassformer.extensions.weight_files.library.weights import Weights
from transformer.checkpoint.agreement import clauses
from transformer.errors import CheckpointError
from transformer.i18n import Sentence, joined, say

_LAYER = re.compile(r"^(encoder|decoder)\.layers\.(\d+)\.(.*)$")
Shapes = Mapping[str, tuple[int, ...]]
_HOLE = re.compile(r"\{([np])\}")
_LONGEST = 140  # characters of a name


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
    sources, absent = found.sources, found.standing_in
    names = dict.fromkeys(
        (*sources, *_in_every_layer(found, [*needed, *(_LAYER.sub(r"\1.layers.*.\3", name) for name in sources)]))
    )
    given = sources.keys() - absent.keys()
    return ImportReport(
        source=weights.label,
        recognised=found.table.name,
        file_tensors=tuple(_of_file(name, found, weights) for name in weights.tensors),
        model_tensors=tuple(
            ModelTensor(name, shapes.get(name), (sources[name].source,) if name in given else (), absent.get(name))
            for name in names
        ),
        fields=tuple(fields),
        notes=(*weights.notes, *notes),
    )


def _of_file(name: str, found: Match, weights: Weights) -> FileTensor:
    info = weights.tensors[name]
    taken = [one for one in found.taken if name == one.source]
    if taken:
        targets = tuple(target for one in taken for target in one.targets if target not in found.standing_in)
        return FileTensor(name, info.dtype, info.shape, "renamed", targets, taken[0].reshape.said)
    if name in found.ignored:
        return FileTensor(name, info.dtype, info.shape, "ignored", why=found.ignored[name])
    return FileTensor(name, info.dtype, info.shape, "unknown")


def _in_every_layer(found: Match, names: Iterable[str]) -> Iterable[str]:
    for name in dict.fromkeys(names):
        if "*" not in name:
            yield name
            continue
        for n in range(found.n_layers(name.split(".", 1)[0])):
            yield name.replace("*", str(n), 1)


def check_agreement(found: Match, weights: Weights, shapes: Shapes, expected: Shapes) -> None:
    """Refuse tensors other than those that a model of the file's config has; names the first five of each kind."""
    faults = list(_faults(found, shapes, expected))
    if faults:
        raise CheckpointError("{label}: {faults}.", label=weights.label, faults=joined("; ", faults))


def _faults(found: Match, shapes: Shapes, expected: Shapes) -> Iterator[Sentence]:
    sources = found.sources
    missing = [named(_theirs(found, name)) for name in expected if name not in sources]
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
    return clauses(missing=missing, unknown=surplus, wrong_shape=wrong)


# What two names of one kind have in common: all but the number of the layer, the end, the beginning.
_PARTS: tuple[Callable[[str], str], ...] = (
    form,
    lambda name: name.rsplit(".", 1)[0].rsplit(".", 1)[-1],
    lambda name: name.split(".", 1)[0],
)


def named(name: str) -> str:
    """The name of a tensor as a message has it, whole unless it is very long."""
    text = repr(name)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _theirs(found: Match, name: str) -> str:
    """What the file would call a tensor of the model; its name in the model if the table does not say.

    Of several names the likeliest is one that the file has in another layer, or in another stack, or at least with
    the beginning that others have.
    """
    sources = [one.source for one in found.taken]
    known = [{part(source) for source in sources} for part in _PARTS]
    rules = sorted(
        found.table.rules,
        key=lambda rule: [part(rule.source) not in there for part, there in zip(_PARTS, known, strict=True)],
    )
    for rule in rules:
        for target in rule.targets:
            parts = _HOLE.split(ROLES.get(target, target))
            holes = {"n": r"\d+", "p": "weight|bias"}
            text = "".join(f"(?P<{part}>{holes[part]})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
            if there := re.fullmatch(text, name):
                return rule.source.format(**there.groupdict())
    return name
