"""Distributed training (launcher, process group, DDP, FSDP), CUDA graphs, AdamW optimizer, mixed precision.

`torchrun` (or `--processes`) starts the same command several times with different ranks. Every process reads the same
files and learns from other rows of the same batches; only the first one writes and prints. A process broadcasts what
only it knows (its disk, its clock); if it refuses, all refuse, so no process waits forever. A training in one
process does the same without broadcasts.

        one process    the plain model
        DDP            every process has all parameters; gradients are averaged during the backward pass
        FSDP           every process has a slice of each parameter and of its moments; a layer's parameters are gathered
                       when it runs, and its gradients are averaged slice by slice

    Either way the state of a training is the same: plain, whole tensors.

    A step of a model of a few million parameters is some thousand kernels of a few microseconds, and Python needs
    longer to launch one than the GPU to run it. A CUDA graph launches all of them at once. It is valid for one shape of
    a batch, so shapes are kept few: sources are padded to a multiple of `SOURCE_STEP`, and a batch that is not full
    gets padding rows with weight 0. The first batch of a shape runs as usual, the second is recorded. Random draws
    still depend only on torch's seed, which a replayed graph reads again.

Sources: Li et al., "PyTorch Distributed" (2020); Zhao et al., "PyTorch FSDP" (2023), in its form `fully_shard`; Ng
and others, "Accelerating PyTorch with CUDA Graphs" (pytorch.org, 2021); Loshchilov and Hutter, "Decoupled Weight
Decay Regularization" (2019), for AdamW; Micikevicius et al., "Mixed Precision Training" (2018), for products in 16
bits, and for losses that are scaled so that float16 can hold their gradients (bfloat16 has the range of float32 and
needs no scale).

Shapes: B pairs, S source tokens, T target tokens.
"""

import logging
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel

from glassformer.extensions.training.library.data import Batch
from glassformer.extensions.training.library.scoring import target_loss
from glassformer.extensions.training.library.settings import Precision, TrainSettings
from transformer import sandbox
from transformer.errors import DataError
from transformer.model.config import ModelConfig
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer

T = TypeVar("T")

PATIENCE = timedelta(hours=2)  # how long one may wait for another, such as while the first learns a vocabulary
_AGENT = "TORCHELASTIC_RUN_ID"  # set by torchrun, which starts processes again that fell
LAUNCHER = "GLASSFORMER_LAUNCHER"  # set by `launch`: its process id
_RESTARTS = "TORCHELASTIC_RESTART_COUNT"


