"""A model as several processes learn with it: each has a copy (DDP), or each has a part of it (FSDP).

    one process    the model as it is
    DDP            every process has all parameters; gradients are averaged while the backward pass goes on
    FSDP           every process has a slice of each parameter and of its moments; a layer's parameters are put
                   together when it is its turn, and its gradients are averaged slice by slice

Either way the state of a training is the same: plain, whole tensors.

Sources: Li et al., "PyTorch Distributed" (2020); Zhao et al., "PyTorch FSDP" (2023), in its form `fully_shard`.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from glassformer.extensions.training.library.data import Batch
from glassformer.extensions.training.library.loss import target_loss
from glassformer.extensions.training.library.processes import Processes
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer


class Learner(nn.Module):
    """A model whose output is its loss: what DDP and FSDP want as one call."""

    def __init__(self, model: Transformer, *, smoothing: float, tap: Tap = NO_TAP) -> None:
        super().__init__()
        self.model, self.smoothing, self.tap = model, smoothing, tap

    def forward(self, batch: Batch) -> Tensor:
        """Mean loss a target token of a batch, in nats."""
        return target_loss(self.model, batch, smoothing=self.smoothing, tap=self.tap)


def distributed(learner: Learner, processes: Processes, *, shard: bool) -> nn.Module:
    """The learner of one process of several; its gradients are the mean of theirs."""
    if shard:
        from torch.distributed.device_mesh import init_device_mesh  # they take a second to load
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh(processes.device.type, (processes.count,))
        for name in ("encoder", "decoder"):
            for layer in getattr(getattr(learner.model, name, None), "layers", ()):
                fully_shard(layer, mesh=mesh)
        fully_shard(learner, mesh=mesh)
        return learner
    if processes.count == 1:
        return learner
    # Which gradients travel together must not change after the first step, or the order of their sums would: a
    # training that goes on would differ in the last bit. DDP keeps it where parameters may be unused.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer versions of torch have another name for it
        return DistributedDataParallel(learner, broadcast_buffers=False, find_unused_parameters=True)


@contextmanager
def last_part(learner: nn.Module, *, last: bool) -> Iterator[None]:
    """Work on one of several parts of a batch: gradients travel with the last one only."""
    synchronise: Callable[[bool], None] = getattr(learner, "set_requires_gradient_sync", lambda last: None)  # FSDP's
    synchronise(last)
    if isinstance(learner, DistributedDataParallel) and not last:
        with learner.no_sync():
            yield
    else:
        yield


def whole(tensor: Tensor) -> Tensor:
    """A tensor with all its slices; every process has to ask at once."""
    put_together: Callable[[], Tensor] = getattr(tensor, "full_tensor", lambda: tensor)  # a DTensor has it
    return put_together()


def slices_like(like: Tensor, full: Tensor) -> Tensor:
    """A whole tensor in the form of another: this process's slice of it, if that one is a slice."""
    if not hasattr(like, "full_tensor"):
        return full.to(like.device)
    from torch.distributed.tensor import DTensor, distribute_tensor

    assert isinstance(like, DTensor)
    return distribute_tensor(full.to(like.device), like.device_mesh, like.placements)


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    """The state of a model as whole tensors."""
    return {name: whole(tensor).detach() for name, tensor in model.state_dict().items()}


@torch.no_grad()
def set_parameters(model: nn.Module, found: Mapping[str, Tensor]) -> None:
    """Give a model the parameters that `parameters_of` returned; a `ValueError` where names or shapes are others."""
    own = model.state_dict()
    shapes = {name: tensor.shape for name, tensor in own.items()}
    if {name: getattr(tensor, "shape", None) for name, tensor in found.items()} != shapes:
        raise ValueError("other parameters")
    for name, tensor in own.items():
        tensor.copy_(slices_like(tensor, found[name]))
