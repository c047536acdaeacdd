// @ts-check
// Numbers of a figure as Python sent them, a map of maps (`charts/grid.py`) whose bytes become colours, numbers and names,
// and texts as they were before Plotly's markup.

import { bitsOf, bytesOf } from "../common/unpack.js";

/** @import { Figure, Grid, Sent, Trace } from "./types.js" */

/** @type {Record<string, (bytes: Uint8Array<ArrayBuffer>) => any>} */
const FORMS = {
  i1: (bytes) => new Int8Array(bytes.buffer),
  u1: (bytes) => bytes,
  i2: (bytes) => new Int16Array(bytes.buffer),
  u2: (bytes) => new Uint16Array(bytes.buffer),
  i4: (bytes) => new Int32Array(bytes.buffer),
  u4: (bytes) => new Uint32Array(bytes.buffer),
  f4: (bytes) => new Float32Array(bytes.buffer),
  f8: (bytes) => new Float64Array(bytes.buffer),
  f2: fromHalf,
  f3: fromThreeBytes,
};

/**
 * Numbers in half precision, which few browsers know; whatever is beyond them was not sent.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
function fromHalf(bytes) {
  const halves = new Uint16Array(bytes.buffer);
  return Float32Array.from(halves, (half) => {
    const exponent = (half >> 10) & 31, fraction = half & 1023;
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction;
    return half >> 15 ? -size : size;
  });
}

/** 32-bit numbers without their lowest byte, which is 0. @param {Uint8Array} bytes */
function fromThreeBytes(bytes) {
  const numbers = new Float32Array(bytes.length / 3);
  const whole = new Uint8Array(numbers.buffer);
  for (let i = 0; i < numbers.length; i += 1) whole.set(bytes.subarray(3 * i, 3 * i + 3), 4 * i + 1);
  return numbers;
}

/**
 * Put numbers where the bits say that there is one, elsewhere NaN (0 in whole numbers); a single one stands for all.
 * @param {any} numbers @param {string} there @param {number} count
 */
function spreadOut(numbers, there, count) {
  if (!there && numbers.length === count) return numbers;
  const has = bitsOf(there);
  const values = new numbers.constructor(count).fill(NaN);
  let place = 0;
  for (let i = 0; i < count; i += 1) {
    if (!has(i)) continue;
    values[i] = numbers.length === 1 ? numbers[0] : numbers[place];
    place += 1;
  }
  return values;
}

/**
 * The numbers of a list or of Plotly's base64 form; two-dimensional ones as a list of rows.
 * @param {Sent} sent @returns {any}
 */
export function decoded(sent) {
  if (!sent || Array.isArray(sent) || !sent.bdata) return sent ?? [];
  const [rows, columns] = String(sent.shape ?? "").split(",").map(Number);
  const numbers = FORMS[sent.dtype](bytesOf(sent.bdata));
  if (columns === undefined) return numbers;
  const values = sent.there === undefined ? numbers : spreadOut(numbers, sent.there, rows * columns);
  return Array.from({ length: rows }, (_, row) => values.subarray(row * columns, (row + 1) * columns));
}

/**
 * The figure as Python sent it, with the maps whole that Plotly could not read.
 * @param {string} text @returns {Figure}
 */
export function parsedFigure(text) {
  const figure = JSON.parse(text);
  for (const trace of figure.data) if (trace.z?.there !== undefined) trace.z = decoded(trace.z);
  return figure;
}

/**
 * A number as short as tells it from its neighbours: 0.1, not 0.10000000149011612, for 32 bits.
 * @param {any} list @param {number} place
 */
export function shortest(list, place) {
  const value = list[place];
  if (!(list instanceof Float32Array)) return value;
  for (let digits = 6; digits < 9; digits += 1) {
    const tried = Number(value.toPrecision(digits));
    if (Math.fround(tried) === value) return tried;
  }
  return Number(value.toPrecision(9));
}

/**
 * The text behind what `theme.literal` wrote for Plotly; tags and isolates around it are the charts' own.
 * @param {unknown} written
 */
export function rawText(written) {
  return String(written ?? "")
    .replace(/<br>/g, "; ")
    .replace(/<[^>]*>|[\u2068\u2069]/g, "")
    .replace(/⟨U\+([0-9A-F]{4,6})⟩|&#(\d+);/g, (_, hex, decimal) =>
      String.fromCodePoint(hex ? parseInt(hex, 16) : Number(decimal)));
}

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
