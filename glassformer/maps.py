"""The attention map of the selected layer and head, cut to what may be shown; several pages draw it."""

from dataclasses import dataclass

import numpy as np

from glassformer.charts.heatmap import HOW_TO_READ_CLOSED, follow_steps, heatmap_spec, part_map
from glassformer.charts.theme import CLOSED, Spec
from glassformer.runs.map_axes import MapAxes, prompt_row, sides
from glassformer.runs.viewed_run import ViewedRun, VisibleTrace, chosen_map
from transformer.i18n import say
from transformer.model.anatomy import Kind


@dataclass(frozen=True, eq=False)
class SeenMap:
    """A map, with what its rows and columns are."""

    run: ViewedRun
    visible: VisibleTrace  # what is drawn of it; a run may read the output of another
    kind: Kind
    weights: np.ndarray  # [query, key]
    allowed: np.ndarray  # bool [query, key], True = may attend
    sides: MapAxes

    @property
    def closed(self) -> list[str]:
        """How to read closed cells, if there are any."""
        return [] if self.allowed.all() else [HOW_TO_READ_CLOSED]

    def spec(
        self,
        title: str,
        *,
        mask_reason: str = CLOSED,
        marked_row: int | None = None,
        limits: tuple[float, float] = (0.0, 1.0),
        rows_sum_to_one: bool = True,
    ) -> Spec:
        """The figure."""
        return heatmap_spec(
            self.weights,
            queries=self.sides.queries,
            keys=self.sides.keys,
            title=title,
            query_axis=self.sides.query_axis,
            key_axis=self.sides.key_axis,
            allowed=self.allowed,
            mask_reason=mask_reason,
            marked_row=marked_row,
            colour=self.sides.key_side,
            limits=limits,
            rows_sum_to_one=rows_sum_to_one,
            note=self.visible.trace.rows_note(self.kind),
        )

    def mark(self, figure: Spec) -> None:
        """Mark the row of each step, and where a prompt ends."""
        n_rows, n_columns = self.weights.shape
        if self.kind != "encoder":
            rows = [self.visible.trace.row_of(step) for step in range(self.visible.n_steps)]
            follow_steps(figure, rows, n_rows=n_rows, n_columns=n_columns)
        if (prompt := prompt_row(self.run, self.kind)) is not None:
            part_map(figure, row=prompt, column=prompt + 1 if prompt + 1 < n_columns else None)

    def alt(self, title: str) -> str:
        """The map in a sentence."""
        of = self.sides
        return say("{map}. Rows: {rows}; columns: {columns}.", map=title, rows=of.query_axis, columns=of.key_axis)


def seen_map(run: ViewedRun, kind: Kind, visible: VisibleTrace | None = None) -> SeenMap:
    """The map; of the run itself, if nothing else is looked at. Errors as of `VisibleTrace.each`."""
    visible = visible or run.visible
    axes = sides(visible, kind)
    seen = slice(len(axes.queries)), slice(len(axes.keys))
    allowed = visible.trace.mask(kind, visible.view.layer)[seen]
    return SeenMap(run, visible, kind, chosen_map(visible, kind)[seen], allowed, axes)
