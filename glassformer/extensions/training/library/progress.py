"""How far a training is: a bar on the terminal, a file for whoever watches, scalars for TensorBoard or trackio."""

import importlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from glassformer.extensions.training.library.loop import Trainer
from glassformer.extensions.training.library.state import folder_beside
from transformer.errors import DataError

FILE = "progress.json"
EVERY = 1.0  # seconds between two of these files

Log = Callable[[Mapping[str, float], int], object]  # writes scalars of a step


class Progress:
    """Shows the place of a trainer; only the first process has one."""

    def __init__(self, trainer: Trainer, out: Path, log: Log) -> None:
        self._trainer, self._path, self._log = trainer, folder_beside(out) / FILE, log
        self._bar: Any = None
        self._written = self._seen = time.monotonic()
        self._tokens, self._speed = trainer.place.tokens, 0.0

    def show(self) -> None:
        """Show the step that was just done, or at the beginning of an epoch the bar."""
        trainer, place = self._trainer, self._trainer.place
        if self._bar is None:
            name = f"epoch {place.epoch + 1}/{trainer.settings.epochs}"
            self._bar = tqdm(desc=name, unit="step", mininterval=2.0, initial=place.steps - 1, total=trainer.n_groups)
        self._bar.update(place.steps - self._bar.n)
        now = time.monotonic()
        if now - self._written >= EVERY or place.step == 1:
            self._speed = (place.tokens - self._tokens) / max(now - self._seen, 1e-3)
            self._tokens, self._seen = place.tokens, now
            said = self._said()
            self._bar.set_postfix_str(
                f"loss {said['loss']:.3f}, {said['tokens_a_second']:,.0f} tokens/s, {_clock(said['left'])} left",
                refresh=False,
            )
            self._write(said)
            self._log({"loss": said["loss"], "rate": place.rate, "tokens a second": self._speed}, place.step)
            self._written = now

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
