// The mark at the row of the current step. It moves here, at once: the map is not sent again for a step.

/** The marks that belong to the current step: a frame, or pointers on both sides; none where it has no row. */
function stepMarks({ follow, data }) {
  const row = follow?.rows[currentStep(data.name)] ?? null;
  if (row === null) return [];
  return follow.starts.flatMap((start) => follow.marks.map((mark) => (mark.type === "path"
    ? { ...mark, yanchor: start + row }
    : { ...mark, y0: start + row - 0.5, y1: start + row + 0.5 })));
}

/** Mark the row in a figure that is about to be drawn. */
function markStep(view, layout) {
  view.follow = layout.meta?.follow;
  view.shapes = layout.shapes ?? [];
  view.marked = currentStep(view.data.name);
  if (view.follow) layout.shapes = [...stepMarks(view), ...view.shapes];
}

/** Move the mark in a drawn figure; one that is being drawn comes here at its end. */
function moveMark(view) {
  if (!view.follow || !view.listening || view.drawing || view.gone || view.marked === currentStep(view.data.name)) return;
  view.marked = currentStep(view.data.name);
  view.plotly.relayout(view.plot, { shapes: [...stepMarks(view), ...view.shapes] });
}
