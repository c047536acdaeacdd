// @ts-check
// The mark at the row of the current step. It moves here, at once: the map is not sent again for a step.

import { currentStep, rowOfStep } from "../common/step.js";

/** @import { Follow, Layout, View } from "./types.js" */

/**
 * The marks that belong to the current step: a frame, or pointers on both sides; none where it has no row.
 * @param {Follow} follow
 * @param {string} [name] Of the chart.
 */
export function stepMarks(follow, name) {
  const row = rowOfStep(follow.rows, name);
  if (row === null) return [];
  return follow.starts.flatMap((start) => follow.marks.map((mark) => (mark.type === "path"
    ? { ...mark, yanchor: start + row }
    : { ...mark, y0: start + row - 0.5, y1: start + row + 0.5 })));
}

/**
 * Mark the row in a figure that is about to be drawn.
 * @param {View} view @param {Layout} layout
 */
export function markStep(view, layout) {
  view.follow = layout.meta?.follow;
  view.shapes = layout.shapes ?? [];
  view.marked = currentStep(view.data.name);
  if (view.follow) layout.shapes = [...stepMarks(view.follow, view.data.name), ...view.shapes];
}

/**
 * Move the mark in a drawn figure; one that is being drawn comes here at its end.
 * @param {View} view
 */
export function moveMark(view) {
  const step = currentStep(view.data.name);
  if (!view.follow || !view.listening || view.drawing || view.gone || view.marked === step) return;
  view.marked = step;
  view.plotly?.relayout(view.plot, { shapes: [...stepMarks(view.follow, view.data.name), ...view.shapes] });
}
