// @ts-check
// A chart at the step that is looked at: what Python sent, or what it shows at another step, once its frames are here.
// The mark at the row of the step moves here, at once: the map is not sent again for a step.

import { set } from "../common/dom.js";
import { framesOf, momentAt, whenIdle, whenWanted } from "../common/frames.js";
import { ask, currentStep, rowOfStep } from "../common/step.js";
import { axisNames } from "./paint.js";

/** @import { PlotlyPayload } from "../common/payloads.js" */
/** @import { Follow, Layout, View } from "./types.js" */

/**
 * Show what was sent, or the picture at the step that is looked at, where its frames are here.
 * @param {View} view @param {(view: View) => void} draw
 */
export function showMoment(view, draw) {
  const { frames, sent } = view;
  const step = currentStep(sent.name);
  const moves = frames !== null && step !== null && step !== sent.step && step < frames.changes.length;
  const moment = moves ? momentAt(frames, step) : null;
  view.at = moves ? step : sent.step;
  view.data = moment ? { ...sent, ...moment, figure: JSON.stringify(moment.figure) } : sent;
  const { caption, said } = view.data;
  view.under.tell(caption, Boolean(said?.above || said?.below));
  view.under.write(said);
  for (const named of [view.plot, view.under.dialog, view.under.tools]) set(named, { "aria-label": view.data.alt });
  draw(view);
}

/**
 * Fetch what the picture shows at other steps, if it has that; until it is here Python draws each step.
 * @param {View} view @param {PlotlyPayload} payload @param {(view: View) => void} draw
 */
export function listen(view, { follows, name }, draw) {
  if (follows === view.follows) return;
  Object.assign(view, { follows, frames: null });
  ask(view, name, follows !== "still");
  if (follows === "still" || follows === "server") return;
  const isOver = () => view.gone || view.follows !== follows;
  whenWanted().then(() => (isOver() ? null : framesOf(follows))).then((frames) => {
    if (isOver() || !frames) return;
    view.frames = frames;
    ask(view, name, false);
    follow(view, draw);
  });
}

/**
 * Follow the step: at once where it is seen, else when there is nothing else to do.
 * @param {View} view @param {(view: View) => void} draw
 */
export function follow(view, draw) {
  if (view.gone) return;
  if (!view.frames || currentStep(view.sent.name) === view.at) moveMark(view);
  else if (view.inSight) showMoment(view, draw);
  else whenIdle().then(() => view.inSight || view.gone || showMoment(view, draw));
}

const HIDDEN_LABEL = ":is(.xtick, .ytick) > text[style*='display: none']";

/**
 * Keep the left margin of the picture of another step of the same chart, so that it stands still: else Plotly draws
 * twice where labels are longer or shorter. And where each label fitted, Plotly need not measure all of them again.
 * @param {View} view @param {Layout} layout
 */
export function steady({ plot, sent, kept, frames, room }, layout) {
  const drawn = plot._fullLayout?._size;
  if (!frames || !drawn || room !== kept.room || kept.sent !== sent) return;
  layout.margin = { ...layout.margin, l: Math.max(layout.margin?.l ?? 0, drawn.l) };
  if (plot.querySelector(HIDDEN_LABEL)) return;
  for (const name of axisNames(layout)) layout[name].ticklabeloverflow = "allow";
}

/**
 * Know whether a chart is in sight; one that comes into sight shows the step.
 * @param {View} view @param {AbortSignal} gone @param {(view: View) => void} draw
 */
export function watch(view, gone, draw) {
  const sight = new IntersectionObserver((entries) => {
    view.inSight = entries[entries.length - 1].isIntersecting;
    if (view.inSight && view.frames) follow(view, draw);
  });
  sight.observe(view.root);
  gone.addEventListener("abort", () => sight.disconnect());
}

/**
 * The marks that belong to the current step: a frame, or pointers on both sides; none where it has no row.
 * @param {Follow} marked
 * @param {string} [name] Of the chart.
 */
export function stepMarks(marked, name) {
  const row = rowOfStep(marked.rows, name);
  if (row === null) return [];
  return marked.starts.flatMap((start) => marked.marks.map((mark) => (mark.type === "path"
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
