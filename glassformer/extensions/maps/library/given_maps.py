"""Records `GivenMaps` and `GivenAttention` of a user's attention maps: from arrays; checks of shapes, texts, sums.

    transformer.given_maps(encoder=output.attentions, source=tokens)

Hugging Face's `transformers` returns such a list, one [batch, head, query, key] per layer, with
`output_attentions=True`. In cross-attention the target's tokens are queries and the source's are keys.

Nothing is rescaled, cut or made up. Weights in memory and a file's header pass the same checks of sizes and texts.

Axes: [layer, head, query, key]. Knows nothing of files or of libraries that compute attention.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import numpy as np
import torch

from transformer.errors import ClauseError, MapsError, shown, within
from transformer.i18n import Sentence, say
from transformer.model.anatomy import EVERY_PART, Kind, StackName
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
            "{name}: the text has {n:,} character; the limit is {most:,}.",
            "{name}: the text has {n:,} characters; the limit is {most:,}.",
            len(text),
            name=name,
            most=most,
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
        if self.signed:
            object.__setattr__(self, "sums_to_one", False)
        _check_weights(self.kind, weights, signed=self.signed)
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


def _check_weights(kind: Kind, weights: np.ndarray, *, signed: bool) -> None:
    if signed:
        if not (finite := np.isfinite(weights)).all():
            raise MapsError(
                "{kind}: the number in {where} is {found}; attributions must be finite.",
                kind=kind,
                where=_where(~finite),
                found=_first(~finite, weights),
            )
        return
    if not (weights.min() >= -_NOTHING and weights.max() <= 1 + _NOTHING):  # true for NaN, too
        wrong = ~((weights >= -_NOTHING) & (weights <= 1 + _NOTHING))
        raise MapsError(
            "{kind}: a weight in {where} is {found}, not a number from 0 to 1. Give the weights after the softmax, "
            "not the scores before it, or set `signed=True` for attributions. Compute them in float32, and leave out "
            "tokens that were not computed, for example padding.",
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
    if ((np.abs(weights).max(axis=(0, 1)) > _NOTHING) & ~allowed).any():
        wrong = (np.abs(weights) > _NOTHING) & ~allowed
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


def given_maps(
    *,
    encoder: Any = None,
    decoder: Any = None,
    cross: Any = None,
    source: Sequence[str] | None = None,
    target: Sequence[str] | None = None,
    labels: Mapping[Kind, tuple[Sequence[str], Sequence[str]]] | None = None,
    allowed: Mapping[Kind, Any] | None = None,
    row: int = 0,
    skip: Collection[str] = (),
    sums_to_one: bool = True,
    signed: bool = False,
    checkpoint: str = "",
    sentence: str = "",
    special: Sequence[str] = (),
) -> GivenMaps:
    """Make given maps from arrays.

    Args:
        encoder, decoder, cross: The weights of each attention that exists: an array [layer, head, query, key], or a
            list of [head, query, key] or [batch, head, query, key], one per layer.
        source, target: The tokens that the encoder and the decoder read, as labels of rows and columns.
        labels: Queries and keys of an attention, if they are different.
        allowed: Masks, bool [query, key], True = may attend; see `GivenAttention`.
        row: The sentence of the batch, from 0.
        skip: Tokens whose rows and columns to leave out, such as "[PAD]".
        sums_to_one: False if rows are known not to sum to 1.
        signed: True for attributions (captum, inseq): any finite numbers, drawn with 0 in the middle of the colours.
        special: Tokens that are not text, such as "[CLS]".

    Raises:
        MapsError: The arrays, labels and masks do not fit together, or a number cannot be a weight.
    """
    tokens: dict[StackName, Sequence[str] | None] = {"encoder": source, "decoder": target}
    found = []
    given: dict[Kind, Any] = {"encoder": encoder, "decoder": decoder, "cross": cross}
    for kind, weights in given.items():
        if weights is not None:
            with within(kind, MapsError):
                queries, keys = (labels or {}).get(kind) or _token_labels(kind, tokens)
                one = _stacked(kind, weights, row), (allowed or {}).get(kind)
                found.append(_without(kind, *one, queries, keys, skip=skip, sums_to_one=sums_to_one, signed=signed))
    return GivenMaps(tuple(found), checkpoint=checkpoint, sentence=sentence, special=tuple(special))


def _token_labels(kind: Kind, tokens: Mapping[StackName, Sequence[str] | None]) -> tuple[Sequence[str], Sequence[str]]:
    attention = EVERY_PART.attention(kind)
    queries, keys = tokens[attention.stack], tokens[attention.keys_from]
    if queries is None or keys is None:
        names = {"encoder": "source", "decoder": "target"}
        missing = names[attention.stack if queries is None else attention.keys_from]
        raise ClauseError(
            "there are no labels; give the tokens as {missing}=[…], or the labels of both sides as labels={{…}}",
            missing=missing,
        )
    return queries, keys


def _stacked(kind: Kind, weights: Any, row: int) -> np.ndarray:
    if not isinstance(weights, list | tuple):
        return _numbers(kind, weights)
    layers = [_layer(kind, number, one, row) for number, one in enumerate(weights, start=1)]
    if not layers:
        raise ClauseError("the list of layers is empty; give one array per layer")
    for number, layer in enumerate(layers, start=1):
        if layer.shape != layers[0].shape:
            raise ClauseError(
                "layer {layer} has the shape {found}, but layer 1 has {first}; all layers must have the same shape",
                layer=number,
                found=shown(layer.shape),
                first=shown(layers[0].shape),
            )
    check_shape(kind, (len(layers), *layers[0].shape))
    return np.stack(layers)


def _layer(kind: Kind, number: int, weights: Any, row: int) -> np.ndarray:
    if weights is None:
        raise ClauseError(
            "layer {layer} has no weights, because fused attention does not keep them. Load the model with {eager}, "
            "and call it with {asked}",
            layer=number,
            eager='`attn_implementation="eager"`',
            asked="`output_attentions=True`",
        )
    if isinstance(weights, list | tuple) and any(hasattr(one, "shape") or one is None for one in weights):
        raise ClauseError(
            "item {layer} of the list is itself a list with one item per step, as `generate` returns it. Run the "
            "model once over the finished output, and give the weights of that run",
            layer=number,
        )
    array = _numbers(kind, weights)
    if array.ndim == 3:
        return array
    if array.ndim != 4:
        raise ClauseError(
            "layer {layer} has the shape {shape}; expected [head, query, key] or [batch, head, query, key]",
            layer=number,
            shape=shown(array.shape),
        )
    if not 0 <= row < len(array):
        raise MapsError(
            "row: {row} was requested, but the batch of {kind} has rows 0 to {last}.",
            row=row,
            kind=kind,
            last=len(array) - 1,
        )
    return array[row]


def _numbers(kind: Kind, values: Any) -> np.ndarray:
    if isinstance(values, torch.Tensor):
        values = values.detach().to("cpu", torch.float32).numpy()  # numpy has no bfloat16
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "fiub":
        raise ClauseError("expected an array of numbers, found {found}", found=shown(values))
    return array


def _without(
    kind: Kind,
    weights: np.ndarray,
    allowed: Any,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    skip: Collection[str],
    sums_to_one: bool,
    signed: bool,
) -> GivenAttention:
    """Remove the rows and columns of some tokens."""
    if (
        not skip or weights.ndim != 4 or weights.shape[2:] != (len(queries), len(keys))
    ):  # invalid shapes are reported later
        return GivenAttention(kind, weights, queries, keys, allowed, sums_to_one, signed)
    rows, columns = ([place for place, label in enumerate(labels) if label not in skip] for labels in (queries, keys))
    mask = None if allowed is None else np.asarray(allowed)
    if mask is not None and mask.shape == weights.shape[2:]:
        mask = mask[np.ix_(rows, columns)]
    return GivenAttention(
        kind,
        weights[:, :, rows][..., columns],
        tuple(queries[place] for place in rows),
        tuple(keys[place] for place in columns),
        mask,
        sums_to_one,
        signed,
    )
