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

NAME = "standin"


class _Module(backend_registration._DummyBackendModule):
    """What torch asks of a device; it is there for who names it, and nobody comes upon it."""

    def is_available(self) -> bool:
        return False


class _Hook(backend_registration._DummyPrivateUse1Hook):
    def is_available(self) -> bool:
        return False


backend_registration._setup_privateuseone_for_python_backend(NAME, _Module(), _Hook())
DEVICE = torch.device(NAME, 0)
_CPU = torch.device("cpu")

_aten = torch.ops.aten
_COPIES = {_aten.copy_.default, _aten._to_copy.default, _aten.to.other}
_LOOK_UPS = {_aten.index.Tensor, _aten.index_put_.default, _aten._index_put_impl_.default}
_JOINS = {_aten.cat.default, _aten.stack.default}


class _There(Tensor):
    """A tensor of the made-up device."""

    held: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> "_There":
        where = {"strides": held.stride(), "storage_offset": held.storage_offset()}
        made = Tensor._make_wrapper_subclass(cls, held.size(), dtype=held.dtype, device=DEVICE, **where)
        made.held = held
        return made

    def numpy(self, *, force: bool = False) -> Any:
        """As torch's: only with `force` are values brought to the processor."""
        if not force:
            raise TypeError(f"{DEVICE}: numpy() needs a tensor of the processor")
        return self.detach().cpu().numpy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    def tolist(self) -> Any:
        """As torch's, which brings the values to the processor."""
        return self.cpu().tolist()

    def data_ptr(self) -> int:
        """Where its values are."""
        return self.held.data_ptr()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given: list[Any] = []
        own, own_kwargs = _held(args, given), {name: _held(x, given) for name, x in (kwargs or {}).items()}
        _check(func, given, kwargs or {})
        found = func(*own, **own_kwargs)
        if func._schema.is_mutable:
            return (kwargs or {}).get("out", args[0])
        places = [x.type for x in given if isinstance(x, torch.device)]
        if places and NAME not in places:
            return found
        if func.is_view and isinstance(found, Tensor) and not found.is_inference():
            with torch.inference_mode(False):  # a view of what was made outside of that mode is not of it either
                return _There(found)
        return _there(found)


def _held(value: Any, given: list[Any]) -> Any:
    """Arguments as the processor's; what tensors and devices are among them goes into `given`."""
    if isinstance(value, list | tuple):
        return type(value)([_held(one, given) for one in value])
    if isinstance(value, Tensor | torch.device):
        given.append(value)
        return _CPU if isinstance(value, torch.device) else value.held if isinstance(value, _There) else value
    return value


def _there(value: Any) -> Any:
    """Results as the device's."""
    if isinstance(value, list | tuple):
        return type(value)([_there(one) for one in value])
    return _There(value) if isinstance(value, Tensor) else value


def _check(func: Any, given: list[Any], kwargs: dict[str, Any]) -> None:
    """Refuse what a GPU refuses."""
    if isinstance(kwargs.get("generator"), torch.Generator):
        raise RuntimeError(f"{func}: the generator is on the processor")
    tensors = [x for x in given if isinstance(x, Tensor)]
    here = [x for x in tensors if not isinstance(x, _There)]
    looks_up = func in _LOOK_UPS and isinstance(tensors[0], _There)
    if len(here) in (0, len(tensors)) or looks_up or func in _COPIES:
        return
    if func in _JOINS or any(x.dim() for x in here):
        raise RuntimeError(f"{func}: tensors are on {DEVICE} and on the processor")


def _made(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """What makes a tensor out of none, on the device."""
    return lambda *args, dtype=None, **_: _There(make(*args, dtype=dtype))


def _copy_from(values: Tensor, to: Tensor, non_blocking: bool = False) -> Tensor:
    _held(to, []).copy_(_held(values, []))
    return to


def _attention(*args: Any, **kwargs: Any) -> Tensor:
    given = {name: _held(x, []) for name, x in kwargs.items()}
    return _There(torch.nn.functional.scaled_dot_product_attention(*_held(args, []), **given))


_LIBRARY = torch.library.Library("aten", "IMPL")
_KERNELS: dict[str, Callable[..., Tensor]] = {
    **{f"arange{name}": _made(torch.arange) for name in ("", ".start", ".start_step")},
    "empty.memory_format": _made(torch.empty),
    "empty_strided": _made(torch.empty_strided),
    "_copy_from": _copy_from,
    "scaled_dot_product_attention": _attention,
}
for _name, _kernel in _KERNELS.items():
    _LIBRARY.impl(_name, _kernel, "PrivateUse1")