@dataclass(frozen=True)
class Processes:
    """Those that train together, seen from one of them."""

    device: torch.device
    rank: int = 0
    count: int = 1
    together: bool = False  # a group was made, so that they can speak; one alone may do without

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and prints."""
        return self.rank == 0

    def from_first(self, work: Callable[[], T]) -> T:
        """What `work` gives on the first process, on every process; if it fails there, its error is raised on all."""
        if self.count == 1:
            return work()
        told: list[Any] = [None, None]
        if self.first:
            try:
                told[0] = work()
            except Exception as error:
                told[1] = error
        dist.broadcast_object_list(told, src=0)
        if told[1] is not None:
            raise told[1]
        return told[0]

    def agreed(self, work: Callable[[], T]) -> T:
        """What `work` gives on each process; if it fails on any, the error of the first such one is raised on all."""
        if self.count == 1:
            return work()
        mine: list[Any] = [None, None]
        try:
            mine[0] = work()
        except Exception as error:
            mine[1] = error
        errors: list[Any] = [None] * self.count
        dist.all_gather_object(errors, mine[1])
        for found in filter(None, errors):
            raise found
        return mine[0]

    def gathered(self, mine: Sequence[T]) -> list[T]:
        """The items of all processes, dealt out as rows are: one of each in turn."""
        if self.count == 1:
            return list(mine)
        hands: list[Any] = [None] * self.count
        dist.all_gather_object(hands, list(mine))
        rounds = range(max(map(len, hands)))
        return [hand[i] for i in rounds for hand in hands if i < len(hand)]

    def total(self, values: Tensor) -> Tensor:
        """Numbers of this process plus those of the others."""
        if self.count > 1:
            dist.all_reduce(values)
        return values

    def time(self, clock: float) -> float:
        """The time by the clock of the first process: what depends on time must be the same for all."""
        if self.count == 1:
            return clock
        told = torch.tensor(clock, dtype=torch.float64)
        dist.broadcast(told, src=0)
        return told.item()

    @contextmanager
    def first_in(self, context: AbstractContextManager[object]) -> Iterator[None]:
        """A context that only the first process enters; if it cannot, all processes fail."""
        with ExitStack() as stack:
            self.from_first(lambda: stack.enter_context(context) and None)
            yield


def of_rank(rows: Sequence[T], rank: int, count: int) -> Sequence[T]:
    """The rows of one of `count`: one in so many, as cards are dealt."""
    return rows[rank::count]


@contextmanager
def started(device: str) -> Iterator[Processes]:
    """The processes of this training, from the environment; `device` is "cpu", "cuda" or "auto".

    A `DataError` if there is no such device.
    """
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
        yield Processes(_device(device, 0))
        return
    if _AGENT in os.environ:
        _end_with_parent()
    found = _device(device, int(os.environ.get("LOCAL_RANK", "0")))
    if found.type == "cuda":
        torch.cuda.set_device(found)
    dist.init_process_group("gloo" if found.type == "cpu" else "cpu:gloo,cuda:nccl", timeout=PATIENCE)
    try:
        yield Processes(found, dist.get_rank(), dist.get_world_size(), together=True)
    finally:
        dist.destroy_process_group()


def was_restarted() -> bool:
    """Whether the launcher started this training again after a process of it fell."""
    return int(os.environ.get(_RESTARTS, "0")) > 0


def is_lost(error: RuntimeError) -> bool:
    """Whether an error says that another process is gone."""
    return isinstance(error, dist.DistError) or "gloo/transport" in str(error)


def is_first() -> bool:
    """Whether this process is the one that prints, as far as the environment says."""
    return os.environ.get("RANK", "0") == "0"


def _device(name: str, local_rank: int) -> torch.device:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name == "cpu" or (name == "auto" and not count):
        return torch.device("cpu")
    if not count:
        raise DataError("--device cuda: torch finds no CUDA device here; use --device cpu or auto.")
    if local_rank >= count:
        raise DataError(
            "--device {name}: there is {n} GPU, and each process needs its own; start fewer processes.",
            "--device {name}: there are {n} GPUs, and each process needs its own; start fewer processes.",
            count,
            name=name,
        )
    return torch.device("cuda", local_rank) if "LOCAL_RANK" in os.environ else torch.device("cuda")


def _end_with_parent() -> None:
    """Have the system end this process with its launcher: an orphan would continue the training and hold its lock."""
    sandbox.die_with_parent()
    if os.environ.get(LAUNCHER, str(os.getppid())) != str(os.getppid()):
        os.kill(os.getpid(), signal.SIGTERM)  # it was gone before


_NOTE = "GLASSFORMER_REFUSED"  # names a file that a training leaves when it refuses
REFUSED = 2


def wanted(processes: int, max_restarts: int) -> bool:
    """Whether this process is the launcher of others: requested, and not launched itself."""
    return (processes > 1 or max_restarts > 0) and "RANK" not in os.environ


def launch(arguments: Sequence[str], *, processes: int, max_restarts: int) -> int:
    """Run `python -m transformer` with these arguments in several processes; returns the exit status.

    It is torch's own launcher, `torchrun`, in this process, which restarts processes that fail, with two differences.
    Its rendezvous store is not shared with the training (`TORCH_DISABLE_SHARE_RDZV_TCP_STORE`): restarted processes
    would wait for minutes for the port of a dead one. And a training that refuses its input is not restarted: its first
    process reports why, all exit without failure, and this one returns the exit status.
    """
    os.environ.setdefault("LOGLEVEL", "CRITICAL")  # what torch's launcher says is said below, in a line
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    logging.getLogger("torch.distributed").setLevel(logging.CRITICAL)  # some of its parts go by this
    threads = str(max((os.cpu_count() or 1) // processes, 1))
    with tempfile.TemporaryDirectory(prefix="glassformer-") as folder:
        note = Path(folder) / "refused"
        os.environ |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", _NOTE: str(note), LAUNCHER: str(os.getpid())}
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its warnings are about intended behaviour
        os.environ.setdefault("OMP_NUM_THREADS", threads)
        how = ["--standalone", f"--nproc-per-node={processes}", f"--max-restarts={max_restarts}"]
        try:
            run.run(run.parse_args([*how, "-m", "transformer", *arguments]))
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            code = failure.exitcode
            how_it_ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
            print(
                f"error: process {rank + 1} of {processes} {how_it_ended}; the same command with --resume goes on "
                "from what was stored last.",
                file=sys.stderr,
            )
            return 1
        except SignalException as error:
            return 128 + error.sigval
        return REFUSED if note.exists() else 0


def refused(error: Exception) -> int:
    """Have the first process report a refusal that all raise; raises it, or returns the exit status."""
    note = os.environ.get(_NOTE)
    if note is None and is_first():
        raise error
    if note is None:
        return REFUSED
    if is_first():
        print(f"error: {error}", file=sys.stderr, flush=True)
        Path(note).touch()
    return 0


# ------------------------------------------------------------------------------------------------ one model


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
    # Gradient buckets must not change after the first step, or the order of sums would, and a resumed training would
    # differ in the last bit. DDP keeps them if parameters may be unused.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # newer versions of torch have another name for it
        return DistributedDataParallel(learner, broadcast_buffers=False, find_unused_parameters=True)


@contextmanager
def last_part(learner: nn.Module, *, last: bool) -> Iterator[None]:
    """Work on one of several parts of a batch: gradients travel with the last one only."""
    synchronise: Callable[[bool], None] = getattr(learner, "set_requires_gradient_sync", lambda last: None)  # FSDP
    synchronise(last)
    if isinstance(learner, DistributedDataParallel) and not last:
        with learner.no_sync():
            yield
    else:
        yield


def whole(tensor: Tensor) -> Tensor:
    """A tensor with all its slices; every process must call this together."""
    put_together: Callable[[], Tensor] = getattr(tensor, "full_tensor", lambda: tensor)  # a DTensor has it
    return put_together()


def slices_like(like: Tensor, full: Tensor) -> Tensor:
    """A whole tensor like another: this process's slice of it, if that one is a slice."""
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
    """Set the parameters that `parameters_of` returned; a `ValueError` if names or shapes differ."""
    own = model.state_dict()
    shapes = {name: tensor.shape for name, tensor in own.items()}
    if {name: getattr(tensor, "shape", None) for name, tensor in found.items()} != shapes:
        raise ValueError("other parameters")
    for name, tensor in own.items():
        tensor.copy_(slices_like(tensor, found[name]))


