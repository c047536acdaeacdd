"""Speed gains of torch.compile and int8 for one decoding step, measured in a subprocess.

One decoding step with a KV cache, on one thread, is measured in several ways in turns: unchanged, without torch's
modules, with large matrices in int8 (as drafts are written), and compiled. The time does not depend on the numbers, so
the model has random ones. All of it happens in a subprocess with limits: compiling takes half a minute or more and
needs a C++ compiler, and failures there harm nobody.

Source: Ansel et al., "PyTorch 2" (2024), section 3, for `torch.compile`.
"""

import contextlib
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

import torch
from torch import Tensor

from transformer import sandbox
from transformer.checkpoint.parameter_layout import ready, vacant
from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.model.cache import AttentionCache, KVCache
from transformer.model.config import ModelConfig
from transformer.model.module import Linear
from transformer.model.transformer import Transformer
from transformer.runs.array_records import Progress
from transformer.runs.drafting import drafters


@dataclass
class _Whole(AttentionCache):
    """A cache that is always read whole."""

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        past, self.length = self.length, self.length + keys.size(2)
        assert self.keys is not None
        assert self.values is not None
        self.keys.narrow(2, past, 1).copy_(keys)
        self.values.narrow(2, past, 1).copy_(values)
        return self.keys, self.values


class Steps:
    """Writes `n_written` tokens after a source of `n_source`, in several ways."""

    @torch.inference_mode()
    def __init__(self, config: ModelConfig, *, n_source: int, n_written: int) -> None:
        torch.set_num_threads(1)
        made, places = vacant(config)
        for place in places.values():
            place.normal_(std=0.05)
        self.model, self.n = ready(made), n_written
        self.memory = torch.randn(1, n_source, config.d_model) if self.model.anatomy.reads else None  # [B, S, D]

    @torch.inference_mode()
    def eager(self) -> int:
        """Write them with the model as it is; returns how many."""
        ids, cache = torch.ones(1, 1, dtype=torch.long), KVCache(self.model.config.n_decoder_layers)
        for _ in range(self.n):
            ids = self.model.project(self.model.decode(ids, self.memory, cache=cache)).argmax(dim=-1)  # [B, T]
        return self.n

    def as_drafts(self, *, int8: bool) -> Callable[[], int] | None:
        """The same as drafts are written, with large matrices in int8 or not; None where nothing can do that."""
        ways = (one.steps(self.model, self.memory, self.n, int8=int8) for one in drafters())
        return next(filter(None, ways), None)

    def compiled(self) -> Callable[[], int]:
        """The same compiled, which happens here; errors are torch's."""
        # A compiler cannot follow checks of the number of threads and of a matrix's memory layout.
        vars(torch)["get_num_threads"] = lambda: 1
        model = copy.deepcopy(self.model)
        for module in model.modules():
            if isinstance(module, Linear):
                module.joined = None
        compiled = torch.compile(step)
        for _ in range(2):  # the second time finds out whether anything has to be compiled once more
            self._write_whole(model, compiled)
        return lambda: self._write_whole(model, compiled)

    @torch.inference_mode()
    def _write_whole(self, model: Transformer, step: Callable[..., Tensor]) -> int:
        ids, cache, places = torch.ones(1, 1, dtype=torch.long), whole_cache(model, self.n), torch.arange(self.n)
        for place in range(self.n):
            mask = (places <= place).view(1, 1, 1, -1)  # [1, 1, T, N]
            ids = step(model, ids, self.memory, mask, cache).argmax(dim=-1)  # [B, T]
        return self.n


def whole_cache(model: Transformer, n: int) -> KVCache:
    """A cache with `n` places for tokens that are there from the beginning."""
    heads, cache = model.config.of("decoder"), KVCache(model.config.n_decoder_layers)
    shape, like = (1, heads.n_kv_heads, n, heads.d_head), model.src_table
    cache.self_attn = [_Whole(False, like.new_zeros(shape), like.new_zeros(shape)) for _ in cache.self_attn]
    return cache


def step(model: Transformer, ids: Tensor, memory: Tensor | None, mask: Tensor, cache: KVCache) -> Tensor:
    """Read one token [B, T], and compute the logits of the piece after it [B, T, V]."""
    return model.project(model.decoder(ids, model.target_table, memory, mask, None, cache=cache))


