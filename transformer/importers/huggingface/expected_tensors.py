"""Whether a file has the tensors that its config calls for: none missing, none left over, each of its shape.

What is said names tensors as the file does.
"""

import re
from collections.abc import Callable, Iterator, Mapping

from transformer.checkpoint.agreement import clauses
from transformer.errors import CheckpointError
from transformer.importers.huggingface.renaming import ROLES
from transformer.importers.keys import Match, form
from transformer.importers.weights import Weights
from words import Sentence, joined, say

Shapes = Mapping[str, tuple[int, ...]]
_HOLE = re.compile(r"\{([np])\}")
_LONGEST = 140  # characters of a name


def check_agreement(found: Match, weights: Weights, shapes: Shapes, expected: Shapes) -> None:
    """Refuse tensors other than those that a model of the file's config has; names the first five of each kind."""
    faults = list(_faults(found, shapes, expected))
    if faults:
        raise CheckpointError("{label}: {faults}.", label=weights.label, faults=joined("; ", faults))


def _faults(found: Match, shapes: Shapes, expected: Shapes) -> Iterator[Sentence]:
    sources = found.sources
    missing = [named(_theirs(found, name)) for name in expected if name not in sources]
    surplus = [named(sources[name].sources[0]) for name in sources if name not in expected]
    surplus += map(named, found.left_over)
    wrong = [
        say(
            "{name} (found {found}, expected {expected})",
            name=named(sources[name].sources[0]),
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
    sources = [source for one in found.taken for source in one.sources]
    known = [{part(source) for source in sources} for part in _PARTS]
    rules = sorted(
        found.table.rules,
        key=lambda rule: [part(rule.sources[0]) not in there for part, there in zip(_PARTS, known, strict=True)],
    )
    for rule in rules:
        for target in rule.targets:
            parts = _HOLE.split(ROLES.get(target, target))
            holes = {"n": r"\d+", "p": "weight|bias"}
            text = "".join(f"(?P<{part}>{holes[part]})" if i % 2 else re.escape(part) for i, part in enumerate(parts))
            if there := re.fullmatch(text, name):
                return rule.sources[0].format(**there.groupdict())
    return name
