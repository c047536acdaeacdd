"""State dict inside a checkpoint: search, wrapper prefixes, plain values, weights in parts combined or refused.

    {"model_state_dict": {...}, "epoch": 3, "config": {"n_heads": 4}}

The plain values of such a dictionary are kept as evidence, for example of the number of heads. Names may begin with
the prefixes of `DataParallel` ("module.") or `torch.compile` ("_orig_mod.").

A weight in parts is not the weight. The parts of `torch.nn.utils.weight_norm` are combined; all others are refused by
name, because half would match a table and the other half would look superfluous.

Source: Salimans and Kingma, "Weight Normalization" (2016): w = g v / ||v||; and the names that PyTorch, PEFT,
loralib, bitsandbytes, GPTQ and AWQ write.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from glassformer.extensions.weight_files.pickles import Odd, Tied
from transformer.errors import CheckpointError, ClauseError, shown
from transformer.files import strictjson
from transformer.files.kinds import SAVE_AGAIN
from transformer.files.tensorfile import TensorInfo
from transformer.i18n import Sentence, say

# Under which name a dictionary has the weights, most telling first.
NAMES = (
    "model_state_dict", "state_dict", "model_state", "model_dict", "model_weights", "model", "net_state_dict",
    "net", "network", "weights", "parameters", "params", "transformer_state_dict",
)  # fmt: skip
OUTPUT = "generator"  # OpenNMT-py saves the map to the logits beside the model
DATA_PARALLEL, COMPILED = "module.", "_orig_mod."


def unwrapped(content: Any, *, label: str) -> tuple[dict[str, str], dict[str, Any], tuple[Sentence, ...]]:
    """Find the weights in what a file holds, as `pickles.opened` gives it; refuses none, and odd tensors.

    Returns the name of each tensor with its name in the tensor file, two that are tied with the same; the plain values
    beside the weights, in dictionaries and lists as they were saved; and sentences about what was taken and what left.
    """
    if not isinstance(content, Mapping):
        found = {Tied: say("a tensor"), list: say("a list")}.get(type(content)) or shown(content)
        raise CheckpointError(
            "{label}: expected a dictionary of named tensors, found {found}. {remedy}",
            label=label,
            found=found,
            remedy=SAVE_AGAIN,
        )
    state, path = _state_of(content)
    flat = dict(_flat(state))
    tensors = {name: value.name for name, value in flat.items() if isinstance(value, Tied)}
    _check_odd(flat, label)
    if not tensors:
        raise CheckpointError(
            "{label}: contains no tensors, only the keys {keys}. {remedy}",
            label=label,
            keys=shown(sorted(map(str, content))),
            remedy=SAVE_AGAIN,
        )
    note = say("The weights are taken from the entry {path} of the file.", path=shown(".".join(path)))
    return tensors, _evidence(content), (note,) if path else ()


def without_wrappers(names: Iterable[str], *, label: str) -> tuple[dict[str, str], tuple[Sentence, ...]]:
    """The names without what wrappers put before them, all different -> those of the file; a note if any changed."""
    names = list(names)
    plain = [name.replace(COMPILED, "") for name in names]
    while plain and all(name.startswith(DATA_PARALLEL) for name in plain):
        plain = [name.removeprefix(DATA_PARALLEL) for name in plain]
    found = dict(zip(plain, names, strict=True))
    if len(found) != len(names):
        twice = next(name for name in plain if plain.count(name) > 1)
        raise CheckpointError(
            "{label}: without the prefixes of DataParallel or torch.compile, two tensors have the name {name}; "
            "save the unwrapped model.",
            label=label,
            name=shown(twice),
        )
    note = say("The prefixes that DataParallel or torch.compile adds to tensor names were removed.")
    return found, () if plain == names else (note,)


def _state_of(content: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The dictionary with the weights, and its path of keys; an empty path if there are several models: a question."""
    for name in NAMES:
        inside = content.get(name)
        if isinstance(inside, Mapping) and _has_tensors(inside):
            state, path = _state_of(inside)
            again = dict(_copies({key: one for key, one in content.items() if key != name}, _named(state)))
            if again:
                return {name: inside, **again}, ()
            output = content.get(OUTPUT)
            if isinstance(output, Mapping) and _has_tensors(output):
                state = {**state, OUTPUT: output}
            return state, (name, *path)
    return content, ()


