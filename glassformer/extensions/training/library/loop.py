"""Training loop (`Trainer`): epochs, steps, learning rate, mean parameters, and the state to resume from.

Each epoch learns from every batch, then measures loss and scores on held-out pairs. Several processes share each batch
by rows, and each may process its rows in several parts.

Every random draw depends only on its place: the order of batches on the seed and the epoch; dropout on the seed, the
epoch, the step and the process. So the parameters, the optimizer's moments and the `TrainingPosition` are the whole
state, and a resumed training produces the same parameters, bit by bit.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
import torch
from torch import Tensor

from glassformer.extensions.training.library.data import Batch, Batches, Example, make_batch
from glassformer.extensions.training.library.distributed import (
    Graphed,
    Learner,
    Processes,
    autocast,
    distributed,
    filled,
    last_part,
    make_optimizer,
    of_rank,
    parameters_of,
    plain_attention,
    set_parameters,
    set_rate,
    slices_like,
    whole,
)
from glassformer.extensions.training.library.scoring import Scores
from glassformer.extensions.training.library.settings import TrainSettings, learning_rate, warmed
from glassformer.extensions.training.library.state import (
    EpochRow,
    TrainingPosition,
    Turn,
    invalid,
    read_course,
    since_best,
)
from transformer.model.taps import NO_TAP, without_causal_mask
from transformer.model.transformer import Transformer

Measure = Callable[[Transformer], tuple[float, Scores]]  # dev loss and scores
Parameters = Mapping[str, Tensor]

LOOK = 20  # steps between fetches of losses: each fetch makes the GPU wait
RECENT = 50  # steps of which the last loss is the mean

log = logging.getLogger("glassformer.training")


class Trainer:
    """Holds what changes while a model is trained.

    `model` is on the device of this process; `batches` are one epoch at a time; `processes` train together, each with a
    trainer like this one.
    """

    def __init__(
        self, model: Transformer, batches: Batches, settings: TrainSettings, processes: Processes | None = None
    ) -> None:
        self.processes = processes or Processes(model.src_table.device)
        self.model, self.batches, self.settings = model, batches, settings
        self.tap = NO_TAP if settings.causal_mask else without_causal_mask(model.config)
        learner = Learner(model, smoothing=settings.smoothing, tap=self.tap)
        self.learner = distributed(learner, self.processes, shard=settings.shard).eval()
        self.optimizer = make_optimizer(model.parameters(), settings)
        device = self.processes.device.type
        self.scaler = torch.amp.GradScaler(device, enabled=settings.precision == "fp16")
        # Only one GPU replays steps: several synchronise, and float16 must check its gradients.
        alone = self.processes.count == 1 and device == "cuda"
        plays = alone and settings.accumulate == 1 and not settings.shard and settings.precision != "fp16"
        self.played = Graphed(self._whole_step) if plays else None
        self.rows: list[EpochRow] = []
        self.turn: Turn | None = None  # step and seconds at which the rate was highest
        self.place = TrainingPosition()
        self.ends: deque[Parameters] = deque(maxlen=settings.average)  # parameters at the last ends of epochs
        self.steps_an_epoch = len(batches.epoch(0))
        self.n_groups = self.steps_an_epoch  # of the current epoch
        self.scored = model  # the model measured last, stored if it is the best
        self._unread: list[Tensor] = []  # this process's share of the losses of the last steps
        self._origin = time.monotonic()

    @property
    def total(self) -> int:
        """The steps of the whole training, without its time limit."""
        return self.steps_an_epoch * self.settings.epochs

    @property
    def finished(self) -> bool:
        """Whether the epochs, the time or the patience are used up, and the last parameters are scored."""
        patience = self.settings.patience
        lost = bool(patience) and since_best(self.rows, leak=not self.settings.causal_mask) >= patience
        scored = self.place.steps == 0 or len(self.rows) > self.place.epoch
        return self.place.epoch >= self.settings.epochs or (scored and (lost or self._is_up()))

    def run_epoch(self, between: Callable[[], None] = lambda: None) -> None:
        """Learn from the rest of an epoch's batches, or until the time is up; `between` is called after steps.

        If the epoch was already measured in part, its row will be replaced.
        """
        del self.rows[self.place.epoch :]
        self._origin = time.monotonic() - self.place.seconds
        groups = self.batches.epoch(self.place.epoch)
        self.n_groups = len(groups)
        for group in groups[self.place.steps :]:
            self.step(group)
            if self._is_up():
                break
            between()

    def end_epoch(self, measure: Measure) -> EpochRow:
        """Measure the model, and return the new row.

        An epoch that the time limit cut is measured as well. A resumed training continues with that epoch's next batch,
        and the row of the whole epoch replaces that of the part.
        """
        self.read_losses()
        place, full = self.place, self.place.steps == self.n_groups
        self.scored = self.plain_model()
        if self.settings.average > 1:
            self.ends.append({name: t.cpu().clone() for name, t in self.scored.state_dict().items()})
            self.scored = _with(self.model, _mean(list(self.ends)))
            if not full:
                self.ends.pop()  # the epoch had not ended
        dev_loss, scores = measure(self.scored)
        seconds = self.processes.time(time.monotonic() - self._origin)
        row = EpochRow(
            epoch=place.epoch + 1,
            step=place.step,
            loss=_rounded(place.loss / place.steps),
            dev_loss=_rounded(dev_loss),
            dev_bleu=round(scores.bleu, 2),
            dev_chrf=round(scores.chrf, 2),
            learning_rate=place.rate,
            tokens=place.tokens,
            seconds=math.ceil(seconds * 10) / 10,  # never less than a limit that was reached
            dev_exact=round(scores.exact, 4),
        )
        self.rows.append(row)
        self.place = replace(place, seconds=seconds)
        if full:
            self.place = replace(self.place, epoch=place.epoch + 1, steps=0, loss=0.0)
        log.info("%s", row)
        return row

    def plain_model(self) -> Transformer:
        """The current model, with all parameters."""
        return _with(self.model, parameters_of(self.model)) if self.settings.shard else self.model

    def _is_up(self) -> bool:
        limit = self.settings.max_minutes * 60
        return bool(limit) and self.place.seconds >= limit

    def _rate(self, step: int, seconds: float) -> float:
        """The learning rate of a step that begins after `seconds`; stores where the rate turned."""
        progress, warmup = self._progress(step, seconds), self.settings.warmup
        if self.turn is None and warmed(step, progress, warmup=warmup) >= 1:
            self.turn = step, seconds
        turn, peak = None if self.turn is None else self._progress(*self.turn), self.settings.peak_rate
        return learning_rate(step, progress, peak=peak, warmup=warmup, turn=turn, schedule=self.settings.schedule)

    def _progress(self, step: int, seconds: float) -> float:
        limit = self.settings.max_minutes * 60
        return min(max(step / self.total, seconds / limit if limit else 0.0), 1.0)

    def step(self, group: Sequence[Example]) -> None:
        """Learn from a batch with the other processes, each from every n-th row.

        Every process must join in the gradients: an empty share becomes one row with a weight of 0.
        """
        place, processes, n_parts = self.place, self.processes, self.settings.accumulate
        rows = of_rank(group, processes.rank, processes.count)
        shares = [of_rank(rows, part, n_parts) for part in range(n_parts)]
        parts = [make_batch(share or group[:1], self.model.config) for share in shares]
        counts = [batch.n_tokens if share else 0 for batch, share in zip(parts, shares, strict=True)]
        n_tokens = int(processes.total(torch.tensor(sum(counts))))
        rate = self._rate(place.step + 1, place.seconds)
        loss = self.learn(parts, [n / n_tokens for n in counts], rate)
        self._unread.append(loss)
        seconds = processes.time(time.monotonic() - self._origin)
        self.place = replace(
            place,
            steps=place.steps + 1,
            step=place.step + 1,
            tokens=place.tokens + n_tokens,
            rate=rate,
            seconds=seconds,
        )
        at_once = processes.count == 1 and processes.device.type == "cpu"
        if at_once or self.place.step == 1 or self.place.step % LOOK == 0:
            self.read_losses()

    def learn(self, parts: Sequence[Batch], weights: Sequence[float], rate: float) -> Tensor:
        """One optimizer step from parts of a batch, each with its share of the tokens; returns the loss.

        The loss is the sum over these parts; over all processes it is the mean loss per token of the whole batch.
        """
        set_rate(self.optimizer, rate)
        if self.played is not None:
            self.draw(0)
            return self.played(filled(parts[0], self.model.config, batch_tokens=self.settings.batch_tokens))
        self.learner.train()
        total = torch.zeros((), device=self.processes.device)
        for i, (batch, weight) in enumerate(zip(parts, weights, strict=True)):
            self.draw(i)
            with last_part(self.learner, last=i == len(parts) - 1):
                total += self.learn_part(batch.to(self.processes.device), weight)
        self.change()
        self.learner.eval()
        return total

    def draw(self, part: int) -> None:
        """Make the next draws depend only on the place in the training."""
        place = self.place
        torch.manual_seed(_seed(self.settings.seed, place.epoch, place.steps, self.processes.rank, part))

    def learn_part(self, batch: Batch, weight: float) -> Tensor:
        """Add the gradients of a part of a batch; returns its share of the loss."""
        with plain_attention(), autocast(self.processes.device, self.settings.precision):
            loss = self.learner(batch) * weight
        # Gradients are averaged over processes, but these are parts of a sum.
        self.scaler.scale(loss * self.processes.count).backward()
        return loss.detach()

    def change(self) -> None:
        """Update the parameters, and clear the gradients."""
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()

    def _whole_step(self, batch: Batch) -> Tensor:
        self.learner.train()
        loss = self.learn_part(batch, 1.0)
        self.change()
        self.learner.eval()
        return loss

    def read_losses(self) -> None:
        """Fetch the losses of the last steps; every process must call this together."""
        if not self._unread:
            return
        losses = self.processes.total(torch.stack(self._unread).double().cpu()).tolist()
        self._unread.clear()
        total = self.place.loss
        for loss in losses:
            total += loss
        self.place = replace(self.place, loss=total, recent=(*self.place.recent, *losses)[-RECENT:])

    def state(self) -> dict[str, object]:
        """Everything needed to resume: plain values and whole tensors. Every process must call this together."""
        self.read_losses()
        moments = self.optimizer.state_dict()["state"]
        return {
            "model": parameters_of(self.model),
            "optimizer": {i: {name: whole(t) for name, t in one.items()} for i, one in moments.items()},
            "scaler": self.scaler.state_dict(),
            "rows": [asdict(row) for row in self.rows],
            "turn": self.turn,
            "place": asdict(self.place),
            "ends": [dict(end) for end in self.ends],
        }

    def load_state(self, state: Mapping[str, object]) -> None:
        """Resume from the result of `state`, from any number of processes.

        A `ClauseError` if the rows, or a parameter's moments, are missing or invalid; a `KeyError`, `TypeError`,
        `ValueError`, `AttributeError` or `RuntimeError` if the parameters do not match.
        """
        rows, turn, place = read_course(state)
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        moments = _moments(state["optimizer"], parameters, begun=place.step > 0)
        ends = _ends(state["ends"], self.model)
        set_parameters(self.model, state["model"])  # type: ignore[arg-type]
        # The groups follow from the settings; only the moments are read from the file.
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        if self.scaler.is_enabled() and state["scaler"]:  # it is empty if another precision was used before
            self.scaler.load_state_dict(state["scaler"])  # type: ignore[arg-type]
        self.rows, self.turn, self.place = rows, turn, place
        self.ends.extend(ends)


def _with(model: Transformer, parameters: Parameters) -> Transformer:
    """A separate model with these parameters, in evaluation mode."""
    copy = Transformer(model.config).to(model.src_table.device).eval()
    set_parameters(copy, parameters)
    return copy


def _mean(ends: Sequence[Parameters]) -> Parameters:
    return {name: torch.stack([end[name] for end in ends]).mean(dim=0) for name in ends[0]}


def _seed(*where: int) -> int:
    return int(np.random.SeedSequence(where).generate_state(1, np.uint64)[0])


def _moments(found: object, parameters: Sequence[Tensor], *, begun: bool) -> dict[int, dict[str, Tensor]]:
    """AdamW's state of each parameter, by number; torch itself would accept an incomplete state."""
    if not isinstance(found, dict) or found.keys() != set(range(len(parameters) if begun else 0)):
        raise invalid("optimizer", list(found) if isinstance(found, dict) else found)
    moments = {}
    for i, values in found.items():
        parameter = parameters[i]
        wanted = {"step": torch.Size(()), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        shapes = {name: getattr(value, "shape", None) for name, value in dict(values).items()}
        if shapes != wanted:
            raise invalid("optimizer", {i: shapes})
        moments[i] = {name: t if t.dim() == 0 else slices_like(parameter, t) for name, t in values.items()}
    return moments


def _ends(found: object, model: Transformer) -> list[Parameters]:
    """The parameters at the ends of epochs in a stored state."""
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if isinstance(found, list) and all(
        isinstance(end, dict) and {name: getattr(t, "shape", None) for name, t in end.items()} == shapes
        for end in found
    ):
        return found
    raise invalid("ends", type(found).__name__)


def _rounded(loss: float) -> float:
    """Four decimals, or three significant digits of a loss near 0."""
    return round(loss, 4) if loss >= 0.1 else float(f"{loss:.3g}")
