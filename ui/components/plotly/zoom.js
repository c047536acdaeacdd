// @ts-check
// Whether a reader has zoomed into a chart, and the way back.

import { axisNames } from "./paint.js";

/** @import { Layout, View } from "./types.js" */

/**
 * The range of each axis that Python asked for; null where Plotly chooses. Copies, as Plotly writes into its own.
 * @param {Layout} layout
 * @returns {Record<string, number[] | null>}
 */
export function askedRanges(layout) {
  const free = axisNames(layout).filter((name) => !layout[name].fixedrange);
  return Object.fromEntries(free.map((name) => [name, layout[name].range?.slice() ?? null]));
}

/** @param {View} view */
export function isZoomed(view) {
  return Object.entries(view.ranges).some(([name, asked]) => {
    const axis = view.plot._fullLayout?.[name];
    if (!axis?.range || axis.type === "category") return false;
    if (!asked) return axis.autorange === false;
    const close = 1e-6 * Math.abs(asked[1] - asked[0]);
    return asked.some((end, place) => Math.abs(axis.range[place] - end) > close);
  });
}

/** @param {View} view */
export function resetZoom(view) {
  const whole = Object.entries(view.ranges).map(([name, asked]) =>
    (asked ? [`${name}.range`, [...asked]] : [`${name}.autorange`, true]));
  view.plotly?.relayout(view.plot, Object.fromEntries(whole));
}