def _copies(content: Mapping[str, Any], own: Mapping[str, str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Dictionaries, however deep, with other values for most names of a model, as averages of its weights are."""
    for key, value in content.items():
        if isinstance(value, Mapping) and _has_tensors(value):
            named = _named(value)
            shared = own.keys() & named.keys()
            if 2 * len(shared) < len(own):
                yield from ((f"{key}.{inside}", one) for inside, one in _copies(value, own))
            elif any(own[name] != named[name] for name in shared):
                yield key, value


def _named(content: Mapping[str, Any]) -> dict[str, str]:
    """The tensors of a dictionary by name, without the prefixes of wrappers."""
    there = {name.replace(COMPILED, ""): one.name for name, one in _flat(content) if isinstance(one, Tied)}
    return {name.removeprefix(DATA_PARALLEL): one for name, one in there.items()}


def _has_tensors(content: Any) -> bool:
    if isinstance(content, Mapping):
        return any(_has_tensors(value) for value in content.values())
    return isinstance(content, Tied)


def _flat(state: Mapping[str, Any], before: str = "") -> Iterable[tuple[str, Any]]:
    """All values by dotted names: some files have the encoder and the decoder in separate dictionaries."""
    for key, value in state.items():
        if isinstance(value, Mapping) and _has_tensors(value):
            short = key.removesuffix("_state_dict")
            yield from _flat(value, f"{before}{key if short in state else short}.")
        else:
            yield f"{before}{key}", value


def _check_odd(flat: Mapping[str, Any], label: str) -> None:
    for name, value in flat.items():
        inside = value if "_packed_params" in name and isinstance(value, list) else [value]
        odd = next((one for one in inside if isinstance(one, Odd) and one.is_tensor), None)
        if odd is not None:
            raise CheckpointError(
                "{label}: tensor {tensor} is {kind}, but it must consist of plain numbers; save it as a dense "
                "float32 tensor.",
                label=label,
                tensor=shown(name),
                kind=ODD_TENSORS.get(odd.kind, odd.kind),
            )


ODD_TENSORS = {
    "quantized": say("quantised"),
    **dict.fromkeys((f"sparse_{kind}" for kind in ("coo", "csr", "csc", "bsr", "bsc")), say("sparse")),
    "meta": say("without values (on the meta device)"),
    **dict.fromkeys(("complex32", "complex128"), say("of complex numbers")),
}


def _evidence(content: Mapping[str, Any]) -> dict[str, Any]:
    """The plain values around and among the weights."""
    kept: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            inside = _evidence(value)
            if inside:
                kept[key] = inside
        elif not isinstance(value, (Tied, Odd)):
            kept[key] = _plain(value)
    return kept


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value if not isinstance(item, (Tied, Odd))]
    if isinstance(value, Mapping):
        return _evidence(value)
    return value


def dotted(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, int | float | bool | str | None]]:
    """The plain values of nested dictionaries, and of such in JSON, by their path of keys, joined with dots."""
    for key, value in values.items():
        if isinstance(value, str) and value.startswith("{"):
            with suppress(ClauseError):
                value = strictjson.parse(value.encode())
        if isinstance(value, Mapping):
            yield from dotted(value, f"{before}{key}.")
        elif value is None or isinstance(value, int | float | str):
            yield f"{before}{key}", value


# A length and a direction: the end of their names, and what stands for both in the name of the weight.
_NORMED = (("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1"))
_MERGE = say("Merge the adapter into the weights (PEFT: `merge_and_unload()`), and save the merged model.")
_QUANTISED = say("a quantised weight")
_REMOVE = say("Remove the parametrisation (`torch.nn.utils.parametrize.remove_parametrizations`), and save again.")
_KINDS: tuple[tuple[str, Sentence, Sentence], ...] = (  # what a name has in it
    (r"(^|\.)(lora_\w+|base_layer)(\.|$)", say("an adapter (LoRA)"), _MERGE),
    (
        r"(^|\.)(qweight|qzeros|g_idx|SCB|weight_format|_packed_params|weight_scale(_inv)?|weight_zero_point)(\.|$)"
        r"|weight\.(absmax|nested_absmax|quant_map|nested_quant_map|quant_state\.\w+)$",
        _QUANTISED,
        say("Save the model without quantisation, in float32 or a 16-bit format."),
    ),
    (r"(weight|bias)_(orig|mask)$", say("a weight with spectral normalisation or pruning"), _REMOVE),
    (r"(^|\.)parametrizations\.", say("a parametrised weight"), _REMOVE),
)
_SMALL = ("I8", "U8", "F8_E4M3", "F8_E5M2")


@dataclass(frozen=True)
class Combined:
    """A weight that a file stores in parts."""

    parts: tuple[str, ...]  # their names, in order
    info: TensorInfo  # the header that the whole would have
    combine: Callable[[list[Tensor]], Tensor]  # the values of the parts to those of the whole


_HEAD = re.compile(r"(.*(?:^|[._])heads)\.(0|[1-9]\d*)\.(.+\.(?:weight|bias))")


def in_two(tensors: Mapping[str, TensorInfo]) -> dict[str, Combined]:
    """The weights that are stored as a length and a direction, by the weight's name."""
    found = dict[str, Combined]()
    for name, (length, direction) in product(tensors, _NORMED):
        other = name.removesuffix(length) + direction
        if name.endswith(length) and other in tensors:
            info = replace(tensors[other], dtype="F32")
            found[f"{name.removesuffix(length)}weight"] = Combined((name, other), info, _of_length)
    return found


def heads(tensors: Mapping[str, TensorInfo]) -> dict[str, Combined]:
    """Maps that are stored head by head, such as `heads.0.key.weight`, by a name for the whole."""
    groups: dict[str, dict[int, str]] = {}
    for one in filter(None, map(_HEAD.fullmatch, tensors)):
        groups.setdefault(f"{one[1]}.{one[3]}", {})[int(one[2])] = one[0]
    found = dict[str, Combined]()
    for whole, names in groups.items():
        parts = tuple(name for _, name in sorted(names.items()))
        (_, shape), *others = {(tensors[name].dtype, tensors[name].shape) for name in parts}
        if whole not in tensors and sorted(names) == list(range(len(names))) and shape and not others:
            info = replace(tensors[parts[0]], shape=(len(parts) * shape[0], *shape[1:]))
            found[whole] = Combined(parts, info, torch.cat)
    return found


def _of_length(values: list[Tensor]) -> Tensor:
    """The weight of a length g and a direction v, of which each axis is summed that g has not."""
    length, direction = values
    axes = [axis for axis in range(direction.dim()) if length.dim() != direction.dim() or length.size(axis) == 1]
    return direction * (length / direction.norm(dim=axes, keepdim=True))


def check(tensors: Mapping[str, TensorInfo], *, label: str) -> None:
    """Refuse a file that holds weights in parts; names the first one and how to save them."""
    for name, info in tensors.items():
        is_small = name.endswith("weight") and len(info.shape) == 2 and info.dtype in _SMALL
        for pattern, what, remedy in _KINDS:
            if re.search(pattern, name) or (is_small and what is _QUANTISED):
                raise CheckpointError(
                    "{label}: tensor {tensor} is part of {what}, not a plain weight. {remedy}",
                    label=label,
                    tensor=shown(name),
                    what=what,
                    remedy=remedy,
                )
