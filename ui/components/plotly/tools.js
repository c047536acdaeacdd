// @ts-check
// The small buttons under a chart: reset the zoom, show the chart large, save its data and its picture.

import { make, makeButton } from "../common/dom.js";
import { press, savePicture, saveTable } from "../common/save.js";
import { say } from "../common/words.js";
import { parsedFigure } from "./numbers.js";
import { themeOf } from "./paint.js";
import { numbered, tableOf } from "./table.js";
import { isZoomed, resetZoom } from "./zoom.js";

/** @import { Tools, View } from "./types.js" */

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
 * The buttons, in a group of their own.
 * @param {View} view
 * @returns {Tools}
 */
export function makeTools(view) {
  const group = make("div", "gf-tools");
  group.setAttribute("role", "group");
  /** @type {(label: string, title: string, act: () => void) => HTMLButtonElement} */
  const add = (label, title, act) => {
    const button = makeButton("gf-tool", label, title, act);
    button.setAttribute("aria-label", title);
    group.append(button);
    return button;
  };
  const reset = add(say("Reset zoom"), say("Show the whole chart again"), () => resetZoom(view));
  const expand = add(say("Expand"), say("Show this chart large"), () => view.large.open());
  add("CSV", say("Download the data as CSV"), () => saveData(view));
  add("SVG", say("Download the picture as SVG"), () => saveDrawing(view, "svg"));
  add("PNG", say("Download the picture as PNG"), () => saveDrawing(view, "png"));
  return { group, reset, expand };
}

/**
 * Show what can be done now: nothing without a drawing, and a reset only after a zoom.
 * @param {View} view
 * @param {boolean} drawn
 */
export function refreshTools(view, drawn) {
  view.tools.group.hidden = !drawn;
  view.tools.reset.hidden = !drawn || !isZoomed(view);
}
