"""The training of a checkpoint on the Checkpoints page: its learning curves, how long it took, its command."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import charts
from charts.training import HOW_TO_READ_EXACT, HOW_TO_READ_LOSSES, HOW_TO_READ_RATES, HOW_TO_READ_SCORES, KEPT
from transformer.checkpoint.curve import Curve, load_curve
from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say, say_n

_LINE = 84  # characters
TRAINING_LOSSES = "training_losses"
TRAINING_SCORES = "training_scores"
TRAINING_RATES = "training_rates"
BLEU_LEFT_OUT = say("BLEU is left out, as it is 0 throughout: outputs of fewer than four words have none.")


def training(checkpoint: Checkpoint) -> None:
    """Draw how a checkpoint was trained, as far as its folder says."""
    command = checkpoint.card.training.get("command")
    st.subheader(say("Training"))
    _curves(checkpoint)
    if isinstance(command, str) and command:
        st.caption(say("The command that trained it:"))
        st.code(in_lines(command), language="shell", wrap_lines=True)


def in_lines(command: str) -> str:
    """A long command on several lines that a shell takes as one, each new one begun by an option."""
    if any(sign in command for sign in "'\"\\\n"):
        return command  # what is quoted must stay as it is
    lines = [""]
    for option in re.split(r" (?=--)", command):
        fits = len(lines[-1]) + len(option) < _LINE
        lines = [*lines[:-1], f"{lines[-1]} {option}".strip()] if fits else [*lines, option]
    return " \\\n    ".join(filter(None, lines))


def effort(record: Mapping[str, Any]) -> str:
    """What a card's training record says of how long it took, such as "17 epochs, 10,856,421 target pieces, 1 h".

    Args:
        record: The card's training; values that are no numbers are passed over.
    """
    epochs, tokens, seconds = (_positive(record.get(name)) for name in ("epochs", "target_tokens", "seconds"))
    said = [say_n("{n:,} epoch", "{n:,} epochs", round(epochs))] if epochs else []
    return joined(", ", [*said, *_effort(tokens, seconds)])


def _effort(tokens: float, seconds: float) -> list[str]:
    said = [say_n("{n:,} target piece", "{n:,} target pieces", round(tokens))] if tokens else []
    return [*said, *([_time(seconds)] if seconds else [])]


def _curves(checkpoint: Checkpoint) -> None:
    try:
        curve = load_curve(checkpoint.folder, inside=checkpoint.inside)
    except CheckpointError as error:
        said = joined(" ", [error.sentence, say("So no curve is shown.")])
        st.warning(drawing.plain(said), icon=":material/warning:")
        return
    if curve is None:
        st.caption(say("This folder has no training.csv, so there is no learning curve to show."))
        return
    drawing.notes(curve.notes)
    kept, kept_name = _kept(checkpoint, curve)
    labels = [_label(curve, row) for row in range(len(curve.epochs))]
    mark = {"labels": labels, "kept": kept, "kept_name": kept_name}
    drawing.beside(lambda: _losses(curve, mark), lambda: _scores(curve, mark))
    _rates(curve, mark)


def _losses(curve: Curve, mark: dict[str, Any]) -> None:
    training, dev = curve.columns.get("loss"), curve.columns.get("dev_loss")
    if training is None and dev is None:
        return
    drawing.chart(
        charts.losses_spec(curve.epochs, training=training, dev=dev, **mark),
        key=TRAINING_LOSSES,
        alt=_alt(curve, mark, {say("Training loss"): training, say("dev loss"): dev}),
        how_to_read=HOW_TO_READ_LOSSES,
        of_sentence=False,
    )


def _scores(curve: Curve, mark: dict[str, Any]) -> None:
    bleu, chrf, exact = (curve.columns.get(name) for name in ("dev_bleu", "dev_chrf", "dev_exact"))
    left_out = bleu is not None and not any(value > 0 for value in bleu) and bool(chrf or exact)
    bleu = None if left_out else bleu
    if bleu is None and chrf is None and exact is None:
        return
    said = [HOW_TO_READ_SCORES]
    said += [HOW_TO_READ_EXACT] if exact is not None else []
    said += [BLEU_LEFT_OUT] if left_out else []
    drawing.chart(
        charts.dev_scores_spec(curve.epochs, bleu=bleu, chrf=chrf, exact=exact, **mark),
        key=TRAINING_SCORES,
        alt=_alt(curve, mark, {"BLEU": bleu, "chrF": chrf, say("share of exact outputs"): exact}),
        how_to_read=joined(" ", said),
        of_sentence=False,
    )


def _rates(curve: Curve, mark: dict[str, Any]) -> None:
    rates = curve.columns.get("learning_rate")
    if rates is None:
        return
    drawing.chart(
        charts.learning_rates_spec(curve.epochs, rates, **mark),
        key=TRAINING_RATES,
        alt=_alt(curve, mark, {say("Learning rate"): rates}),
        how_to_read=HOW_TO_READ_RATES,
        of_sentence=False,
    )


def _kept(checkpoint: Checkpoint, curve: Curve) -> tuple[int | None, str]:
    """The epoch that the folder holds by its card; if that does not say, the best one."""
    said = checkpoint.card.training.get("epochs")
    if isinstance(said, int) and said in curve.epochs:
        return said, KEPT
    return curve.best_epoch(), say("best on dev")


def _label(curve: Curve, row: int) -> str:
    """What hover says of an epoch, as far as the file says it."""
    step, tokens, seconds = (_at(curve.columns.get(name), row) for name in ("step", "tokens", "seconds"))
    said = [say("Epoch {n}", n=curve.epochs[row]), *([say("step {n:,}", n=round(step))] if step else [])]
    return joined(", ", [*said, *_effort(tokens, seconds)])


def _at(values: Sequence[float] | None, row: int) -> float:
    """A number of a row; 0 if it is not there."""
    return 0.0 if values is None or math.isnan(values[row]) else values[row]


def _alt(curve: Curve, mark: Mapping[str, Any], lines: Mapping[str, Sequence[float] | None]) -> str:
    """The lines in words: where each begins and ends."""
    there = {name: [value for value in values or () if not math.isnan(value)] for name, values in lines.items()}
    changes = [
        say("{name} goes from {before:.4g} to {after:.4g}", name=name, before=values[0], after=values[-1])
        for name, values in there.items()
        if values
    ]
    first, last = curve.epochs[0], curve.epochs[-1]
    said = [say("{changes} over epochs {first} to {last}.", changes=joined(", ", changes), first=first, last=last)]
    if mark["kept"] is not None:
        said.append(say("Marked as {name}: epoch {epoch}.", name=mark["kept_name"], epoch=mark["kept"]))
    return joined(" ", said)


def _positive(value: object) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e18
    return float(value) if good else 0.0  # type: ignore[arg-type]


def _time(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return say("{seconds:.0f} s", seconds=seconds)
    minutes = round(seconds / 60)
    if minutes < 90:
        return say("{minutes} min", minutes=minutes)
    return say("{hours} h {minutes} min", hours=minutes // 60, minutes=minutes % 60)
