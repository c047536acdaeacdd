"""Where the wiring is changed: in all attentions or one, in both stacks or one."""

from collections.abc import Sequence
from typing import Any, Final

from transformer.errors import QueryError
from transformer.model.anatomy import Attention, StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions.base import ChangeError, Intervention
from transformer.runs.interventions.heads import ATTENTIONS, check_head, part_name
from transformer.runs.interventions.spelling import choice
from words import say

ALL: Final = "all"
WHERE: Final[dict[str, str]] = {ALL: say("All attentions"), **{str(kind): name for kind, name in ATTENTIONS.items()}}
SELF: Final[dict[str, str]] = {
    ALL: say("All self-attentions"),
    "encoder": ATTENTIONS["encoder"],
    "decoder": ATTENTIONS["decoder"],
}
STACKS: Final[dict[str, str]] = {ALL: say("Both stacks"), "encoder": say("Encoder"), "decoder": say("Decoder")}


def where(options: dict[str, str] = WHERE) -> Any:
    """A field that names one attention, or all of them."""
    return choice(say("Attention"), options, ALL, target=True)


def stack() -> Any:
    """A field that names one stack, or both."""
    return choice(say("Stack"), STACKS, ALL, target=True)


def attentions(config: ModelConfig, named: str, options: dict[str, str] = WHERE) -> tuple[Attention, ...]:
    """The attentions that a field of `where` names."""
    return tuple(one for one in anatomy(config).attentions if one.kind in options and named in (ALL, one.kind))


def check_where(change: Intervention, config: ModelConfig, named: str, layer: int | None = None,
                head: int | None = None) -> None:  # fmt: skip
    """See whether a model has what a field of `where` names, and a layer and a head of it.

    Raises:
        ChangeError: It has not.
    """
    found = [one.kind for one in anatomy(config).attentions] if named == ALL else [named]
    layers = {one.kind: one.n_layers for one in anatomy(config).attentions}
    deepest = max(found, key=lambda kind: layers.get(kind, 0))
    check_head(change, config, deepest, layer, head)  # type: ignore[arg-type]  # a field's options are the kinds


def stacks(config: ModelConfig, named: str) -> Sequence[StackName]:
    """The stacks that a field of `stack` names.

    Raises:
        ChangeError: The model has not the one that is named.
    """
    parts = anatomy(config)
    if named == ALL:
        return [one.name for one in parts.stacks]
    try:
        return [parts.stack("encoder" if named == "encoder" else "decoder").name]
    except QueryError as error:
        raise ChangeError(error.sentence) from None


def place_name(named: str, layer: int | None, head: int | None) -> str:
    """How a sentence calls what a field of `where`, a layer and a head name; None is all."""
    return WHERE[named] if layer is None and head is None else part_name(WHERE[named], layer, head)
