"""All heads as a table: what each changes, beside how concentrated its weights are; and the same as a file."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np
import pandas as pd

from transformer.analysis.head_effects import HeadEffects
from ui.matters.measures import WORDS, Shown, concentration, values
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES
from ui.shared import drawing
from ui.shared.door import here, st
from words import Sentence, say

TABLE, CSV = "matters_table", "matters_csv"
OF_OUTPUT: Final[dict[Shown, Sentence]] = {
    "log_prob": say("Log-probability, nats"),
    "probability": say("Probability, mean"),
    "kl": say("KL, mean, nats"),
    "pieces": say("Changed choices"),
}
OF_STEP: Final[dict[Shown, Sentence]] = {
    "log_prob": say("This step: log-probability"),
    "probability": say("This step: probability"),
    "kl": say("This step: KL"),
    "pieces": say("This step: changed"),
}
LARGEST: Final = say("Largest weight, mean")
VECTORS: Final = say("Final vectors")
MOST_WITHOUT_SCROLLING: Final = 24  # heads


def draw(run: OpenRun, found: HeadEffects) -> None:
    """Draw the table, folded."""
    with st.expander(say("All numbers as a table")):
        numbers = frame(run, found)
        columns: dict[str, Any] = {
            name: st.column_config.NumberColumn(
                label, help=_meaning(name), format="%d" if name.startswith("pieces") else "%.4f"
            )
            for name, label in _labels(found).items()
        }
        names = [
            say("{attention}, layer {layer}, head {head}", attention=KIND_NAMES[kind], layer=layer + 1, head=head + 1)
            for kind, one in found.of.items()
            for layer, head in np.ndindex(one.kl.shape[:2])
        ]
        st.container(key=run.key(TABLE)).dataframe(
            numbers[list(columns)].assign(head=here(names))[["head", *columns]],
            hide_index=True,
            height="content" if len(names) <= MOST_WITHOUT_SCROLLING else "auto",
            column_config={"head": st.column_config.TextColumn(here(say("Without")), pinned=True)} | columns,
            alt=say("What zeroing each head changes, one row a head."),
        )
        drawing.csv_button(numbers, key=run.key(CSV), title=say("effects of heads"))


def _labels(found: HeadEffects) -> dict[str, Sentence]:
    if not found.ids.size:
        return {"vectors": VECTORS, "largest": LARGEST}
    return {
        **{str(name): label for name, label in OF_OUTPUT.items()},
        **{f"{name}_step": label for name, label in OF_STEP.items()},
        "largest": LARGEST,
    }


def _meaning(column: str) -> Sentence | None:
    """How the numbers of a column are made, for who points at its heading."""
    words = WORDS.get((cast("Shown", column.removesuffix("_step")), column.endswith("_step")))
    return None if words is None else words.meaning


def frame(run: OpenRun, found: HeadEffects) -> pd.DataFrame:
    """One row a head: attention, layer and head from 1, the measures of the whole output, and those of the step."""
    n_steps, step = run.looking.n_steps, run.view.step
    parts = []
    for kind in found.of:
        sharp = concentration(run.looking, kind, step=None)
        layers, heads = (index.ravel() + 1 for index in np.indices(sharp.shape))
        columns: dict[str, Any] = {"attention": kind, "layer": layers, "head": heads}
        if found.ids.size:
            for name in OF_OUTPUT:
                columns[name] = values(found, kind, name, n_steps=n_steps, step=None).ravel()
            columns["step"] = step + 1
            for name in OF_STEP:
                columns[f"{name}_step"] = values(found, kind, name, n_steps=n_steps, step=step).ravel()
        else:
            columns["vectors"] = values(found, kind, "vectors", n_steps=0, step=None).ravel()
        parts.append(pd.DataFrame(columns | {"largest": sharp.ravel()}))
    return pd.concat(parts, ignore_index=True)
