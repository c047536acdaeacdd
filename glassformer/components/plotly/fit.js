// @ts-check
// Fits a figure to the room it has: lines of the title, and how many pieces an axis can name.

import { PLAIN_TYPE } from "../common/present.js";
import { say } from "../common/i18n.js";

/** @import { Layout, Plot, Ticks } from "./types.js" */

const PIXELS_PER_LABEL = 14;  // as `ROW_PIXELS` of charts/theme.py
const CLOSE_BUTTON = 48;
const AXIS_TITLE = 14;
const BESIDE_AXIS = 60;  // a title may be a little longer than its axis
const HOVER_WIDTH = 420;

// Chinese has no spaces: a line may break beside any character, but none begins with a mark that closes or ends with one
// that opens (W3C, "Requirements for Chinese Text Layout", section 3.1.3).
const WIDE = "\\u2e80-\\u9fff\\uf900-\\ufaff\\uff00-\\uff60";
const [OPENING, CLOSING] = ["（《“‘「【", "，。；：？！、）》”’」】…"];
const PART = new RegExp(`( *)([${OPENING}]*(?:[${WIDE}]|[^ ${WIDE}]+)[${CLOSING}]*)`, "g");
const BESIDE_WIDE = new RegExp(` (?=[${WIDE}])|(?<=[${WIDE}]) `, "g");
const [WIDE_ONE, LETTER_WIDTH] = [new RegExp(`[${WIDE}]`, "g"), 0.52];

/**
 * How many letters a text is long; a Chinese character is as wide as two, a space beside it half.
 * @param {string} text
 */
export function lengthOf(text) {
  const shown = text.replace(/&#?\w+;/g, "x");
  const [wide, narrow] = [WIDE_ONE, BESIDE_WIDE].map((pattern) => shown.match(pattern)?.length ?? 0);
  return shown.length + (1 / LETTER_WIDTH - 1) * wide - narrow / 2;
}

/**
 * @param {string} text
 * @param {number} room letters of a line
 */
function broken(text, room) {
  const lines = [""];
  for (const [whole, , part] of text.matchAll(PART)) {
    const last = lines[lines.length - 1];
    if (last && lengthOf(last) + lengthOf(whole) > room) lines.push(part);
    else lines[lines.length - 1] += last ? whole : part;
  }
  return lines;
}

/**
 * Plotly never wraps a title, so break it at spaces, and between Chinese characters, there into lines of like length, as
 * none shall stand alone; its text is already escaped, so `<br>` is ours alone.
 * @param {string} text @param {number} width @param {number} size
 */
export function wrapped(text, width, size) {
  const room = Math.max(12, Math.floor(width / (size * LETTER_WIDTH)));
  const lines = broken(text, room);
  if (text.search(WIDE_ONE) < 0) return lines;
  for (let less = Math.ceil(lengthOf(text) / lines.length); less < room; less += 1) {
    const alike = broken(text, less);
    if (alike.length === lines.length) return alike;
  }
  return lines;
}

/**
 * @param {Layout} layout
 * @param {number} width
 * @param {boolean} isLarge
 */
export function fitTitle(layout, width, isLarge) {
  const title = layout.title;
  if (!title?.text) return;
  const size = title.font.size;
  const lines = wrapped(title.text, width - 16 - (isLarge ? CLOSE_BUTTON : 0), size);
  const note = title.subtitle?.text;
  const below = note ? wrapped(note, width - 16, title.subtitle.font.size) : [];
  title.text = lines.join("<br>");
  if (note) title.subtitle.text = below.join("<br>");
  // Plotly 4.1 places the first of several lines a cap height too high.
  if (lines.length > 1) title.pad = { ...title.pad, t: (title.pad?.t ?? 0) + 0.7 * size };
  const top = 26 + below.length * 18 + lines.length * size * 1.3;
  const own = (layout.margin?.t ?? 0) + (layout.showlegend ? (lines.length - 1) * size * 1.3 : 0);  // a legend is under it
  layout.margin = { ...layout.margin, t: Math.max(own, top) };
}

/**
 * Break the texts that head a band, which begin at the left edge of the chart, where they are wider than it, and those
 * that come on hover.
 * @param {Layout} layout @param {number} width
 */
export function fitHeads(layout, width) {
  if (!layout.annotations) return;
  const room = width - (layout.margin?.l ?? 0) - (layout.margin?.r ?? 0);
  layout.annotations = layout.annotations.map((/** @type {any} */ note) => (note.hovertext
    ? { ...note, hovertext: wrapped(note.hovertext, Math.min(room, HOVER_WIDTH), PLAIN_TYPE).join("<br>") }
    : note.x === 0 && note.xref === "paper" && note.yref?.endsWith(" domain")
      ? { ...note, text: wrapped(note.text, room, note.font?.size ?? layout.font?.size ?? 12).join("<br>") } : note));
}

/**
 * Label as many positions as fit the part of the axis in view, and say so when some have no label.
 * @param {Record<string, any>} axis
 * @param {Ticks[string]} ticks
 * @param {number} length
 * @param {number[] | undefined} range
 */
export function fitTicks(axis, ticks, length, range) {
  const [first, last] = range ? [Math.min(...range), Math.max(...range)] : [-0.5, ticks.labels.length - 0.5];
  const room = Math.max(1, Math.floor(length / PIXELS_PER_LABEL));
  const step = Math.max(1, Math.ceil((last - first) / room));
  const kept = ticks.labels.map((_, index) => index).filter((index) => index % step === 0);
  axis.tickmode = "array";
  axis.tickvals = kept;
  axis.ticktext = kept.map((index) => ticks.labels[index]);
  const title = step === 1 ? ticks.title : say("{axis} (1 in {step} labelled)", { axis: ticks.title, step });
  axis.title = { ...axis.title, text: wrapped(title, length + BESIDE_AXIS, AXIS_TITLE).join("<br>") };
  return step;
}

/**
 * Label all axes of pieces; what comes back changes only when another number of labels fits.
 * @param {Layout} layout
 * @param {Ticks | undefined} ticks
 * @param {Plot} drawn
 * @param {number} width
 * @param {number} height
 */
export function fitAllTicks(layout, ticks, drawn, width, height) {
  let signature = "";
  for (const [name, spec] of Object.entries(ticks ?? {})) {
    const axis = (layout[name] ??= {});
    const [start, end] = axis.domain ?? [0, 1];
    const guess = ((name[0] === "x" ? width : height) - 150) * (end - start);
    const known = drawn._fullLayout?.[name];
    signature += `${name}:${fitTicks(axis, spec, known?._length ?? guess, known?.range)};`;
  }
  return signature;
}
