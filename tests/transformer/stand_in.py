"""A device made up for tests: it computes as the processor does, to the last bit, and is as strict as a GPU.

A tensor there holds one of the processor's, on which every operation is carried out. An operation with tensors of
both places is refused, except where torch itself brings them together (copies, rows to look up, a single number); so
are `numpy()` without a way back, and drawing with a generator of the processor.

Source: PyTorch, `torch.utils.backend_registration` (a backend written in Python).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._pytree import tree_flatten, tree_map_only

NAME = "standin"
backend_registration._setup_privateuseone_for_python_backend(NAME)
DEVICE = torch.device(NAME, 0)

_aten = torch.ops.aten
_COPIES = {_aten.copy_.default, _aten._to_copy.default, _aten.to.other}
_LOOK_UPS = {_aten.index.Tensor, _aten.index_put_.default, _aten._index_put_impl_.default}


class _There(Tensor):
    """A tensor of the made-up device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "_There":
        assert not isinstance(held, _There), "twice"
        made = Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=DEVICE,
        )  # fmt: skip
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    def numpy(self, *, force: bool = False) -> Any:
        """As torch's: only with `force` are values brought to the processor."""
        if not force:
            raise TypeError(f"{DEVICE}: numpy() needs a tensor of the processor")
        return self.detach().cpu().numpy()

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy()

    def data_ptr(self) -> int:
        """Where its values are."""
        return self.held.data_ptr()

    def __deepcopy__(self, memo: Any) -> Tensor:
        copy = _There(self.held.clone())
        return torch.nn.Parameter(copy, self.requires_grad) if isinstance(self, torch.nn.Parameter) else copy

    def tolist(self) -> Any:
        """As torch's, which brings the values to the processor."""
        return self.cpu().tolist()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _carried_out(func, args, kwargs or {})


def _carried_out(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    flat = tree_flatten((args, kwargs))[0]
    given = [x for x in flat if isinstance(x, Tensor)]
    here = [x for x in given if not isinstance(x, _There)]
    looks_up = func in _LOOK_UPS and isinstance(given[0], _There)
    if not looks_up and func not in _COPIES and len(here) < len(given) and any(x.dim() for x in here):
        raise RuntimeError(f"{func}: tensors are on {DEVICE} and on the processor")
    if isinstance(kwargs.get("generator"), torch.Generator):
        raise RuntimeError(f"{func}: the generator is on the processor")
    places = [x.type for x in flat if isinstance(x, torch.device)]
    there = NAME in places or not places
    found = func(*_in(args), **_in(kwargs))
    if func._schema.is_mutable:
        return kwargs.get("out", args[0])
    with torch.inference_mode(found.is_inference() if func.is_view and isinstance(found, Tensor) else torch.is_inference_mode_enabled()):
        return tree_map_only(Tensor, _There, found) if there else found


def _in(values: Any) -> Any:
    held = tree_map_only(_There, lambda x: x.held, values)
    return tree_map_only(torch.device, lambda _: torch.device("cpu"), held)


_LIBRARY = torch.library.Library("aten", "IMPL")


def _made(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What makes a tensor of nothing, on the device."""

    def made(*args: Any, dtype: Any = None, layout: Any = None, device: Any = None, **_: Any) -> Tensor:
        return _There(make(*args, dtype=dtype))

    return made


def _copy_from(values: Tensor, to: Tensor, non_blocking: bool = False) -> Tensor:
    _in(to).copy_(_in(values))
    return to


_LIBRARY.impl("_copy_from", _copy_from, "PrivateUse1")
_LIBRARY.impl("empty.memory_format", _made(torch.empty), "PrivateUse1")
_LIBRARY.impl("empty_strided", _made(torch.empty_strided), "PrivateUse1")
for _name in ("arange", "arange.start", "arange.start_step"):
    _LIBRARY.impl(_name, _made(torch.arange), "PrivateUse1")


def _attention(*args: Any, **kwargs: Any) -> Tensor:
    return _There(torch.nn.functional.scaled_dot_product_attention(*_in(args), **_in(kwargs)))


_LIBRARY.impl("scaled_dot_product_attention", _attention, "PrivateUse1")
