"""The training loop.

One epoch after another: learn from every batch, then measure loss and scores on held-out pairs; the checkpoint
folder holds the best epoch so far. The state after each epoch is kept beside it, so that a training that was
stopped goes on from its last full epoch.
"""

import csv
import ctypes
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from tqdm import tqdm

from transformer.errors import ConfigError, shown
from transformer.model.transformer import Transformer
from transformer.training.data import Batch, Batches, make_batch
from transformer.training.loss import target_loss
from transformer.training.schedule import learning_rate, warmed
from transformer.training.scoring import Scores

Measure = Callable[[Transformer], tuple[float, Scores]]  # dev loss and scores

log = logging.getLogger("glassformer.training")


# Far beyond any sensible value; what lies outside is a mistake, or a way to train nothing.
LIMITS: dict[str, tuple[float, float]] = {
    "epochs": (1, 1_000_000),
    "max_minutes": (0, 10_000_000),
    "batch_tokens": (1, 10_000_000),
    "peak_rate": (1e-8, 1),
    "warmup": (0, 10_000_000),
    "smoothing": (0, 0.9),
    "sampling": (0, 1_000),
    "clip": (1e-6, 1_000_000),
    "weight_decay": (0, 1),
    "seed": (0, 2**32 - 1),
}


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How to train.

    Attributes:
        epochs: Passes over the training pairs.
        max_minutes: The rate nears 0 and the training ends after this time at the latest; 0 for no limit.
        batch_tokens: Target tokens a step, padding included.
        peak_rate: Highest learning rate, which one step has (see `schedule`).
        warmup: Steps until the peak; at most half of the training.
        smoothing: Label smoothing.
        sampling: Alpha of the sampled splits into pieces, new ones each epoch (see `Sampler.draw`); 0 for none.
        clip: Largest norm of the gradient.
        weight_decay: Of AdamW, on matrices only.
        seed: Decides initial values, dropout and order.
        bf16: Autocast to bfloat16.

    Raises:
        ConfigError: A value is out of range; names the field.
    """

    epochs: int = 10
    max_minutes: float = 0.0
    batch_tokens: int = 3000
    peak_rate: float = 1.2e-3
    warmup: int = 800
    smoothing: float = 0.1
    sampling: float = 0.0
    clip: float = 1.0
    weight_decay: float = 0.01
    seed: int = 1
    bf16: bool = True

    def __post_init__(self) -> None:
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if not low <= value <= high:  # nor is NaN
                raise ConfigError(
                    name, "found {found}, expected {low:,} to {high:,}.", found=shown(value), low=low, high=high
                )


@dataclass(frozen=True)
class Row:
    """One line of training.csv: the state after an epoch. Losses in nats a target token, without smoothing on dev."""

    epoch: int
    step: int
    loss: float
    dev_loss: float
    dev_bleu: float
    dev_chrf: float
    learning_rate: float
    tokens: int
    seconds: float
    dev_exact: float = 0.0


class Trainer:
    """Holds what changes while a model is trained.

    Args:
        model: A new model on its device.
        batches: What to learn from.
        settings: How.
    """

    def __init__(self, model: Transformer, batches: Batches, settings: TrainSettings) -> None:
        self.model = model
        self.batches = batches
        self.settings = settings
        self.optimizer = make_optimizer(model, settings)
        self.rows: list[Row] = []
        self.turn: tuple[int, float] | None = None  # step and seconds at which the rate was highest
        self.steps_an_epoch = len(batches.epoch(0))

    @property
    def seconds(self) -> float:
        """Time trained so far, by the last row."""
        return self.rows[-1].seconds if self.rows else 0.0

    @property
    def finished(self) -> bool:
        """Whether the epochs or the time are used up."""
        limit = self.settings.max_minutes * 60
        return len(self.rows) >= self.settings.epochs or bool(limit and self.seconds >= limit)

    def run_epoch(self, measure: Measure) -> Row:
        """Learn from every batch once, then measure.

        Args:
            measure: Gives dev loss and scores of the model.

        Returns:
            The new row.
        """
        epoch, started = len(self.rows), time.monotonic() - self.seconds
        torch.manual_seed(self.settings.seed * 100_003 + epoch)
        groups = self.batches.epoch(epoch)
        total, n_tokens, rate = 0.0, self.rows[-1].tokens if self.rows else 0, 0.0
        first = self.rows[-1].step if self.rows else 0
        bar = tqdm(groups, desc=f"epoch {epoch + 1}/{self.settings.epochs}", unit="step", mininterval=2.0)
        for index, group in enumerate(bar):
            step = first + index + 1
            rate = self._rate(step, time.monotonic() - started)
            loss = self._step(make_batch(group, self.model.config).to(self.model.src_table.device), rate)
            n_tokens += sum(len(example.tgt) for example in group)
            total += loss
            bar.set_postfix(loss=f"{total / (index + 1):.3f}", rate=f"{rate:.1e}", refresh=False)
        dev_loss, scores = measure(self.model)
        row = Row(
            epoch=epoch + 1,
            step=first + len(groups),
            loss=round(total / len(groups), 4),
            dev_loss=round(dev_loss, 4),
            dev_bleu=round(scores.bleu, 2),
            dev_chrf=round(scores.chrf, 2),
            learning_rate=rate,
            tokens=n_tokens,
            seconds=round(time.monotonic() - started, 1),
            dev_exact=round(scores.exact, 4),
        )
        self.rows.append(row)
        log.info("%s", row)
        return row

    def _rate(self, step: int, seconds: float) -> float:
        """The learning rate of a step that begins after `seconds`; remembers where the rate turned."""
        progress, warmup = self._progress(step, seconds), self.settings.warmup
        if self.turn is None and warmed(step, progress, warmup=warmup) >= 1:
            self.turn = step, seconds
        turn = None if self.turn is None else self._progress(*self.turn)
        return learning_rate(step, progress, peak=self.settings.peak_rate, warmup=warmup, turn=turn)

    def _progress(self, step: int, seconds: float) -> float:
        share = step / (self.steps_an_epoch * self.settings.epochs)
        limit = self.settings.max_minutes * 60
        return min(max(share, seconds / limit if limit else 0.0), 1.0)

    def _step(self, batch: Batch, rate: float) -> float:
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with plain_attention(), self._autocast():
            loss = target_loss(self.model, batch, smoothing=self.settings.smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.model.eval()
        return float(loss.detach())

    def _autocast(self) -> AbstractContextManager[object]:
        device = self.model.src_table.device.type
        return torch.autocast(device, torch.bfloat16) if self.settings.bf16 else nullcontext()

    def state(self) -> dict[str, object]:
        """All that is needed to go on: plain values and tensors."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rows": [asdict(row) for row in self.rows],
            "turn": self.turn,
        }

    def load_state(self, state: dict[str, object]) -> None:
        """Go on from a state that `state` returned."""
        self.model.load_state_dict(state["model"])  # type: ignore[arg-type]
        self.optimizer.load_state_dict(state["optimizer"])  # type: ignore[arg-type]
        self.rows = [Row(**row) for row in state["rows"]]  # type: ignore[attr-defined]
        self.turn = state["turn"]  # type: ignore[assignment]


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


def make_optimizer(model: Transformer, settings: TrainSettings) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices but not on biases and norms.

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization" (2019); betas of Vaswani et al. (2017).
    """
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write training.csv."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(Row.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware multiplies bfloat16 faster than float32."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def keep_freed_memory() -> None:
    """Let glibc keep what it frees: every step allocates the same large tensors, and fresh pages cost time."""
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return  # not glibc
    mmap_threshold, trim_threshold = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
    libc.mallopt(mmap_threshold, 1 << 30)
    libc.mallopt(trim_threshold, (1 << 31) - 1)
