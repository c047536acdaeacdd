"""The training loop.

One epoch after another: learn from every batch, then measure loss and scores on held-out pairs; the checkpoint
folder holds the best epoch so far. The state after each epoch is kept beside it, so that a training that was
stopped goes on from its last full epoch, and one whose time was up from its last step.
"""

import ctypes
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from tqdm import tqdm

from transformer.errors import ClauseError, ConfigError, shown
from transformer.model.taps import NO_TAP
from transformer.model.transformer import Transformer
from transformer.training.data import Batch, Batches, make_batch
from transformer.training.epoch_rows import Cut, Row, Turn, read_cut, read_rows, read_turn
from transformer.training.leaking import without_causal_mask
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

    Raises:
        ConfigError: A value is out of range; names the field.
    """

    epochs: int = 10  # passes over the training pairs
    # The rate nears 0, and the step in which this time is up is the last, also within an epoch; what is learned by
    # then is still scored and stored. 0 for no limit.
    max_minutes: float = 0.0
    batch_tokens: int = 3000  # target tokens a step, padding included
    peak_rate: float = 1.2e-3  # highest learning rate, which one step has (see `schedule`)
    warmup: int = 800  # steps until the peak; at most half of the training
    smoothing: float = 0.1  # label smoothing
    # Alpha of the sampled splits into pieces, new ones each epoch (see `Sampler.draw`); 0 for none.
    sampling: float = 0.0
    clip: float = 1.0  # largest norm of the gradient
    weight_decay: float = 0.01  # of AdamW, on matrices only
    seed: int = 1  # decides initial values, dropout and order
    bf16: bool = True  # autocast to bfloat16
    # Whether the decoder learns with its causal mask; see `leaking` for what happens without.
    causal_mask: bool = True

    def __post_init__(self) -> None:
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if not low <= value <= high:  # nor is NaN
                raise ConfigError(
                    name,
                    "found {found}, expected a value from {low:,} to {high:,}.",
                    found=shown(value),
                    low=low,
                    high=high,
                )


class Trainer:
    """Holds what changes while a model is trained."""

    def __init__(self, model: Transformer, batches: Batches, settings: TrainSettings) -> None:
        self.model = model
        self.batches = batches
        self.settings = settings
        self.tap = NO_TAP if settings.causal_mask else without_causal_mask(model.config)
        self.optimizer = make_optimizer(model, settings)
        self.rows: list[Row] = []
        self.turn: Turn | None = None  # step and seconds at which the rate was highest
        self.cut: Cut | None = None  # set while the last row is that of a part of an epoch
        self.steps_an_epoch = len(batches.epoch(0))

    @property
    def seconds(self) -> float:
        """Time trained so far, by the last row."""
        return self.rows[-1].seconds if self.rows else 0.0

    @property
    def finished(self) -> bool:
        """Whether the epochs or the time are used up."""
        whole = len(self.rows) - (self.cut is not None)
        return whole >= self.settings.epochs or self._is_up(self.seconds)

    def run_epoch(self, measure: Measure) -> Row:
        """Learn from every batch once, or until the time is up, then measure; returns the new row.

        An epoch that the time cut is measured and gets a row as others do. Should the training go on, it goes on with
        the next batch of that epoch, and the row of the whole epoch replaces that of the part.
        """
        started = time.monotonic() - self.seconds
        cut = self._begin_epoch()
        epoch, before = len(self.rows), self.rows[-1] if self.rows else None
        groups = self.batches.epoch(epoch)
        done, total, n_tokens = cut.steps, cut.loss, before.tokens if before else 0
        n_tokens += sum(len(example.tgt) for group in groups[:done] for example in group)
        first, rate = before.step if before else 0, 0.0
        name = f"epoch {epoch + 1}/{self.settings.epochs}"
        bar = tqdm(groups[done:], desc=name, unit="step", mininterval=2.0, initial=done, total=len(groups))
        for group in bar:
            done += 1
            rate = self._rate(first + done, time.monotonic() - started)
            total += self._step(make_batch(group, self.model.config).to(self.model.src_table.device), rate)
            n_tokens += sum(len(example.tgt) for example in group)
            bar.set_postfix(loss=f"{total / done:.3f}", rate=f"{rate:.1e}", refresh=False)
            if self._is_up(time.monotonic() - started) and done < len(groups):
                self.cut = Cut(done, total, _chance(self.model))
                bar.close()
                break
        dev_loss, scores = measure(self.model)
        row = Row(
            epoch=epoch + 1,
            step=first + done,
            loss=_rounded(total / done),
            dev_loss=_rounded(dev_loss),
            dev_bleu=round(scores.bleu, 2),
            dev_chrf=round(scores.chrf, 2),
            learning_rate=rate,
            tokens=n_tokens,
            seconds=math.ceil((time.monotonic() - started) * 10) / 10,  # never less than a limit that was reached
            dev_exact=round(scores.exact, 4),
        )
        self.rows.append(row)
        log.info("%s", row)
        return row

    def _begin_epoch(self) -> Cut:
        """What of the next epoch is done already; chance goes on from there."""
        cut, self.cut = self.cut, None
        if cut is None:
            torch.manual_seed(self.settings.seed * 100_003 + len(self.rows))
            return Cut(0, 0.0, ())
        self.rows.pop()
        torch.set_rng_state(cut.chance[0])
        if len(cut.chance) > 1 and self.model.src_table.is_cuda:
            torch.cuda.set_rng_state(cut.chance[1], self.model.src_table.device)
        return cut

    def _is_up(self, seconds: float) -> bool:
        limit = self.settings.max_minutes * 60
        return bool(limit) and seconds >= limit

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
            loss = target_loss(self.model, batch, smoothing=self.settings.smoothing, tap=self.tap)
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
            "cut": None if self.cut is None else [self.cut.steps, self.cut.loss, list(self.cut.chance)],
        }

    def load_state(self, state: Mapping[str, object]) -> None:
        """Go on from a state that `state` returned.

        A `ClauseError` where the rows, or the optimizer's moments of a parameter, are missing or something else; a
        `KeyError`, `TypeError`, `ValueError` or `RuntimeError` where the parameters are other ones.
        """
        rows, turn, cut = read_rows(state["rows"]), read_turn(state["turn"]), read_cut(state["cut"])
        self.model.load_state_dict(state["model"])  # type: ignore[arg-type]
        if cut is not None:
            torch.Generator().set_state(cut.chance[0])  # a RuntimeError if it is none
        # What the groups say follows from the settings; only the moments are read from the file.
        groups = self.optimizer.state_dict()["param_groups"]
        moments = _moments(state["optimizer"], [p for group in self.optimizer.param_groups for p in group["params"]])
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        self.rows, self.turn, self.cut = rows, turn, cut


def _moments(found: object, parameters: Sequence[Tensor]) -> dict[int, dict[str, Tensor]]:
    """AdamW's state of each parameter, by number; torch itself would take a state that lacks some."""
    moments = found.get("state") if isinstance(found, dict) else None
    if not isinstance(moments, dict) or moments.keys() != set(range(len(parameters))):
        raise ClauseError("the optimizer's state does not belong to these parameters")
    for i, parameter in enumerate(parameters):
        wanted = {"step": torch.Size(()), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        shapes = {name: getattr(value, "shape", None) for name, value in dict(moments[i]).items()}
        if shapes != wanted:
            raise ClauseError("the optimizer's state for parameter {i} is missing or has a different shape", i=i)
    return moments


def _rounded(loss: float) -> float:
    """Four digits behind the point, or of a loss near 0 three that count."""
    return round(loss, 4) if loss >= 0.1 else float(f"{loss:.3g}")


def _chance(model: Transformer) -> tuple[Tensor, ...]:
    """The states of the generators that dropout draws from."""
    device = model.src_table.device
    cpu = torch.get_rng_state()
    return (cpu, torch.cuda.get_rng_state(device)) if device.type == "cuda" else (cpu,)


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
