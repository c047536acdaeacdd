// @ts-check
// Where everything stands in the flow view: the pieces, and the lines and blocks between them.

import { isOpen, pairsOf, SIDES, weightOf } from "./weights.js";

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { Line, Model, Rows, Seen } from "./types.js" */

const BLOCK_MOST = 11;

/**
 * Where the pieces stand: the longer column sets the height, the shorter is spread a little and centred.
 *
 * `room` is the height to fill, if rows of at least 15 and at most `widest` pixels can; the 15 grow with the letters.
 * @param {Model} model @param {number} room @param {number} widest @param {number} [scale]
 */
export function placeRows(model, room, widest, scale = 1) {
  const most = Math.max(model.queries, model.keys, 1);
  const pitch = Math.min(widest, Math.max(15 * scale, Math.floor(room / most)));
  const height = pitch * most;
  const column = (/** @type {number} */ count) => {
    const own = Math.min(height / Math.max(1, count), pitch * 1.5);
    return { pitch: own, start: (height - own * count) / 2 };
  };
  return { pitch, height, query: column(model.queries), key: column(model.keys) };
}

/** @type {(rows: Rows, side: Side, index: number) => number} */
export const rowCentre = (rows, side, index) => rows[side].start + (index + 0.5) * rows[side].pitch;

/**
 * Each head has its own lane in a row, so that lines of several heads between two pieces lie side by side.
 * @param {number} head @param {number} heads @param {number} pitch
 */
export function laneOf(head, heads, pitch) {
  const spread = Math.min(pitch * 0.6, heads * 3.2);
  return heads > 1 ? (head / (heads - 1) - 0.5) * spread : 0;
}

/**
 * What stands between the two columns for the given width: lines, and the blocks of the other side.
 * @param {Seen} seen @param {number} width @param {Rows} rows
 */
export function scene(seen, width, rows) {
  const { model, focus } = seen;
  const size = Math.max(2, Math.min(BLOCK_MOST, rows.pitch - 5, (width * 0.2) / model.heads));
  const strip = model.heads * size + 10;
  // Blocks stand on the other side of what is looked at; where there are none the lines reach the pieces.
  const [left, right] = SIDES.map((side) => (focus && focus.side !== side ? strip : 5));
  const lines = seen.chosen.lines.map((line) => {
    const lane = laneOf(line.head, model.heads, rows.pitch);
    return {
      ...line,
      x0: left, y0: rowCentre(rows, "query", line.query) + lane,
      x1: width - right, y1: rowCentre(rows, "key", line.key) + lane,
      alpha: alphaOf(seen, line),
    };
  });
  return { lines, blocks: focus ? blocksOf(seen, focus, width, rows, size) : [] };
}

/**
 * All lines together are as opaque as their weight. Of one piece there are few, so the root of the weight is taken:
 * 0.05 could not be seen. Beside a pair that is looked at, the other lines step back.
 * @param {Seen} seen @param {Line} line
 */
function alphaOf({ pair, focus }, line) {
  if (!focus) return line.weight;
  const aside = pair && (pair.query !== line.query || pair.key !== line.key);
  return Math.sqrt(line.weight) * (aside ? 0.4 : 1);
}

/** @param {Seen} seen @param {Pin} focus @param {number} width @param {Rows} rows @param {number} size */
function blocksOf({ model, shown }, focus, width, rows, size) {
  const side = focus.side === "query" ? "key" : "query";
  const tall = Math.max(4, Math.min(rows[side].pitch - 5, 16));
  const left = side === "key" ? width - model.heads * size - 4 : 5;
  return pairsOf(model, focus).filter((pair) => isOpen(model, pair)).flatMap((pair) => shown.map((head) => ({
    head, x: left + head * size, y: rowCentre(rows, side, pair[side]) - tall / 2, width: size - 1, height: tall,
    alpha: Math.sqrt(weightOf(model, head, pair)),
  })));
}
