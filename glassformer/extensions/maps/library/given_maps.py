"""Attention maps given by a user (`GivenMaps`): checked for size, labels, mask and sums when they are made.

Nothing is rescaled, cut or made up. Weights in memory and a file's header pass the same checks of sizes and texts.

Axes: [layer, head, query, key]. Knows nothing of files or of libraries that compute attention.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, get_args

import numpy as np

from transformer.errors import MapsError, shown
from transformer.i18n import Sentence, say, say_n
from transformer.model.anatomy import Kind
from transformer.runs.trace import LabelledAttention, LabelledMaps

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MOST_LAYERS: Final = 200
MOST_HEADS: Final = 256
MOST_TOKENS: Final = 1_024
MOST_CELLS: Final = 25_000_000  # weights of all attentions together: 100 MB
MOST_LABEL: Final = 200  # characters
MOST_TEXT: Final = 4_000
MOST_SPECIAL: Final = 256
ROUNDING: Final = 0.01  # rows of weights in half precision sum to 1 within this
_NOTHING: Final = 1e-6  # a weight in a closed cell, and what rounding may add to 1


def check_shape(name: str, shape: Sequence[int]) -> None:
    """Raise a MapsError if no weights [layer, head, query, key] can have this shape."""
    if len(shape) != 4:
        raise MapsError(
            "{name}: the weights have the shape {shape}; expected four axes, [layer, head, query, key].",
            name=name,
            shape=shown(tuple(shape)),
        )
    most = (MOST_LAYERS, MOST_HEADS, MOST_TOKENS, MOST_TOKENS)
    if not all(1 <= count <= limit for count, limit in zip(shape, most, strict=True)):
        raise MapsError(
            "{name}: the weights have the shape {shape}; expected 1 to {layers} layers, 1 to {heads} heads and 1 "
            "to {tokens:,} tokens per side. Give only part of the weights.",
            name=name,
            shape=shown(tuple(shape)),
            layers=MOST_LAYERS,
            heads=MOST_HEADS,
            tokens=MOST_TOKENS,
        )


def check_cells(count: int) -> None:
    """Raise a MapsError if all attentions together have too many weights."""
    if count > MOST_CELLS:
        raise MapsError(
            "there are {count:,} weights in all; at most {most:,} can be shown. Provide fewer layers or use a "
            "shorter sentence.",
            count=count,
            most=MOST_CELLS,
        )


def check_text(name: str, text: object, most: int) -> None:
    """Raise a MapsError if something is not text that a page can show."""
    if not isinstance(text, str):
        raise MapsError("{name}: expected text, found {found}.", name=name, found=shown(text))
    if len(text) > most:
        raise MapsError(
            say_n(
                "{name}: the text has {n:,} character; the limit is {most:,}.",
                "{name}: the text has {n:,} characters; the limit is {most:,}.",
                len(text),
                name=name,
                most=most,
            )
        )
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise MapsError(
            "{name}: {text} contains something that is not a character (a NUL, or half of a surrogate pair); "
            "remove it.",
            name=name,
            text=shown(text),
        )


@dataclass(frozen=True, eq=False)
class GivenAttention(LabelledAttention):
    """Consistent maps of one attention; its arrays are read-only.

    Raises `MapsError`: the parts do not fit together, or a number cannot be a weight.
    """

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise MapsError(
                "{found} is not a kind of attention; expected one of {kinds}.",
                found=shown(self.kind),
                kinds=", ".join(KINDS),
            )
        check_shape(self.kind, np.shape(self.weights))
        weights = np.array(self.weights, dtype=np.float32)
        for name, count in (("queries", weights.shape[2]), ("keys", weights.shape[3])):
            object.__setattr__(self, name, _labels(self.kind, name, getattr(self, name), count))
        _check_weights(self.kind, weights)
        allowed = _mask(self.kind, weights, self.allowed)
        _check_closed(self.kind, weights, allowed)
        if self.sums_to_one:
            _check_sums(self.kind, weights, allowed)
        for name, array in (("weights", weights), ("allowed", allowed)):
            array.flags.writeable = False  # many sessions share it
            object.__setattr__(self, name, array)


@dataclass(frozen=True, eq=False)
class GivenMaps(LabelledMaps):
    """Maps of one sentence within the size limits, in the order of the kinds.

    Raises `MapsError`: there are no maps, a kind occurs twice, or they are too large.
    """

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.attentions, key=lambda one: KINDS.index(one.kind)))
        kinds = [one.kind for one in ordered]
        if not kinds or len(set(kinds)) < len(kinds):
            raise MapsError(
                "attentions: found {found}; give one or more of {kinds}, each only once.",
                found=", ".join(kinds) or "[]",
                kinds=", ".join(KINDS),
            )
        check_cells(sum(one.weights.size for one in ordered))
        object.__setattr__(self, "attentions", ordered)
        for name in ("checkpoint", "sentence"):
            check_text(name, getattr(self, name), MOST_TEXT)
        special = tuple(self.special)
        if len(special) > MOST_SPECIAL:
            raise MapsError("special: found {n:,} labels; the limit is {most}.", n=len(special), most=MOST_SPECIAL)
        for label in special:
            check_text("special", label, MOST_LABEL)
        object.__setattr__(self, "special", special)


def _labels(kind: Kind, name: str, labels: Sequence[str], count: int) -> tuple[str, ...]:
    where = f"{kind} {name}"
    if isinstance(labels, str):
        raise MapsError(
            "{where}: found a single string, {found}; give a list of labels.", where=where, found=shown(labels)
        )
    if len(labels) != count:
        raise MapsError(
            "{where}: found {n:,} labels, but the weights need {count:,}; give one label for each token.",
            where=where,
            count=count,
            n=len(labels),
        )
    for label in labels:
        check_text(where, label, MOST_LABEL)
    return tuple(map(str, labels))  # numpy has a kind of text of its own


def _check_weights(kind: Kind, weights: np.ndarray) -> None:
    if not (weights.min() >= -_NOTHING and weights.max() <= 1 + _NOTHING):  # true for NaN, too
        wrong = ~((weights >= -_NOTHING) & (weights <= 1 + _NOTHING))
        raise MapsError(
            "{kind}: a weight in {where} is {found}, not a number from 0 to 1. Give the weights after the softmax, "
            "not the scores before it. Compute them in float32, and leave out tokens that were not computed, for "
            "example padding.",
            kind=kind,
            where=_where(wrong),
            found=_first(wrong, weights),
        )


def _mask(kind: Kind, weights: np.ndarray, given: object) -> np.ndarray:
    shape = weights.shape[2:]
    if given is None:
        later = np.triu(np.ones(shape, bool), 1)
        causal = (
            kind == "decoder" and shape[0] == shape[1] and not np.logical_or.reduce(weights, axis=(0, 1))[later].any()
        )
        return ~later if causal else np.ones(shape, bool)
    allowed = np.array(given)
    if allowed.dtype != bool or allowed.shape != shape:
        raise MapsError(
            "{kind}: the mask is {dtype} of shape {found}; expected bool of shape {shape}, [query, key]. True "
            "means that the query may attend to the key.",
            kind=kind,
            dtype=str(allowed.dtype),
            found=shown(allowed.shape),
            shape=shown(shape),
        )
    return allowed


def _check_closed(kind: Kind, weights: np.ndarray, allowed: np.ndarray) -> None:
    if ((weights.max(axis=(0, 1)) > _NOTHING) & ~allowed).any():
        wrong = (weights > _NOTHING) & ~allowed
        raise MapsError(
            "{kind}: the weight in {where} is {found}, but the mask does not allow any weight there. In a mask, "
            "True means that the query may attend to the key; is your mask inverted?",
            kind=kind,
            where=_where(wrong),
            found=_first(wrong, weights),
        )


def _check_sums(kind: Kind, weights: np.ndarray, allowed: np.ndarray) -> None:
    sums = weights.sum(axis=-1, dtype=np.float64)  # [layer, head, query]
    wrong = (np.abs(sums - 1) > ROUNDING) & allowed.any(axis=-1)
    if wrong.any():
        raise MapsError(
            "{kind}: the weights of {where} sum to {found}, not to 1 (within {most}). Was dropout on, or were some "
            "weights left out? Call `model.eval()` first; if rows should not sum to 1, set `sums_to_one=False`.",
            kind=kind,
            most=ROUNDING,
            where=_where(wrong),
            found=_first(wrong, sums),
        )


def _where(wrong: np.ndarray) -> Sentence:
    """The first wrong value's indices, from 1, in bool [layer, head, query] or [layer, head, query, key]."""
    layer, head, row, *column = (int(index) + 1 for index in np.unravel_index(int(wrong.argmax()), wrong.shape))
    if not column:
        return say("layer {layer}, head {head}, row {row}", layer=layer, head=head, row=row)
    return say(
        "layer {layer}, head {head}, row {row}, column {column}", layer=layer, head=head, row=row, column=column[0]
    )


def _first(wrong: np.ndarray, values: np.ndarray) -> str:
    return f"{float(values.flat[wrong.argmax()]):.4g}"
