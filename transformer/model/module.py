"""Base class of model parts: a faster `nn.Module`.

A decoding step calls sixty modules, and torch spends a microsecond on each to find it and as much again to look for
hooks: a tenth of the step. Here a part is a plain attribute, and a module without hooks is its `forward`.
"""

from typing import Any

from torch import nn
from torch.nn.modules.module import (  # hooks of all modules; torch fills these and never replaces them
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)


class Module(nn.Module):
    """A part of the model; everything that torch's module can do, hooks included, works as usual."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module):
            self.__dict__[name] = value
        elif name in self.__dict__.get("_modules", ()):  # no part any more: None
            self.__dict__.pop(name, None)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__.pop(name, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`."""
        hooks = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        hooks = hooks or _global_forward_hooks or _global_forward_pre_hooks
        if hooks or _global_backward_hooks or _global_backward_pre_hooks or self._compiled_call_impl:
            return super().__call__(*args, **kwargs)
        return self.forward(*args, **kwargs)
