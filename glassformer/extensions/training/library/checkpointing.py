"""Checkpointing: each epoch's scores, best model, curve, state, snapshots; progress file, TensorBoard logs.

Only the first process writes; if a write fails, the training ends in all processes.
"""

import importlib
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from glassformer.extensions.training.library.data import Example, each_alone
from glassformer.extensions.training.library.distributed import of_rank
from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.scoring import EACH_ALONE, Scores, guesses, held_out_loss, score, translate
from glassformer.extensions.training.library.state import (
    PROGRESS_FILE,
    EpochRow,
    better,
    folder_beside,
    paths,
    write_rows,
    write_state,
    writing,
)
from transformer.checkpoint import snapshots
from transformer.checkpoint.load import CONFIG
from transformer.checkpoint.save import CURVE, CheckpointContents, save
from transformer.checkpoint.snapshots import SnapshotInfo
from transformer.errors import DataError
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.text.tokenizer import Tokenizer

PROGRESS_SECONDS = 1.0  # seconds between two of these files

Log = Callable[[Mapping[str, float], int], object]  # writes scalars of a step


class EpochProgress:
    """Shows the place of a trainer; only the first process has one."""

    def __init__(self, trainer: Trainer, out: Path, log: Log) -> None:
        self._trainer, self._path, self._log = trainer, folder_beside(out) / PROGRESS_FILE, log
        self._bar: Any = None
        self._written = time.monotonic()
        self._tokens, self._speed = trainer.place.tokens, 0.0

    def show(self) -> None:
        """Show the step that was just done, or at the beginning of an epoch the bar."""
        trainer, place = self._trainer, self._trainer.place
        if self._bar is None:
            name = f"epoch {place.epoch + 1}/{trainer.settings.epochs}"
            self._bar = tqdm(desc=name, unit="step", mininterval=2.0, initial=place.steps - 1, total=trainer.n_groups)
        self._bar.update(place.steps - self._bar.n)
        now = time.monotonic()
        if now - self._written >= PROGRESS_SECONDS or place.step == 1:
            self._speed = (place.tokens - self._tokens) / max(now - self._written, 1e-3)
            self._tokens, self._written = place.tokens, now
            said = self._said()
            self._bar.set_postfix_str(
                f"loss {said['loss']:.3f}, {said['tokens_a_second']:,.0f} tokens/s, {_clock(said['left'])} left",
                refresh=False,
            )
            self._write(said)
            self._log({"loss": said["loss"], "rate": place.rate, "tokens a second": self._speed}, place.step)

    def end_epoch(self) -> None:
        """Close the bar, and tell the scores of the epoch."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        row = self._trainer.rows[-1]
        names = ("dev_loss", "dev_bleu", "dev_chrf", "dev_exact")
        self._log({name.replace("_", " "): getattr(row, name) for name in names}, row.step)
        self._write(self._said())

    def _said(self) -> dict[str, float]:
        trainer, place = self._trainer, self._trainer.place
        left = (trainer.total - place.step) * place.seconds / max(place.step, 1)
        limit = trainer.settings.max_minutes * 60
        if limit:
            left = min(left, limit - place.seconds)
        return {
            "step": place.step,
            "steps": trainer.total,
            "epoch": place.epoch + (place.steps > 0),
            "loss": round(sum(place.recent) / max(len(place.recent), 1), 4),
            "tokens_a_second": round(self._speed, 1),
            "seconds": round(place.seconds, 1),
            "left": 0.0 if trainer.finished else round(max(left, 0.0), 1),
        }

    def _write(self, said: Mapping[str, float]) -> None:
        partial = self._path.with_suffix(".partial")
        with suppress(OSError):  # it is nothing that a training needs
            partial.write_text(json.dumps(said), encoding="ascii")
            os.replace(partial, self._path)


def _clock(seconds: float) -> str:
    return time.strftime("%H:%M:%S" if seconds >= 3600 else "%M:%S", time.gmtime(seconds))


def log_of(kind: str | None, out: Path) -> Log:
    """What writes scalars beside a checkpoint folder; a `DataError` if the program that reads them is missing."""
    if kind is None:
        return lambda scalars, step: None
    folder = folder_beside(out)
    try:
        if kind == "tensorboard":
            writer = importlib.import_module("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"))
            return lambda scalars, step: [writer.add_scalar(name, n, step) for name, n in scalars.items()]
        os.environ["TRACKIO_DIR"] = str(folder / "trackio")  # it is read when the module is loaded
        trackio = importlib.import_module("trackio")
        trackio.init(project=out.name, name=out.name, resume="allow")
        return lambda scalars, step: trackio.log(dict(scalars), step=step)
    except ImportError as error:
        raise DataError(
            "--log {kind}: {name} is not installed; pip install {kind} brings it.", kind=kind, name=error.name or kind
        ) from None


# ------------------------------------------------------------------------------------------------ snapshots


MOST_PAIRS = 500  # of the dev file, on which a snapshot is measured
BYTES = 2  # a value, in bfloat16


def check_snapshots(count: int, config: ModelConfig) -> None:
    """A `DataError` where so many snapshots of a model would be too many."""
    if count and not 2 <= count <= snapshots.MOST:
        raise DataError(
            "--snapshots: found {found}, expected 0 for none, or a value from 2 to {most}.",
            found=count,
            most=snapshots.MOST,
        )
    size = BYTES * config.count_parameters()
    if count * size > snapshots.MOST_BYTES:
        raise DataError(
            "--snapshots {count}: would hold {found:,} bytes of parameters, and the limit is {most:,}; choose "
            "at most {fit}.",
            count=count,
            found=count * size,
            most=snapshots.MOST_BYTES,
            fit=snapshots.MOST_BYTES // size,
        )


def planned_steps(total: int, count: int) -> list[int]:
    """The steps of `count` snapshots of a training of `total` steps: 0, 1, and so on to the last, or fewer."""
    if not count:
        return []
    steps = [0]
    for i in range(1, count):
        share = (i - 1) / (count - 2) if count > 2 else 1.0
        steps.append(max(round(total**share), steps[-1] + 1))
    return [step for step in steps if step < total] + [total]


def superfluous(taken: Sequence[int], planned: Sequence[int], count: int) -> list[int]:
    """The snapshots to delete, to have at most `count` together with the planned ones.

    They are the closest to another snapshot by logarithm; the first and the last stay.
    """
    left, gone = sorted(taken), []
    while len(left) > 2 and len(left) + sum(step > left[-1] for step in planned) > count:
        near = zip(left, left[1:], left[2:], strict=False)
        gaps = {step: math.log((after + 1) / (before + 1)) for before, step, after in near}
        gone.append(min(gaps, key=lambda step: gaps[step]))
        left.remove(gone[-1])
    return gone


def remove_snapshots(out: Path, steps: Sequence[int]) -> None:
    """Remove snapshots of a checkpoint folder, and their folder if nothing is left in it."""
    folder = snapshots.folder_of(out)
    for step in steps:
        (folder / f"{step}{snapshots.FILE}").unlink(missing_ok=True)
    with suppress(OSError):
        for partial in folder.glob("*.partial"):  # of a training that was killed
            partial.unlink()
        folder.rmdir()


@dataclass(kw_only=True, eq=False)
class Keeper:
    """Measures and writes for a trainer."""

    trainer: Trainer
    out: Path  # the checkpoint folder
    dev: Sequence[Example]  # the held-out pairs that fit
    references: Sequence[str]  # their targets as text
    tokenizers: tuple[bytes, ...]  # the bytes of the vocabularies
    job: Mapping[str, str]  # what must not change for the training to resume, by name
    numbers: Mapping[str, str]  # what decides the last bits of its numbers, by name
    training: Mapping[str, object]  # what the card says of the training, but for how far it came
    scored: Mapping[str, object]  # what it says of the file that is scored on
    card: Mapping[str, object]  # what else it says
    snapshots: int  # how many to take
    log: str | None  # the program that scalars are written for
    progress: EpochProgress | None = None  # of the first process

    def __post_init__(self) -> None:
        self.processes = self.trainer.processes
        self._tokenizer = Tokenizer(self.tokenizers[-1])
        self._planned = frozenset(planned_steps(self.trainer.total, self.snapshots))
        self._saved = self.trainer.place.seconds
        self.processes.from_first(self._show_progress)

    def _show_progress(self) -> None:
        self.progress = EpochProgress(self.trainer, self.out, log_of(self.log, self.out))

    def begin(self, *, anew: bool) -> None:
        """Write the first files, before any step: the model, its state, its first snapshot."""
        state = self.trainer.state()
        self.processes.from_first(lambda: self._begin(state, anew=anew))
        if self.trainer.place.step == 0 and self.snapshots:
            self._snap()

    def _begin(self, state: Mapping[str, Any], *, anew: bool) -> None:
        out, taken = self.out, snapshots.steps(self.out)
        with writing(out):
            if anew:
                for path in (*paths(out), out / CURVE):
                    path.unlink(missing_ok=True)
                remove_snapshots(out, taken)
                self._write_state(state)
            elif self.snapshots:
                remove_snapshots(out, superfluous(taken, sorted(self._planned), self.snapshots))
            if anew or not (out / CONFIG).exists():
                self._save(state["model"])

    def after_step(self) -> None:
        """Show where the training is, and keep it if it is time to."""
        place, minutes = self.trainer.place, self.trainer.settings.save_minutes
        if self.progress is not None:
            self.progress.show()
        if place.step in self._planned:
            self._snap()
        if place.seconds - self._saved >= minutes * 60:
            self._keep()

    def after_epoch(self, row: EpochRow) -> None:
        """Write the epoch, and the model if no epoch was better."""
        if self.progress is not None:
            self.progress.end_epoch()
            print(
                f"epoch {row.epoch}: loss {row.loss:.3f}, dev loss {row.dev_loss:.3f}, dev BLEU {row.dev_bleu:.1f}, "
                f"dev chrF {row.dev_chrf:.1f}, dev exact {row.dev_exact:.1%}, {row.seconds / 60:.1f} min",
                flush=True,
            )
        self._keep(row)

    def end(self) -> None:
        """Take the last snapshot."""
        step, out = self.trainer.place.step, self.out
        if self.snapshots and self.processes.from_first(lambda: step not in snapshots.steps(out)):
            self._snap()

    def _snap(self) -> None:
        """Write a snapshot of the current parameters; every process must call this together."""
        with writing(self.out):
            self.trainer.read_losses()
            model, place = self.trainer.plain_model(), self.trainer.place
            loss, scores = self.measure(model, MOST_PAIRS)
            moment = SnapshotInfo(
                step=place.step,
                epoch=place.epoch + (place.steps > 0),
                tokens=place.tokens,
                seconds=round(place.seconds, 1),
                loss=sum(place.recent) / len(place.recent) if place.recent else None,
                dev_loss=loss,
                dev_bleu=round(scores.bleu, 2),
                dev_chrf=round(scores.chrf, 2),
                dev_exact=round(scores.exact, 4),
                learning_rate=place.rate if place.step else None,
            )
            self.processes.from_first(lambda: snapshots.write(self.out, model.state_dict(), moment))

    def _keep(self, row: EpochRow | None = None) -> None:
        state, trainer = self.trainer.state(), self.trainer

        def write() -> None:
            with writing(self.out):
                if row is not None:
                    if row == better(trainer.rows, leak=not trainer.settings.causal_mask):
                        self._save(trainer.scored.state_dict(), row)
                    write_rows(trainer.rows, self.out / CURVE)
                self._write_state(state)

        self.processes.from_first(write)
        self._saved = trainer.place.seconds

    def _write_state(self, state: Mapping[str, object]) -> None:
        stored = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in self.tokenizers]
        more = {"tokenizers": stored, "job": dict(self.job), "numbers": dict(self.numbers)}
        write_state(self.out, {**state, **more})

    def _save(self, parameters: Mapping[str, Tensor], row: EpochRow | None = None) -> None:
        """Write the checkpoint folder: an epoch's model, or the initial one."""
        scores: list[dict[str, object]] = []
        done: dict[str, object] = {"epochs": 0, "target_tokens": 0, "seconds": 0.0}
        if row is not None:
            done = {"epochs": row.epoch, "target_tokens": row.tokens, "seconds": row.seconds}
            found = {"decoding": "greedy", "bleu": row.dev_bleu, "chrf": row.dev_chrf, "exact": row.dev_exact}
            if not self.trainer.model.anatomy.writes:
                found = {"measure": EACH_ALONE, "loss": row.dev_loss, "exact": row.dev_exact}
            scores.append({**self.scored, **found})
        record = {**self.card, "training": {**self.training, **done}, "scores": scores}
        save(CheckpointContents(self.trainer.model.config, parameters, self.tokenizers, record), self.out)

    def measure(self, model: Transformer, most: int | None = None) -> tuple[float, Scores]:
        """Loss and scores on the held-out pairs, or the first so many; every process has its share of them."""
        processes, dev, references = self.processes, self.dev[:most], self.references[:most]
        mine, writes = of_rank(dev, processes.rank, processes.count), model.anatomy.writes
        if not writes:
            mine = each_alone(mine, self._tokenizer, model.config)
        n, tap = sum(len(example.tgt) for example in mine), self.trainer.tap

        def measured() -> tuple[float, float, list[str]]:
            if not mine:
                return 0.0, 0.0, []
            if not writes:
                return *guesses(model, mine, tap=tap), []
            return held_out_loss(model, mine, tap=tap), 0.0, translate(model, self._tokenizer, mine)

        loss, right, outputs = processes.agreed(measured)
        if processes.count > 1:
            sums = torch.tensor([loss * n, right * n, n], dtype=torch.float64)
            loss, right = (processes.total(sums) / sums[2]).tolist()[:2]
            outputs = processes.gathered(outputs)
        return loss, score(outputs, references) if writes else Scores(0.0, 0.0, right)
