"""Creates given maps from numpy or torch arrays.

    transformer.given_maps(encoder=output.attentions, source=tokens)

Hugging Face's `transformers` returns such a list, one [batch, head, query, key] per layer, with
`output_attentions=True`. In cross-attention the target's tokens are queries and the source's are keys.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from glassformer.extensions.maps.library.given_maps import GivenAttention, GivenMaps, check_shape
from transformer.errors import ClauseError, MapsError, shown, within
from transformer.model.anatomy import EVERY_PART, Kind, StackName


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
                queries, keys = (labels or {}).get(kind) or _labels(kind, tokens)
                one = _stacked(kind, weights, row), (allowed or {}).get(kind)
                found.append(_without(kind, *one, queries, keys, skip=skip, sums_to_one=sums_to_one))
    return GivenMaps(tuple(found), checkpoint=checkpoint, sentence=sentence, special=tuple(special))


def _labels(kind: Kind, tokens: Mapping[StackName, Sequence[str] | None]) -> tuple[Sequence[str], Sequence[str]]:
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
) -> GivenAttention:
    """Remove the rows and columns of some tokens."""
    if (
        not skip or weights.ndim != 4 or weights.shape[2:] != (len(queries), len(keys))
    ):  # invalid shapes are reported later
        return GivenAttention(kind, weights, queries, keys, allowed, sums_to_one)
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
    )
