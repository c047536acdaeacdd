// @ts-check
// The flow view as a picture of its own, as SVG.

import { say } from "../common/words.js";
import { rowCentre } from "./places.js";

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { Both, Look, Rows, Scene } from "./types.js" */

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

const SVG = "http://www.w3.org/2000/svg";
const ANCHORS = { query: "end", key: "start" };

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 */
function element(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/** @param {number} number */
function rounded(number) {
  return Math.round(number * 100) / 100;
}

/**
 * @param {Scene} drawn
 * @param {Look} look
 */
function svgLines(drawn, look) {
  const group = element("g", { fill: "none", "stroke-width": look.line });
  for (const line of drawn.lines) {
    const bend = (line.x1 - line.x0) * 0.4;
    const [x0, y0, x1, y1] = [line.x0, line.y0, line.x1, line.y1].map(rounded);
    const path = `M${x0} ${y0}C${rounded(x0 + bend)} ${y0} ${rounded(x1 - bend)} ${y1} ${x1} ${y1}`;
    const stroke = { stroke: look.colours[line.head], "stroke-opacity": rounded(line.alpha) };
    group.append(element("path", { d: path, ...stroke }));
  }
  for (const block of drawn.blocks) {
    const box = { x: rounded(block.x), y: rounded(block.y), width: rounded(block.width), height: block.height };
    group.append(element("rect", { ...box, fill: look.faint }));
    group.append(element("rect", { ...box, fill: look.colours[block.head], "fill-opacity": rounded(block.alpha) }));
  }
  return group;
}

/**
 * @param {Picture} picture
 * @param {Side} side
 * @param {number} x
 */
function svgColumn({ rows, focus, look, texts }, side, x) {
  const font = { "font-family": "monospace", "font-size": look.size };
  const group = element("g", { fill: look[side], "text-anchor": ANCHORS[side], ...font });
  texts[side].forEach((text, index) => {
    const y = rowCentre(rows, side, index) + look.size * 0.35;
    const weight = focus?.side === side && focus.index === index ? "bold" : "normal";
    group.append(element("text", { x, y: rounded(y), "font-weight": weight, "xml:space": "preserve" }, text));
  });
  return group;
}

/**
 * Lay the names of the shown heads out under the title, as many a line as fit.
 * @param {number[]} shown
 * @param {Look} look
 * @param {number} width
 */
function svgLegend(shown, look, width) {
  const group = element("g", { "font-size": 12, fill: look.text });
  const each = Math.max(1, Math.floor((width - 16) / 74));
  shown.forEach((head, place) => {
    const [x, y] = [16 + (place % each) * 74, 50 + Math.floor(place / each) * 18];
    group.append(element("rect", { x, y: y - 10, width: 11, height: 11, rx: 2, fill: look.colours[head] }));
    group.append(element("text", { x: x + 16, y }, say("head {n}", { n: head + 1 })));
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
  const root = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" });
  root.append(element("rect", { width, height, fill: look.background }), element("text", title, picture.title));
  root.append(legend.group);
  for (const [side, x] of /** @type {[Side, number][]} */ ([["query", end], ["key", begin]])) {
    const heading = { x, y: top - 14, "font-size": 12, "font-weight": 600, fill: look[side] };
    root.append(element("text", { ...heading, "text-anchor": ANCHORS[side] }, picture.axes[side]));
  }
  const stage = element("g", { transform: `translate(${end} ${top})` });
  stage.append(svgLines(picture.scene, look));
  stage.append(svgColumn(picture, "query", -6), svgColumn(picture, "key", spans.middle + 6));
  root.append(stage, element("text", { x: 16, y: height - 12, "font-size": 11, fill: look.text }, picture.note));
  return new XMLSerializer().serializeToString(root);
}
