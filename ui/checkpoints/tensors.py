"""The tensors of a checkpoint on the Checkpoints page: names, shapes, and what numbers they hold."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from transformer.checkpoint.load import Checkpoint
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.shared import drawing
from ui.shared.door import here, st
from words import say

TABLE: Final = "tensors"
CSV: Final = "tensors_csv"
_FORMATS: Final = {say("Smallest"): "%.4g", say("Largest"): "%.4g", say("Mean"): "%.3g", say("Deviation"): "%.3g"}
_NAME, _SHAPE, _NUMBERS, _TYPE = say("Tensor"), say("Shape"), say("Numbers"), say("Type")
_COLUMNS: Final = [_NAME, _SHAPE, _NUMBERS, _TYPE, *_FORMATS]


def tensors(checkpoint: Checkpoint) -> None:
    """Draw the learned tensors, folded."""
    with st.expander(say("Tensors: names, shapes, ranges")):
        _draw(checkpoint)


def _draw(checkpoint: Checkpoint) -> None:
    numbers = attempt(
        lambda: loading.runner().compute(
            ("tensors", checkpoint.content_hash),
            lambda: listed(checkpoint),
            nbytes=lambda found: int(found.memory_usage(deep=True).sum()),
        )
    )
    if numbers is None:
        return
    columns: dict[str, Any] = {
        _NAME: st.column_config.TextColumn(pinned=True, width=290),
        _NUMBERS: st.column_config.NumberColumn(format="localized"),
    }
    columns |= {name: st.column_config.NumberColumn(format=form) for name, form in _FORMATS.items()}
    st.container(key=TABLE).dataframe(
        numbers.set_axis(here(_COLUMNS), axis="columns"),
        hide_index=True,
        height=420,
        row_height=29,
        column_config=columns,
        alt=say("Every learned tensor with its shape and the range of its numbers."),
    )
    said = say(
        "{tensors:,} tensors, {numbers:,} numbers, by their names in the code; one that two components share is "
        "listed once. A click on a heading sorts; the magnifying glass searches.",
        tensors=len(numbers),
        numbers=int(numbers[_NUMBERS].sum()),
    )
    st.caption(drawing.plain(said))
    drawing.csv_button(numbers, key=CSV, title=say("tensors"), of_sentence=False)


def listed(checkpoint: Checkpoint) -> pd.DataFrame:
    """One row a learned tensor, in the order of the model.

    Returns:
        Name, shape, how many numbers, their type, and over all of them the smallest, the largest, the mean and the
        standard deviation.
    """
    rows = []
    for name, tensor in checkpoint.model.named_parameters():
        values: np.ndarray = tensor.detach().float().numpy()
        spread = (values.min(), values.max(), values.mean(dtype=np.float64), values.std(dtype=np.float64))
        shape = f"[{', '.join(map(str, values.shape))}]"
        held = str(tensor.dtype).removeprefix("torch.")
        rows.append((name, shape, values.size, held, *map(float, spread)))
    return pd.DataFrame(rows, columns=list(map(str, _COLUMNS)))
