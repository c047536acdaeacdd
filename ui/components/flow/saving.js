// @ts-check
// What the flow view is saved as.

import { pen, visible } from "../common/dom.js";
import { savePicture } from "../common/save.js";
import { appearance, update } from "./drawing.js";
import { scene } from "./places.js";
import { titleOf } from "./readout.js";
import { svgPicture } from "./svg.js";

/** @import { View } from "./types.js" */

const MIDDLE = 460;

/**
 * The picture is of what stays: the pinned piece, not the one that the mouse happens to be on.
 * @param {View} view
 * @param {() => void} act
 */
function steady(view, act) {
  const { pointed } = view;
  view.pointed = null;
  update(view);
  act();
  view.pointed = pointed;
  update(view);
}

/**
 * @param {View} view
 * @param {"svg" | "png"} format
 */
export function saveDrawing(view, format) {
  steady(view, () => savePicture(view.data.file, format, picture(view)));
}

/** @param {string} text */
function cut(text) {
  const letters = Array.from(visible(text));
  return letters.length > 28 ? `${letters.slice(0, 27).join("")}…` : letters.join("");
}

/** @param {View} view */
function picture(view) {
  const { data, rows } = view;
  if (!rows) return "";
  const context = pen(view.canvas);
  context.font = `${view.textSize}px monospace`;
  const texts = { query: data.queries.map(cut), key: data.keys.map(cut) };
  /** @type {(column: string[], axis: string) => number} */
  const widest = (column, axis) =>
    Math.ceil(Math.max(axis.length * 7, ...column.map((text) => context.measureText(text).width))) + 10;
  return svgPicture({
    title: titleOf(view), note: view.note, axes: { query: data.query_axis, key: data.key_axis }, texts,
    spans: { left: widest(texts.query, data.query_axis), middle: MIDDLE, right: widest(texts.key, data.key_axis) },
    rows, scene: scene(view, MIDDLE, rows), shown: view.shown, focus: view.focus, look: appearance(view),
  });
}