# ------------------------------------------------------------------------------------------------ CUDA graphs


SOURCE_STEP = 8
MOST_SHAPES = 200  # recorded shapes; others run as usual

Shape = tuple[torch.Size, torch.Size]


class Graphed:
    """Replays training steps as CUDA graphs.

    `step` learns from a batch on the GPU and returns its loss. It changes only GPU memory, and reads nothing back.
    """

    def __init__(self, step: Callable[[Batch], Tensor]) -> None:
        self._step = step
        self._stream = torch.cuda.Stream()
        self._met: set[Shape] = set()
        self._recorded: dict[Shape, tuple[torch.cuda.CUDAGraph, Batch, Tensor]] = {}
        self._pool: Any = None  # memory of all graphs: only one runs at a time

    def __call__(self, batch: Batch) -> Tensor:
        """Learn from a batch in CPU memory; returns its loss."""
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
        """Learn from a batch on the recording stream, which torch requires to have been used before."""
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
    """The same batch with as many rows as fit into `batch_tokens`, and with one of few source lengths.

    The added rows are copies of the first with nothing to predict.
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
    # A replayed step reads its rate from GPU memory (see `Graphed`).
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
    """The requested precision; float32 if bfloat16 is slower. A `DataError` if it is not available."""
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
    """Attention as two products and a softmax, in the dtype of its inputs.

    On short sentences the backward pass of torch's fused kernel costs more than it saves; and by default torch converts
    bfloat16 to float32 for the products, despite autocast.
    """
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # it is for every device
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)
