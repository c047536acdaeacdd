// @ts-check
// Unpacks a map of maps (`charts/grid.py`): a byte a cell becomes colour, number and names, which are sent once.

import { bytesOf } from "../common/unpack.js";

/** @import { Grid, Trace } from "./types.js" */

const STEPS = 250;
const CLOSED = 255;

/**
 * The weight that a byte stands for; `least` is the start of a logarithmic scale, 0 for a linear one, and a signed
 * scale goes from minus its end to its end.
 * @param {number} code @param {number} top @param {number} least @param {boolean} [signed]
 */
export function gridNumber(code, top, least, signed) {
  const share = code / STEPS;
  if (code > STEPS) return null;
  return top * (signed ? 2 * share - 1 : least ? least ** (1 - share) : share);
}

/**
 * Give a grid's trace its cells; the weights and the closed cells are two traces over the same bytes.
 * @param {Trace} trace @param {Grid | undefined} grid
 */
export function restoreGrid(trace, grid) {
  if (!grid || !["grid", "grid-closed"].includes(trace.meta)) return;
  const bytes = bytesOf(grid.codes);
  const rows = grid.layers.flatMap((layer) => grid.queries.map((query) => [layer, query]));
  const columns = grid.heads.flatMap((head) => grid.keys.map((key) => [head, key]));
  const closed = trace.meta === "grid-closed";
  /** @type {[z: any[], customdata: any[]]} */
  const [z, names] = [[], []];
  rows.forEach((row, i) => {
    const codes = bytes.subarray(i * columns.length, (i + 1) * columns.length);
    const tops = grid.tops.slice(Math.floor(i / grid.queries.length) * grid.heads.length);
    z.push(Array.from(codes, (code) => {
      if (closed) return code === CLOSED ? 0 : null;
      return code <= STEPS ? code / STEPS : null;
    }));
    names.push(columns.map((column, j) => {
      const top = grid.tops.length === 1 ? grid.tops[0] : tops[Math.floor(j / grid.keys.length)];
      return [row, column, gridNumber(codes[j], top, grid.least, grid.signed)];
    }));
  });
  trace.z = z;
  trace.customdata = names;
}
