"""A model as it learns: its optimizer and precision, in several processes (DDP, FSDP), or played as CUDA graphs.

    one process    the model as it is
    DDP            every process has all parameters; gradients are averaged while the backward pass goes on
    FSDP           every process has a slice of each parameter and of its moments; a layer's parameters are put
                   together when it is its turn, and its gradients are averaged slice by slice

Either way the state of a training is the same: plain, whole tensors.

A step of a model of a few million parameters is some thousand kernels of a few microseconds each, and Python takes
longer to start one than the GPU to finish it. A CUDA graph starts all of them at once. It holds for one shape of a
batch, so shapes are made few: sources are padded to a multiple of `SOURCE_STEP`, and a batch that is not full gets
rows of padding, which weigh nothing. A shape that is met for the first time is learned from as usual, and recorded
when it is met again. What a step draws still depends on torch's seed alone, which a played graph reads anew.

Sources: Li et al., "PyTorch Distributed" (2020); Zhao et al., "PyTorch FSDP" (2023), in its form `fully_shard`; Ng
and others, "Accelerating PyTorch with CUDA Graphs" (pytorch.org, 2021); Loshchilov and Hutter, "Decoupled Weight
Decay Regularization" (2019), for AdamW; Micikevicius et al., "Mixed Precision Training" (2018), for products in 16
bits, and for losses that are scaled so that float16 can hold their gradients (bfloat16 has the range of float32 and
needs no scale).

Shapes: B pairs, S source tokens, T target tokens.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel

from glassformer.extensions.training.library.data import Batch
from glassformer.extensions.training.library.processes import Processes
from glassformer.extensions.training.library.scoring import target_loss
from glassformer.extensions.training.library.settings import Precision, TrainSettings
from transformer.errors import DataError
from transformer.model.config import ModelConfig
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


# ------------------------------------------------------------------------------------------------ CUDA graphs


SOURCE_STEP = 8
MOST_SHAPES = 200  # shapes that are recorded; others are learned from as usual

Shape = tuple[torch.Size, torch.Size]


class Graphed:
    """Plays the steps of a training back.

    `step` learns from a batch on the GPU and returns its loss. All that it changes is in the GPU's memory, and it
    reads nothing back.
    """

    def __init__(self, step: Callable[[Batch], Tensor]) -> None:
        self._step = step
        self._stream = torch.cuda.Stream()
        self._met: set[Shape] = set()
        self._recorded: dict[Shape, tuple[torch.cuda.CUDAGraph, Batch, Tensor]] = {}
        self._pool: Any = None  # the memory that all graphs share, as only one is played at a time

    def __call__(self, batch: Batch) -> Tensor:
        """Learn from a batch in the CPU's memory; returns its loss."""
        shape = batch.src.shape, batch.tgt_in.shape
        pinned = Batch(batch.src.pin_memory(), batch.tgt_in.pin_memory(), batch.tgt_out.pin_memory())
        if shape not in self._recorded:
            if shape not in self._met or len(self._recorded) >= MOST_SHAPES:
                self._met.add(shape)
                return self._as_usual(pinned)
            self._recorded[shape] = self._record(pinned)
        graph, place, loss = self._recorded[shape]
        for name in ("src", "tgt_in", "tgt_out"):
            getattr(place, name).copy_(getattr(pinned, name), non_blocking=True)
        graph.replay()
        return loss.clone()

    def _as_usual(self, batch: Batch) -> Tensor:
        """Learn from a batch on the stream that records, which torch wants to have been used before."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss = self._step(batch.to(torch.device("cuda")))
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def _record(self, batch: Batch) -> tuple[torch.cuda.CUDAGraph, Batch, Tensor]:
        place = batch.to(torch.device("cuda"))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            loss = self._step(place)
        self._pool = graph.pool()
        return graph, place, loss


def filled(batch: Batch, config: ModelConfig, *, batch_tokens: int) -> Batch:
    """The same batch with as many rows as fit into `batch_tokens`, and with sources of few different lengths.

    The rows are copies of the first in which nothing is to be predicted.
    """
    rows = max(batch_tokens // batch.tgt_out.size(1) - len(batch.src), 0)
    width = min(-(-batch.src.size(1) // SOURCE_STEP) * SOURCE_STEP, config.max_len)
    added = max(width - batch.src.size(1), 0) if batch.src.size(1) and batch.tgt_in.size(1) else 0
    src, tgt_in = (torch.cat((ids, ids[:1].expand(rows, -1))) for ids in (batch.src, batch.tgt_in))
    return Batch(
        F.pad(src, (0, added), value=config.fill_id),
        tgt_in,
        F.pad(batch.tgt_out, (0, 0, 0, rows), value=config.fill_id),
        batch.n_tokens,
    )


# ------------------------------------------------------------------------------------------------ how it is computed

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def make_optimizer(parameters: Iterable[torch.nn.Parameter], settings: TrainSettings) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices but not on biases and norms; betas of Vaswani et al. (2017)."""
    parameters = list(parameters)
    matrices = [p for p in parameters if p.dim() >= 2]
    others = [p for p in parameters if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    on_gpu = parameters[0].is_cuda
    # A step that is played back reads its rate from the GPU's memory (see `Graphed`).
    rate = torch.zeros((), device=parameters[0].device) if on_gpu else 0.0
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-9, fused=True, capturable=on_gpu)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Give all parameters this learning rate."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Products in this precision, everything that needs it in float32."""
    return nullcontext() if precision == "fp32" else torch.autocast(device.type, _DTYPES[precision])


def precision_on(device: torch.device, settings: TrainSettings) -> Precision:
    """The precision asked for; float32 instead of bfloat16 where that is slower. A `DataError` where it cannot be."""
    if settings.precision == "bf16":
        return "bf16" if has_bf16(device) else "fp32"
    if settings.precision == "fp16" and (device.type != "cuda" or settings.shard):
        raise DataError("--precision fp16: needs a CUDA device, and does not go with --shard; use bf16 or fp32.")
    return settings.precision


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@contextmanager
def plain_attention() -> Iterator[None]:
    """Attention as two products and a softmax, in the type of its inputs.

    On short sentences torch's fused kernel spends more on its backward pass than it saves; and unless told otherwise
    torch turns bfloat16 into float32 for the products, as if there were no autocast.
    """
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # it is for every device
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)
