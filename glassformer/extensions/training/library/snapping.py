"""When snapshots of a training are taken, and how good the model was then.

Most happens early, so their steps are spaced by logarithm: the first ones a step apart, the last ones far.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from glassformer.extensions.training.library.loop import Measure, Trainer
from transformer.checkpoint import snapshots
from transformer.checkpoint.snapshots import Moment
from transformer.errors import DataError
from transformer.model.config import ModelConfig

MOST_PAIRS = 500  # of the dev file, on which a snapshot is measured
BYTES = 2  # a value, in bfloat16


def check(count: int, config: ModelConfig) -> None:
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


def planned(total: int, count: int) -> list[int]:
    """The steps of `count` snapshots of a training of `total` steps: 0, 1, and so on to the last, or fewer."""
    if not count:
        return []
    steps = [0]
    for i in range(1, count):
        share = (i - 1) / (count - 2) if count > 2 else 1.0
        steps.append(max(round(total**share), steps[-1] + 1))
    return [step for step in steps if step < total] + [total]


def superfluous(taken: Sequence[int], planned: Sequence[int], count: int) -> list[int]:
    """Which of the snapshots taken have to go, so that there are at most `count` with those planned.

    They are those that stand closest to another one by logarithm; the first and the last stay.
    """
    left, gone = sorted(taken), []
    while len(left) > 2 and len(left) + sum(step > left[-1] for step in planned) > count:
        near = zip(left, left[1:], left[2:], strict=False)
        gaps = {step: math.log((after + 1) / (before + 1)) for before, step, after in near}
        gone.append(min(gaps, key=lambda step: gaps[step]))
        left.remove(gone[-1])
    return gone


def remove(out: Path, steps: Sequence[int]) -> None:
    """Remove snapshots of a checkpoint folder, and their folder if nothing is left in it."""
    folder = snapshots.folder_of(out)
    for step in steps:
        (folder / f"{step}{snapshots.FILE}").unlink(missing_ok=True)
    with suppress(OSError):
        for partial in folder.glob("*.partial"):  # of a training that was killed
            partial.unlink()
        folder.rmdir()


def take(trainer: Trainer, out: Path, measure: Measure) -> None:
    """Write a snapshot of the parameters as they are now; every process has to at once."""
    trainer.read_losses()
    model, place = trainer.plain_model(), trainer.place
    loss, scores = measure(model)
    moment = Moment(
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
    trainer.processes.from_first(lambda: snapshots.write(out, model.state_dict(), moment))
