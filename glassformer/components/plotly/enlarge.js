// @ts-check
// Enlarges all that is measured in pixels in a figure: letters, margins, marks and lines. Room that grows as much keeps
// the figure's proportions; where it does not, `fit.js` names fewer places.

import { PLAIN_TYPE } from "../common/present.js";
import { decoded } from "./numbers.js";

/** @import { Figure } from "./types.js" */

const LENGTHS = new Set(["standoff", "startstandoff", "xshift", "yshift", "borderpad", "borderwidth", "thickness",
  "xpad", "ypad", "ticklen", "ticklabelstandoff", "itemwidth"]);
const MEASURED = /font$|^(?:marker|selected|unselected)$/;

/**
 * Enlarge a figure in place. Its own letters must already be said (`paint.js`): what is left to Plotly would stay small.
 * @param {Figure} figure @param {number} scale
 */
export function enlarge({ data, layout }, scale) {
  if (scale === 1) return;
  for (const trace of data) {
    for (const name of Object.keys(trace)) {
      if (isRecord(trace[name]) && !("bdata" in trace[name])) grow(trace[name], name, scale);
    }
  }
  const { meta, ...rest } = layout;
  grow(rest, "", scale);
  if (meta?.follow) grow(meta.follow.marks, "", scale);
}

/** @param {unknown} value */
function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/**
 * @param {any} part
 * @param {string} named what it is called in the figure
 * @param {number} scale
 */
function grow(part, named, scale) {
  if (Array.isArray(part)) {
    if (typeof part[0] === "object") for (const entry of part) if (entry) grow(entry, named, scale);
    return;
  }
  for (const [name, value] of Object.entries(part)) {
    if (name === "tickfont") value.size = Math.max(value.size ?? 0, PLAIN_TYPE);  // smaller ones were for phones
    if (isLength(part, named, name)) part[name] = times(value, scale);
    else if (typeof value === "object" && value !== null && !ArrayBuffer.isView(value)) grow(value, name, scale);
  }
}

/** @param {any} part @param {string} named @param {string} name */
function isLength(part, named, name) {
  if (name === "size") return MEASURED.test(named);
  if (name === "width") return named === "line";
  if (named === "margin" || named === "pad") return "lrtb".includes(name);
  // An arrow may also begin at a place of an axis.
  if (name === "ax" || name === "ay") return !/^[xy]/.test(part[`${name}ref`] ?? "");
  return LENGTHS.has(name);
}

/**
 * @param {any} value a number, a list of numbers, or one as Python packs it
 * @param {number} scale
 */
function times(value, scale) {
  if (typeof value === "number") return value * scale;
  const listed = decoded(value);
  return Array.isArray(listed) || ArrayBuffer.isView(listed)
    ? Array.from(/** @type {any} */ (listed), (each) => each * scale) : value;
}
