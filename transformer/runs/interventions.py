"""What is changed inside the model while it runs, as data.

An intervention is a part of a query: frozen and hashable, in JSON, and short in an address, where it counts from 1 as
the pages do.

    zero-cross.3.1                     head 1 of layer 3's cross-attention writes nothing
    zero-cross.3.1_zero-decoder.1.2    and neither does head 2 of layer 1's decoder self-attention

`tap_for` turns them into a tap, which decoding and the recording pass both get: the output changes, and the trace
shows why.

Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3, for heads set to 0.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from torch import Tensor

from transformer.errors import QueryError, shown
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import MAX_LAYERS, MAX_WIDTH, ModelConfig
from transformer.model.tap import Replacer, Tap, Visitor, tap_of
from words import say_n

MAX_INTERVENTIONS = 64
_SEPARATOR = "_"
_ZERO_HEAD = re.compile(rf"zero-({'|'.join(get_args(Kind))})\.([1-9][0-9]{{0,5}})\.([1-9][0-9]{{0,5}})", re.ASCII)


@dataclass(frozen=True)
class ZeroHead:
    """One head writes nothing: its part of the joined heads is 0 before W_O.

    Attributes:
        kind: Which attention.
        layer, head: Which one, from 0.
        causal: It changes each token by itself, so that decoding may use its cache.

    Raises:
        QueryError: A value is of the wrong type or out of any model's range.
    """

    kind: Kind
    layer: int
    head: int
    causal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise QueryError(
                "attention: found {found}, expected one of {kinds}.",
                found=shown(self.kind),
                kinds=", ".join(get_args(Kind)),
            )
        for name, most in (("layer", MAX_LAYERS), ("head", MAX_WIDTH)):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < most:
                raise QueryError(
                    "{name}: found {found}, expected a whole number from 0 to {most:,}.",
                    name=name,
                    found=shown(value),
                    most=most - 1,
                )

    def __str__(self) -> str:
        return f"zero-{self.kind}.{self.layer + 1}.{self.head + 1}"

    def to_record(self) -> dict[str, object]:
        """As JSON has it."""
        return {"change": "zero", "attention": self.kind, "layer": self.layer, "head": self.head}

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this head.

        Raises:
            QueryError: It does not; names the limit.
        """
        n_layers = anatomy(config).attention(self.kind).n_layers
        if self.layer >= n_layers:
            raise QueryError(
                "{change} names layer {layer}; this model has layers 1 to {n_layers} there.",
                change=str(self),
                layer=self.layer + 1,
                n_layers=n_layers,
            )
        if self.head >= config.n_heads:
            raise QueryError(
                "{change} names head {head}; this model has heads 1 to {n_heads}.",
                change=str(self),
                head=self.head + 1,
                n_heads=config.n_heads,
            )

    def visitor(self, config: ModelConfig) -> Visitor:
        """What does it to a model of this config."""
        site = anatomy(config).attention(self.kind).site(self.layer, "heads")
        return Replacer({site: self._without}, causal=self.causal)

    def _without(self, heads: Tensor) -> Tensor:
        changed = heads.clone()  # [B, H, Q, d]
        changed[:, self.head] = 0.0
        return changed


Intervention = ZeroHead  # the first one; others join it with a vertical bar


def tap_for(interventions: Iterable[Intervention], config: ModelConfig) -> Tap:
    """The tap that carries out all of them, in order.

    Raises:
        QueryError: The model has no such head.
    """
    for intervention in (interventions := tuple(interventions)):
        intervention.check(config)
    return tap_of(*(intervention.visitor(config) for intervention in interventions))


def checked(interventions: object) -> tuple[Intervention, ...]:
    """A list or tuple of interventions as a tuple.

    Raises:
        QueryError: It is something else, or too long.
    """
    if not isinstance(interventions, list | tuple) or not all(isinstance(one, Intervention) for one in interventions):
        raise QueryError(
            "interventions: found {found}, expected a list of interventions.", found=shown(interventions)
        )
    if len(interventions) > MAX_INTERVENTIONS:
        raise QueryError(
            say_n(
                "{n:,} intervention was asked for; at most {most} can be.",
                "{n:,} interventions were asked for; at most {most} can be.",
                len(interventions),
                most=MAX_INTERVENTIONS,
            )
        )
    return tuple(interventions)


def from_record(record: Any) -> Intervention:
    """Read what `to_record` wrote.

    Raises:
        QueryError: It is something else.
    """
    keys = {"change", "attention", "layer", "head"}
    if not isinstance(record, dict) or record.keys() != keys or record["change"] != "zero":
        raise QueryError("interventions: found {found}, expected what `Query.to_json` writes.", found=shown(record))
    return ZeroHead(record["attention"], record["layer"], record["head"])


def write(interventions: Iterable[Intervention]) -> str:
    """All of them as one parameter of an address; nothing for none."""
    return _SEPARATOR.join(map(str, interventions))


def parse(text: str) -> tuple[Intervention, ...]:
    """Read what `write` wrote.

    Raises:
        QueryError: It is something else, or names what no model has.
    """
    return checked([_parse_one(part) for part in text.split(_SEPARATOR)] if text else [])


def _parse_one(text: str) -> Intervention:
    match = _ZERO_HEAD.fullmatch(text)
    if match is None:
        raise QueryError(
            "found the change {text}, expected one such as {example}: an attention ({kinds}), a "
            "layer and a head, both counted from 1.",
            text=shown(text),
            example=str(ZeroHead("cross", 2, 0)),
            kinds=", ".join(get_args(Kind)),
        )
    kind: Any = match[1]
    layer, head = int(match[2]), int(match[3])
    if layer > MAX_LAYERS or head > MAX_WIDTH:
        raise QueryError(
            "found the change {text}; layers go from 1 to {layers} and heads from 1 to {heads:,} at most.",
            text=shown(text),
            layers=MAX_LAYERS,
            heads=MAX_WIDTH,
        )
    return ZeroHead(kind, layer - 1, head - 1)
