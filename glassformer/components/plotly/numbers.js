// @ts-check
// Numbers of a figure as Python sent them, and texts as they were before Plotly's markup.

import { bitsOf, bytesOf } from "../common/unpack.js";

/** @import { Figure, Sent } from "./types.js" */

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
