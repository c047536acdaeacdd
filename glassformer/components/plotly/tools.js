// @ts-check
// What can be done with a chart: reset the zoom, show it large, save its data and its picture.

import { makeButton } from "../common/dom.js";
import { press, savePicture, saveTable } from "../common/save.js";
import { makeUnder } from "../common/picture-footer.js";
import { say } from "../common/i18n.js";
import { parsedFigure } from "./numbers.js";
import { axisNames, themeOf } from "./paint.js";
import { numbered, tableOf } from "./table.js";

/** @import { Layout, View } from "./types.js" */

/** @param {View} view */
function saveData(view) {
  const { file, about, table, figure } = view.data;
  if (table) return press(table);
  const { columns, rows } = tableOf(parsedFigure(figure));
  const values = about.map(([, value]) => value);
  const names = numbered([...about.map(([name]) => name), ...columns]);
  saveTable(file, [names, ...rows.map((row) => [...values, ...row])]);
}

/** @param {View} view @param {"svg" | "png"} format */
async function saveDrawing(view, format) {
  if (!view.plotly) return;
  const layout = structuredClone(view.plot.layout);
  layout.paper_bgcolor = themeOf(view.root).background;  // text in the theme's colour needs the theme's background
  const { offsetWidth: width, offsetHeight: height } = view.plot;
  const figure = { data: view.plot.data, layout };
  const svg = await view.plotly.toImage(figure, { format: "svg", width, height, scale: view.scale, imageDataOnly: true });
  await savePicture(view.data.file, format, svg);
}

/**
 * What stands under the chart.
 * @param {View} view
 * @param {() => void} changed called once the chart has moved into its large view, or back
 */
export function addTools(view, changed) {
  view.under = makeUnder(view.frame, view.root, {
    className: "gf-chart-dialog", name: () => view.data.name, changed,
    data: () => saveData(view), picture: (format) => saveDrawing(view, format),
  });
  view.reset = makeButton("gf-tool", say("Reset zoom"), say("Show the whole chart again"), () => resetZoom(view));
  view.under.tools.prepend(view.reset);
}

/**
 * Show what can be done now: nothing without a drawing, and a reset only after a zoom.
 * @param {View} view @param {boolean} drawn
 */
export function refreshTools(view, drawn) {
  view.under.tools.hidden = !drawn;
  view.reset.hidden = !drawn || !isZoomed(view);
}

/**
 * The range of each axis that Python asked for; null where Plotly chooses. Copies, as Plotly writes into its own.
 * @param {Layout} layout @returns {Record<string, number[] | null>}
 */
export function askedRanges(layout) {
  const free = axisNames(layout).filter((name) => !layout[name].fixedrange);
  return Object.fromEntries(free.map((name) => [name, layout[name].range?.slice() ?? null]));
}

/** @param {View} view */
function isZoomed(view) {
  return Object.entries(view.ranges).some(([name, asked]) => {
    const axis = view.plot._fullLayout?.[name];
    if (!axis?.range || axis.type === "category") return false;
    if (!asked) return axis.autorange === false;
    const close = 1e-6 * Math.abs(asked[1] - asked[0]);
    return asked.some((end, place) => Math.abs(axis.range[place] - end) > close);
  });
}

/** @param {View} view */
function resetZoom(view) {
  const whole = Object.entries(view.ranges).map(([name, asked]) =>
    (asked ? [`${name}.range`, [...asked]] : [`${name}.autorange`, true]));
  view.plotly?.relayout(view.plot, Object.fromEntries(whole));
}
