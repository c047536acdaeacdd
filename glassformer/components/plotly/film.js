// @ts-check
// Lays out the tiles of a film (`film.py` of the charts of trainings) for the room there is: as many in a row as it holds, in rows of like
// length. What Python sends is laid out for a sheet of paper.

import { decoded } from "./numbers.js";

/** @import { Figure, Film, Layout, Trace } from "./types.js" */
/** @typedef {{ columns: number, rows: number, height: number }} Plan */

const GAP = 0.08;  // between two tiles of a row, of the width of one
const LABEL = 36;  // pixels of the name above a tile
const FRAME = 96;  // of title and axis
const SIDE = 76;  // beside the tiles: the names of the axis and of the scale

/**
 * How many tiles stand in a row, and how high all of it is; where no more than `most` pixels are to be had, the tiles
 * are as large as fits.
 * @param {Film} film @param {number} width @param {number} [most] @returns {Plan}
 */
export function planned({ names, least, share }, width, most = 0) {
  const count = names.length, room = Math.max(least, width - SIDE);
  /** @param {number} columns */
  const height = (columns) => {
    const tall = (room / (columns + GAP * (columns - 1))) * share;
    return Math.round(FRAME + Math.ceil(count / columns) * (tall + LABEL));
  };
  let columns = Math.max(1, Math.min(count, Math.floor(room / least)));
  if (most) {
    columns = 1;
    while (columns < count && height(columns) > most) columns += 1;
  }
  columns = Math.ceil(count / Math.ceil(count / columns));
  return { columns, rows: Math.ceil(count / columns), height: height(columns) };
}

/**
 * Where cells begin and end along a row of tiles, each 1 long, with a gap after it that is one cell.
 * @param {number} tiles @param {number} cells @param {number} gap
 */
function edges(tiles, cells, gap) {
  const found = Array.from({ length: tiles }, (_, tile) =>
    Array.from({ length: cells + 1 }, (_one, cell) => tile * (1 + gap) + cell / cells)).flat();
  return [...found, tiles * (1 + gap)];
}

/**
 * Lay the tiles of a figure out anew.
 * @param {Figure} figure
 * @param {Plan} plan
 * @param {number} height of all of it, in pixels
 */
export function wrapFilm({ data, layout }, { columns, rows }, height) {
  /** @type {Film} */
  const film = layout.meta.film;
  const gap = LABEL / Math.max(24, (height - FRAME) / rows - LABEL);
  for (const trace of data) if (["film", "film-closed"].includes(trace.meta)) wrapTrace(trace, film, columns, rows, gap);
  layout.xaxis.range = [-0.01, columns * (1 + GAP) - GAP + 0.01];
  layout.yaxis.range = [rows * (1 + gap) - gap + 0.01, -gap];
  film.names.forEach((_, tile) => {
    const [x, y] = [(tile % columns) * (1 + GAP), Math.floor(tile / columns) * (1 + gap)];
    Object.assign(layout.annotations[tile], { x, y });
    Object.assign(layout.shapes[tile], { x0: x, x1: x + 1, y0: y, y1: y + 1 });
  });
  Object.assign(film, { columns });
}

/** @param {Trace} trace @param {Film} film @param {number} columns @param {number} rows @param {number} gap */
function wrapTrace(trace, film, columns, rows, gap) {
  const sent = decoded(trace.z), [height, width] = [film.queries.length + 1, film.keys.length + 1];
  /** @type {[z: any[], customdata: any[]]} */
  const [z, names] = [[], []];
  for (let row = 0; row < rows * height; row += 1) {
    const cells = Array.from({ length: columns * width }, (_, column) => {
      const tile = Math.floor(row / height) * columns + Math.floor(column / width);
      const there = tile < film.names.length && row % height < height - 1 && column % width < width - 1;
      if (!there) return { value: null, named: ["", "", ""] };
      const [from, at] = [Math.floor(tile / film.columns) * height, (tile % film.columns) * width];
      const value = sent[from + (row % height)][at + (column % width)];
      const named = [film.names[tile], film.queries[row % height], film.keys[column % width]];
      return { value: Number.isFinite(value) ? value : null, named };
    });
    z.push(cells.map(({ value }) => value));
    names.push(cells.map(({ named }) => named));
  }
  Object.assign(trace, { z, customdata: names, x: edges(columns, width - 1, GAP), y: edges(rows, height - 1, gap) });
}

/**
 * The place of a click as if one tile stood in a row, which is how Python counts.
 * @param {Layout | undefined} layout @param {number[]} place
 */
export function placeInFilm(layout, place) {
  /** @type {Film | undefined} */
  const film = layout?.meta?.film;
  if (!film || place.length !== 2) return place;
  const [height, width] = [film.queries.length + 1, film.keys.length + 1];
  const tile = Math.floor(place[0] / height) * film.columns + Math.floor(place[1] / width);
  return [tile * height + (place[0] % height), place[1] % width];
}
