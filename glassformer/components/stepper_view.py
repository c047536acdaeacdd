"""Stepper component (Python side): payload of a run, and the step the user settled on.

The whole run is sent once and every step is taken by our script, because Streamlit drops quick button presses
(of 12 presses 30 ms apart 9 arrived). Python hears only where the reader came to rest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from glassformer.components.custom_component import Element, is_count, told
from glassformer.components.packing import packed

STEPPER, _REST = Element("stepper"), Element("rest")
REST = "rest_of_"  # begins the key of what hears where the reader rests while nothing has to be drawn for a step


@dataclass(frozen=True)
class SourceChip:
    """One source piece."""

    piece: str  # its text, with SentencePiece's ▁ for a space
    id: int  # its place in the source vocabulary
    special: bool = False  # whether it is a mark such as `</s>` instead of text
    unknown: bool = False  # whether the vocabulary lacks the text it stands for


@dataclass(frozen=True)
class TargetChip:
    """One output piece."""

    piece: str  # its text, with SentencePiece's ▁ for a space
    id: int  # its place in the target vocabulary
    probability: float | None  # what the model gave it at its step, 0 to 1; None if that is not to be seen
    forced: bool = False  # whether the reader chose it instead of the model
    special: bool = False  # whether it is a mark such as `</s>` instead of text


@dataclass(frozen=True, eq=False)
class StepperRun:
    """A finished run: at step t, from 0, the model has read `start_piece` and t target pieces, and predicts piece t."""

    run_id: str  # changes exactly when the run does; then the stepper takes Python's step
    source: tuple[SourceChip, ...]  # the source pieces
    target: tuple[TargetChip, ...]  # the output pieces; their number is the number of steps
    start_piece: str  # what the decoder reads first, for example `<s>`
    texts: tuple[str, ...]  # the output text after each step
    # Weight of each source piece at each step, `[step, source]`, 0 to 1; of a run that stands still `[1, source]`.
    # None: no shading.
    shading: np.ndarray | None = None
    shading_label: str = ""  # what the shading shows, as a sentence
    stop_reason: str = ""  # why the run ended, as a sentence
    cut: bool = False  # whether it ended at a limit: then `stop_reason` is shown at every step
    # Whether nothing on the page moves with the step: then all of the output is there, and nothing to step.
    still: bool = False

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The run as JSON values, made once: of a text only what the step changed, of the shading its bytes."""
        return vars(self) | {
            "source": [_chip(chip) for chip in self.source],
            "target": [_chip(chip) | {"probability": _unit(chip.probability)} for chip in self.target],
            "texts": [_change(before, text) for before, text in itertools.pairwise(("", *self.texts))],
            "shading": None if self.shading is None else packed(self.shading),
        }


def rest(*, key: str, addresses: tuple[str, str] | None, on_step_change: Callable[[], None]) -> None:
    """Hear where the reader of the stepper of a key rests when nothing asks for its step; draws nothing.

    With `addresses`, the queries of the first step and of the second, the browser writes the address by itself, and
    tells of the step as soon as the reader does anything but step; without them at once.
    """
    _REST.draw({"name": key, "addresses": addresses}, key=rest_key(key), hears={"step": on_step_change})


def rest_key(key: str) -> str:
    """The key of that: it begins with the stepper's slot, too."""
    slot, dash, name = key.rpartition("-")
    return f"{slot}{dash}{REST}{name}"


def settled_step(run: StepperRun, *, key: str, step: int, step_revision: int = 0) -> int:
    """The step where the user rests, without drawing; `step` if nothing was reported for this run and revision."""
    told_here = [told(one, "step") for one in (key, rest_key(key))]
    reports = [one for one in told_here if isinstance(one, dict) and one.get("run_id") == run.run_id]
    reports = [one for one in reports if one.get("step_revision") == step_revision and is_count(one.get("step"))]
    # The browser says when, in milliseconds.
    latest = max(reports, key=lambda one: one["when"] if is_count(one.get("when")) else 0, default={"step": step})
    return max(0, min(latest["step"], len(run.target) - 1))


def _chip(chip: SourceChip | TargetChip) -> dict[str, Any]:
    """A piece as JSON values; what is false is left out, for nearly all of it is."""
    return {name: value for name, value in vars(chip).items() if value is not False}


def _unit(value: float | None) -> float | None:
    """Clip to 0..1, as float32 rounding can put a weight just outside, with the seven digits of float32."""
    if value is None:
        return None
    number = float(f"{float(value):.7g}")
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.0


def _change(before: str, text: str) -> list[int | str]:
    """How a text grew: UTF-16 units kept of the one before, and what follows; full texts would be most of a payload."""
    pairs = zip(before, text, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return [len(text[:same].encode("utf-16-le", "surrogatepass")) // 2, text[same:]]
