// @ts-check
// What can be done with a chart: reset the zoom, show it large, save its data and its picture.

import { makeButton } from "../common/dom.js";
import { makeFoot } from "../common/foot.js";
import { press, savePicture, saveTable } from "../common/save.js";
import { say } from "../common/words.js";
import { parsedFigure } from "./numbers.js";
import { themeOf } from "./paint.js";
import { numbered, tableOf } from "./table.js";
import { isZoomed, resetZoom } from "./zoom.js";

/** @import { Under, View } from "./types.js" */

/** @param {View} view */
function saveData(view) {
  const { file, about, table, figure } = view.data;
  if (table) return press(table);
  const { columns, rows } = tableOf(parsedFigure(figure));
  const values = about.map(([, value]) => value);
  const names = numbered([...about.map(([name]) => name), ...columns]);
  saveTable(file, [names, ...rows.map((row) => [...values, ...row])]);
}

/**
 * @param {View} view
 * @param {"svg" | "png"} format
 */
async function saveDrawing(view, format) {
  if (!view.plotly) return;
  const layout = structuredClone(view.plot.layout);
  layout.paper_bgcolor = themeOf(view.root).background;  // text in the theme's colour needs the theme's background
  const { offsetWidth: width, offsetHeight: height } = view.plot;
  const figure = { data: view.plot.data, layout };
  const svg = await view.plotly.toImage(figure, { format: "svg", width, height, imageDataOnly: true });
  await savePicture(view.data.file, format, svg);
}

/**
 * What stands under the chart.
 * @param {View} view
 * @returns {Under}
 */
export function makeUnder(view) {
  const foot = makeFoot({
    open: () => view.large.open(), data: () => saveData(view), picture: (format) => saveDrawing(view, format),
  });
  const reset = makeButton("gf-tool", say("Reset zoom"), say("Show the whole chart again"), () => resetZoom(view));
  foot.tools.prepend(reset);
  return { ...foot, reset };
}

/**
 * Show what can be done now: nothing without a drawing, and a reset only after a zoom.
 * @param {View} view
 * @param {boolean} drawn
 */
export function refreshTools(view, drawn) {
  view.under.tools.hidden = !drawn;
  view.under.reset.hidden = !drawn || !isZoomed(view);
}