SECONDS: Final = 60  # that it takes, about
MOST_SECONDS: Final = 600
MOST_PARAMETERS: Final = 250_000_000
MEMORY: Final = 12 * 2**30  # of address space, most of which torch only reserves
NO_COMPILER: Final = "compiler"
NO_ONE_SHAPE: Final = "shape"  # a position bias or a window is of another size at every step
_FILE_BYTES: Final = 2**30
_SOURCE, _WRITTEN, _TURNS = 12, 24, 9  # tokens that are read, and written in each turn
_LOOK_SECONDS: Final = 0.2
_ROOT: Final = Path(__file__).resolve().parents[2]
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Gains:
    """What was measured: milliseconds of the processor for one token; None for what this machine cannot do."""

    eager: float
    lean: float | None  # without torch's modules
    int8: float | None  # the same with large matrices in int8
    compiled: float | None
    compile_seconds: float  # until the first compiled token was there
    problem: str = ""  # why nothing was compiled, in torch's words; "" if it was

    @property
    def nbytes(self) -> int:
        """As of `glassformer.runs.measurement_jobs.SizedResult`."""
        return 1_000

    @property
    def pays_after(self) -> int | None:
        """Tokens after which compiling has taken less time than it saved; None if it saves nothing."""
        if self.compiled is None or self.compiled >= self.eager:
            return None
        return round(1_000 * self.compile_seconds / (self.eager - self.compiled))


def has_compiler() -> bool:
    """Whether this machine has a C++ compiler, without which nothing can be compiled."""
    return any(shutil.which(name) for name in (os.environ.get("CXX"), "g++", "clang++", "c++") if name)


def measuring(config: ModelConfig) -> Generator[Progress, None, Gains]:
    """Measure, in a process that ends with this generator; says in seconds how far it is. A QueryError if it cannot."""
    anatomy(config).stack("decoder")
    if config.count_parameters() > MOST_PARAMETERS:
        raise QueryError("this model is too large to be measured here: {n:,} parameters.", n=config.count_parameters())
    while not _ONE_AT_A_TIME.acquire(timeout=_LOOK_SECONDS):
        yield Progress(0, SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            process = _begin(config, folder)
            try:
                return (yield from _until_done(process))
            finally:
                _end(process)
    finally:
        _ONE_AT_A_TIME.release()


def _begin(config: ModelConfig, folder: str) -> subprocess.Popen[bytes]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TORCH")}
    environment |= {"TMPDIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", "PYTHONPATH": str(_ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-B", "-m", __name__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, cwd=folder,
        start_new_session=True,  # its compiler ends with it
    )  # fmt: skip
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died at once
        process.stdin.write(config.to_json().encode())
        process.stdin.close()
    return process


def _until_done(process: subprocess.Popen[bytes]) -> Generator[Progress, None, Gains]:
    began, stdout = time.monotonic(), process.stdout
    assert stdout is not None
    while (taken := time.monotonic() - began) < MOST_SECONDS:
        yield Progress(int(taken), SECONDS)
        with contextlib.suppress(subprocess.TimeoutExpired):
            if process.wait(_LOOK_SECONDS) == 0:
                return Gains(**json.loads(stdout.read()))
            raise QueryError("the measurement ended without a result; it may have needed more memory than it may have.")
    raise QueryError("the measurement was stopped because it took longer than {n} seconds.", n=MOST_SECONDS)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process with all that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    sandbox.end(process)


# ------------------------------------------------------------------------------------------------ in the process


def main() -> None:
    """Measure for the config on the standard input, and write what was found to the standard output."""
    config = ModelConfig.from_mapping(json.load(sys.stdin))
    sandbox.die_with_parent()
    if sandbox.can_limit():
        os.nice(10)
        sandbox.limit(memory=MEMORY, seconds=MOST_SECONDS, file_bytes=_FILE_BYTES)
    print(json.dumps(asdict(measure(config))))


def measure(config: ModelConfig) -> Gains:
    """Measure in this process, whose torch then has one thread."""
    steps = Steps(config, n_source=min(_SOURCE, config.max_len), n_written=min(_WRITTEN, config.max_len))
    ways = {"eager": steps.eager, "lean": steps.as_drafts(int8=False), "int8": steps.as_drafts(int8=True)}
    problem, began = "", time.perf_counter()
    if not has_compiler():
        problem = NO_COMPILER
    elif config.placing.adds == "bias" or any(config.windows):
        problem = NO_ONE_SHAPE
    else:
        try:
            ways["compiled"] = steps.compiled()
        except Exception as error:  # whatever torch's compiler cannot do, the rest can be measured
            problem = " ".join(str(error).split())[:200] or type(error).__name__
    taken = time.perf_counter() - began
    found = _in_turns({name: way for name, way in ways.items() if way is not None})
    return Gains(found["eager"], found.get("lean"), found.get("int8"), found.get("compiled"), taken, problem)


def _in_turns(ways: dict[str, Callable[[], int]]) -> dict[str, float]:
    """The median time of the processor for a token, in milliseconds; each way returns how many it wrote."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_TURNS):
        for name, way in ways.items():
            began = time.process_time()
            n = way()
            times[name].append(1_000 * (time.process_time() - began) / n)
    return {name: median(each) for name, each in times.items()}


if __name__ == "__main__":
    main()
