// @ts-check
// A map of maps: beside its tiles stand the queries, under them the keys, all where there is room for each. Else those
// of the first tile do, or of the one that is pointed at; where they are too close there too, some are left out, but
// never the two of the cell that is pointed at.

import { make } from "../common/dom.js";
import { lengthOf } from "./fit.js";
import { rawText } from "./numbers.js";

/** @import { Layout, Plot, View } from "./types.js" */

const ROOM = 13;  // pixels that a name takes along its edge
const LETTER = 6.8;
const GAP = 6;
const MARK = 8;  // of a step, at the left of a row
const SHARE = 0.2;  // of a chart's width or height, that names take at most

/**
 * Which places of tiles in a row have a name: all if there is room; else, as far as there is, those of the tile with the
 * place that is pointed at, which always has one.
 * @param {number} count of a tile
 * @param {number} tiles
 * @param {number} size pixels of a place
 * @param {number | undefined} at a place of all; the first if there is none
 */
export function namedInTiles(count, tiles, size, at = 0) {
  const apart = Math.ceil(ROOM / size), every = Array.from({ length: count * tiles }, (_, place) => place);
  if (apart <= 1) return every;
  return every.slice(at - (at % count), at - (at % count) + count).filter((place) => (place - at) % apart === 0);
}

/**
 * Leave room for the names: numbers of layers and heads stand off the plot.
 * @param {Layout} layout
 */
export function leaveRoom(layout) {
  const grid = layout.meta?.grid;
  if (!grid) return;
  const room = (/** @type {string[]} */ names, /** @type {number} */ whole) =>
    Math.round(GAP + Math.min(LETTER * Math.max(...names.map((name) => lengthOf(rawText(name)))), SHARE * whole));
  (layout.yaxis ??= {}).ticklabelstandoff = room(grid.queries, layout.width) + MARK;
  (layout.xaxis ??= {}).ticklabelstandoff = room(grid.keys, layout.height);
}

/**
 * Give a chart the names beside its tiles.
 * @param {View} view
 * @returns {{ point: (place?: unknown) => void }} a place that is not a cell's is none
 */
export function makeEdges(view) {
  const names = make("div", "gf-edges", "", { "aria-hidden": true });  // the numbers are read as a table
  view.sheet.append(names);
  return { point: (place) => names.replaceChildren(...beside(view, Array.isArray(place) ? place : [])) };
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
 * The names beside the tiles that are in sight.
 * @param {View} view
 * @param {number[]} place the cell that is pointed at
 */
function beside({ plot, sheet }, [row, column]) {
  const grid = plot.layout?.meta?.grid;
  const pixels = pixelsOf(plot);
  if (!grid || !pixels || sheet.hidden) return [];
  const { xaxis, yaxis } = plot._fullLayout ?? {};
  /**
   * @param {string} kind
   * @param {any} axis
   * @param {(at: number) => number} where
   * @param {number | undefined} at
   * @param {string[]} names
   * @param {number} tiles
   * @param {(along: number) => Record<string, string>} style
   */
  const along = (kind, axis, where, at, names, tiles, style) =>
    namedInTiles(names.length, tiles, Math.abs(where(1) - where(0)), at).flatMap((place) => {
      const pixel = where(place);
      if (pixel < axis._offset || pixel > axis._offset + axis._length) return [];  // the chart is zoomed
      const made = make("span", `gf-edge gf-edge-${kind} gf-quoted`, rawText(names[place % names.length]));
      made.classList.toggle("gf-edge-at", place === at);
      Object.assign(made.style, style(pixel));
      return [made];
    });
  return [
    ...along("query", yaxis, pixels.y, row, grid.queries, grid.layers.length, (top) => ({
      top: `${top}px`, left: `${xaxis._offset - MARK}px`, maxWidth: `${yaxis.ticklabelstandoff - MARK}px` })),
    ...along("key", xaxis, pixels.x, column, grid.keys, grid.heads.length, (left) => ({
      left: `${left}px`, top: `${yaxis._offset + yaxis._length}px`, maxHeight: `${xaxis.ticklabelstandoff}px` })),
  ];
}
