"""The tensors of a checkpoint on the Checkpoints page: names, shapes, and what numbers they hold."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import streamlit as st

from transformer.checkpoint.load import Checkpoint
from ui.runs import loading
from ui.runs.work import BusyError
from ui.shared import drawing

TABLE: Final = "tensors"
CSV: Final = "tensors_csv"
_FORMATS: Final = {"Smallest": "%.4g", "Largest": "%.4g", "Mean": "%.3g", "Deviation": "%.3g"}


def tensors(checkpoint: Checkpoint) -> None:
    """Draw the learned tensors, folded."""
    with st.expander("Tensors: names, shapes, ranges"):
        _draw(checkpoint)


def _draw(checkpoint: Checkpoint) -> None:
    try:
        numbers: pd.DataFrame = loading.runner().compute(
            ("tensors", checkpoint.content_hash),
            lambda: listed(checkpoint),
            nbytes=lambda found: int(found.memory_usage(deep=True).sum()),
        )
    except BusyError as error:
        st.error(drawing.plain(error.sentence))
        return
    columns: dict[str, Any] = {
        "Tensor": st.column_config.TextColumn(pinned=True, width=290),
        "Numbers": st.column_config.NumberColumn(format="localized"),
    }
    columns |= {name: st.column_config.NumberColumn(format=form) for name, form in _FORMATS.items()}
    st.container(key=TABLE).dataframe(
        numbers,
        hide_index=True,
        height=420,
        row_height=29,
        column_config=columns,
        alt="Every learned tensor with its shape and the range of its numbers.",
    )
    st.caption(
        drawing.plain(
            f"{len(numbers):,} tensors, {int(numbers['Numbers'].sum()):,} numbers, by their names in the code; one "
            "that two components share is listed once. A click on a heading sorts; the magnifying glass searches."
        )
    )
    st.download_button(
        "Table as CSV",
        numbers.to_csv(index=False, float_format="%.9g"),
        file_name=f"{checkpoint.name}_tensors.csv",
        mime="text/csv",
        key=CSV,
        on_click="ignore",
        icon=":material/download:",
    )


def listed(checkpoint: Checkpoint) -> pd.DataFrame:
    """One row a learned tensor, in the order of the model.

    Returns:
        Name, shape, how many numbers, their type, and over all of them the smallest, the largest, the mean and the
        standard deviation.
    """
    rows = []
    for name, tensor in checkpoint.model.named_parameters():
        values: np.ndarray = tensor.detach().numpy()
        spread = (values.min(), values.max(), values.mean(dtype=np.float64), values.std(dtype=np.float64))
        shape = f"[{', '.join(map(str, values.shape))}]"
        rows.append((name, shape, values.size, str(values.dtype), *map(float, spread)))
    return pd.DataFrame(rows, columns=["Tensor", "Shape", "Numbers", "Type", *_FORMATS])
