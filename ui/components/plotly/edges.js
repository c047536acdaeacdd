// @ts-check
// A map of maps by mouse: along the edges of the tile that is pointed at stand its pieces, queries at the left and keys
// on top. Where they are too close, some are left out; the two of the cell that is pointed at never are.

import { make } from "../common/dom.js";
import { rawText } from "./numbers.js";

/** @import { Plot, View } from "./types.js" */

const ROOM = 13;  // pixels that a name takes along its edge

/**
 * Which of some places have a name: the one that is pointed at, and others as far as there is room.
 * @param {number} count
 * @param {number} size pixels of a place
 * @param {number} at
 */
export function named(count, size, at) {
  const apart = Math.max(1, Math.ceil(ROOM / size));
  return Array.from({ length: count }, (_, place) => place).filter((place) => (place - at) % apart === 0);
}

/**
 * Give a chart the names at the edges of its tiles.
 * @param {View} view
 * @returns {{ point: (place: unknown) => void, leave: () => void }} a place that is not a cell's has no edges
 */
export function makeEdges(view) {
  const names = make("div", "gf-edges", "", { "aria-hidden": true });  // the numbers are read as a table
  view.root.append(names);
  const leave = () => names.replaceChildren();
  return { leave, point: (place) => names.replaceChildren(...(Array.isArray(place) ? around(view, place) : [])) };
}

/**
 * Where the places of a chart are drawn on its node, in pixels; null as long as there are none.
 * @param {Plot} plot
 */
export function pixelsOf({ _fullLayout: { xaxis, yaxis } = {} }) {
  if (!xaxis?.l2p || !yaxis?.l2p) return null;
  /** @type {(axis: any) => (at: number) => number} */
  const along = (axis) => (at) => axis.l2p(at) + axis._offset;
  return { x: along(xaxis), y: along(yaxis) };
}

/**
 * The names around the tile of a cell.
 * @param {View} view
 * @param {number[]} place
 */
function around({ plot }, [row, column]) {
  const grid = plot.layout?.meta?.grid;
  const pixels = pixelsOf(plot);
  if (!grid || !pixels) return [];
  const { x, y } = pixels;
  const [rows, columns] = [grid.queries.length, grid.keys.length];
  const top = row - (row % rows), left = column - (column % columns);
  const edge = { x: x(left - 0.5), y: Math.min(y(top - 0.5), y(top + rows - 0.5)) };
  const queries = named(rows, Math.abs(y(1) - y(0)), row - top).map((one) =>
    name("gf-edge-query", grid.queries[one], one === row - top, edge.x, y(top + one)));
  const keys = named(columns, Math.abs(x(1) - x(0)), column - left).map((one) =>
    name("gf-edge-key", grid.keys[one], one === column - left, x(left + one), edge.y));
  return [...queries, ...keys];
}

/**
 * @param {string} kind
 * @param {string} piece
 * @param {boolean} isAt
 * @param {number} x
 * @param {number} y
 */
function name(kind, piece, isAt, x, y) {
  const made = make("span", `gf-edge ${kind}`, rawText(piece));
  made.classList.toggle("gf-edge-at", isAt);
  Object.assign(made.style, { left: `${x}px`, top: `${y}px` });
  return made;
}
