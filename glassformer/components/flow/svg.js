// @ts-check
// The flow view as a picture of its own.

import { makeSvg, pen, visible } from "../common/dom.js";
import { savePicture } from "../common/save.js";
import { say } from "../common/i18n.js";
import { appearance, titleOf, update } from "./drawing.js";
import { rowCentre, scene } from "./places.js";

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { Both, Look, Rows, Scene } from "./types.js" */
/** @import { View } from "./view.js" */

/**
 * @typedef {object} Picture
 * @property {string} title
 * @property {string} note
 * @property {Both<string>} axes
 * @property {Both<string[]>} texts
 * @property {{ left: number, middle: number, right: number }} spans
 * @property {Rows} rows
 * @property {Scene} scene for the span in the middle
 * @property {number[]} shown
 * @property {Pin | null} focus
 * @property {Look} look
 */

const ANCHORS = { query: "end", key: "start" };
const MIDDLE = 460;

/** @param {number} number */
const rounded = (number) => Math.round(number * 100) / 100;

/** @param {Scene} drawn @param {Look} look */
function svgLines(drawn, look) {
  const group = makeSvg("g", { fill: "none", "stroke-width": look.line });
  for (const line of drawn.lines) {
    const bend = (line.x1 - line.x0) * 0.4;
    const [x0, y0, x1, y1] = [line.x0, line.y0, line.x1, line.y1].map(rounded);
    const path = `M${x0} ${y0}C${rounded(x0 + bend)} ${y0} ${rounded(x1 - bend)} ${y1} ${x1} ${y1}`;
    const stroke = { stroke: look.colours[line.head], "stroke-opacity": rounded(line.alpha) };
    group.append(makeSvg("path", { d: path, ...stroke }));
  }
  for (const block of drawn.blocks) {
    const box = { x: rounded(block.x), y: rounded(block.y), width: rounded(block.width), height: block.height };
    group.append(makeSvg("rect", { ...box, fill: look.faint }));
    group.append(makeSvg("rect", { ...box, fill: look.colours[block.head], "fill-opacity": rounded(block.alpha) }));
  }
  return group;
}

/** @param {Picture} picture @param {Side} side @param {number} x */
function svgColumn({ rows, focus, look, texts }, side, x) {
  const font = { "font-family": "monospace", "font-size": look.size };
  const group = makeSvg("g", { fill: look[side], "text-anchor": ANCHORS[side], ...font });
  texts[side].forEach((text, index) => {
    const y = rowCentre(rows, side, index) + look.size * 0.35;
    const weight = focus?.side === side && focus.index === index ? "bold" : "normal";
    group.append(makeSvg("text", { x, y: rounded(y), "font-weight": weight, "xml:space": "preserve" }, text));
  });
  return group;
}

/**
 * Lay the names of the shown heads out under the title, as many a line as fit.
 * @param {number[]} shown @param {Look} look @param {number} width
 */
function svgLegend(shown, look, width) {
  const group = makeSvg("g", { "font-size": 12, fill: look.text });
  const each = Math.max(1, Math.floor((width - 16) / 74));
  shown.forEach((head, place) => {
    const [x, y] = [16 + (place % each) * 74, 50 + Math.floor(place / each) * 18];
    group.append(makeSvg("rect", { x, y: y - 10, width: 11, height: 11, rx: 2, fill: look.colours[head] }));
    group.append(makeSvg("text", { x: x + 16, y }, say("head {n}", { n: head + 1 })));
  });
  return { group, height: Math.ceil(shown.length / each) * 18 };
}

/**
 * The picture with its title, its heads and its columns, as a file of its own.
 * @param {Picture} picture
 */
export function svgPicture(picture) {
  const { look, rows, spans } = picture;
  const width = spans.left + spans.middle + spans.right + 32;
  const legend = svgLegend(picture.shown, look, width);
  const top = 88 + legend.height;
  const height = top + rows.height + 34;
  const [end, begin] = [16 + spans.left, 16 + spans.left + spans.middle];
  const title = { x: 16, y: 26, "font-size": 17, "font-weight": 600, fill: look.text };
  const root = makeSvg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" });
  root.append(makeSvg("rect", { width, height, fill: look.background }), makeSvg("text", title, picture.title));
  root.append(legend.group);
  for (const [side, x] of /** @type {[Side, number][]} */ ([["query", end], ["key", begin]])) {
    const heading = { x, y: top - 14, "font-size": 12, "font-weight": 600, fill: look[side] };
    root.append(makeSvg("text", { ...heading, "text-anchor": ANCHORS[side] }, picture.axes[side]));
  }
  const stage = makeSvg("g", { transform: `translate(${end} ${top})` });
  stage.append(svgLines(picture.scene, look));
  stage.append(svgColumn(picture, "query", -6), svgColumn(picture, "key", spans.middle + 6));
  root.append(stage, makeSvg("text", { x: 16, y: height - 12, "font-size": 11, fill: look.text }, picture.note));
  return new XMLSerializer().serializeToString(root);
}

/**
 * Save what stays: the pinned piece, not the one that the mouse happens to be on.
 * @param {View} view @param {"svg" | "png"} format
 */
export function saveDrawing(view, format) {
  const { pointed } = view;
  view.pointed = null;
  update(view);
  savePicture(view.data.file, format, pictureOf(view));
  view.pointed = pointed;
  update(view);
}

/** @param {string} text */
function cut(text) {
  const letters = Array.from(visible(text));
  return letters.length > 28 ? `${letters.slice(0, 27).join("")}…` : letters.join("");
}

/** @param {View} view */
function pictureOf(view) {
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
