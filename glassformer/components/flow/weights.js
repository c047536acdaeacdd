// @ts-check
// The weights of the flow view: decoding them, and choosing the lines that are worth drawing.

import { bitsOf, unpackSteps } from "../common/unpack.js";

/** @import { FlowPayload, Pin, Side } from "../common/payloads.js" */
/** @import { Line, Model, Pair } from "./types.js" */

export const MOST_LINES = 6000;  // more take a second to paint, and nobody can tell them apart
/** @type {Side[]} */
export const SIDES = ["query", "key"];

/**
 * The weights as whole steps [head, query, key] of 1 / levels; masked cells are closed in `open` and hold 0.
 * @param {Pick<FlowPayload, "queries" | "keys" | "heads" | "weights" | "open">} data
 */
export function decode(data) {
  const [queries, keys, heads] = [data.queries.length, data.keys.length, data.heads];
  const cells = queries * keys;
  const sent = unpackSteps(data.weights);
  const isFree = bitsOf(data.open);
  const open = new Uint8Array(cells);
  const steps = new Uint16Array(heads * cells);
  const many = sent.length / Math.max(1, heads);
  let place = 0;
  for (let cell = 0; cell < cells; cell += 1) {
    if (!isFree(cell)) continue;
    open[cell] = 1;
    for (let head = 0; head < heads; head += 1) steps[head * cells + cell] = sent[head * many + place];
    place += 1;
  }
  return { queries, keys, heads, cells, open, steps, levels: data.weights.levels };
}

/** @type {(model: Model, head: number, pair: Pair) => number} */
export const weightOf = ({ steps, cells, keys, levels }, head, { query, key }) =>
  steps[head * cells + query * keys + key] / levels;

/** @type {(model: Model, pair: Pair) => boolean} */
export const isOpen = ({ open, keys }, { query, key }) => open[query * keys + key] === 1;

/**
 * A piece with each of the other side.
 * @param {Model} model @param {Pin} focus @returns {Pair[]}
 */
export function pairsOf({ queries, keys }, { side, index }) {
  return side === "query"
    ? Array.from({ length: keys }, (_, key) => ({ query: index, key }))
    : Array.from({ length: queries }, (_, query) => ({ query, key: index }));
}

/**
 * Two digits where they say something; a small weight may have been sent as 0, so never "0.00".
 * @param {number} value
 */
export function formatWeight(value) {
  if (value === 1) return "1.00";
  if (value < 0.005) return "<0.01";
  return value >= 0.995 ? ">0.99" : value.toFixed(2);
}

/**
 * The cells of which lines are wanted: all, or those of one piece.
 * @param {Model} model @param {Pin | null} focus
 */
function cellsOf(model, focus) {
  const cells = focus
    ? pairsOf(model, focus).map(({ query, key }) => query * model.keys + key)
    : Array.from({ length: model.cells }, (_, cell) => cell);
  return cells.filter((cell) => model.open[cell]);
}

/**
 * How many weights there are of each step, and their sum in steps.
 * @param {Model} model @param {number[]} shown @param {number[]} cells
 */
function tally(model, shown, cells) {
  const counts = new Uint32Array(model.levels + 1);
  let total = 0;
  for (const head of shown) {
    for (const cell of cells) {
      const step = model.steps[head * model.cells + cell];
      counts[step] += 1;
      total += step;
    }
  }
  return { counts, total };
}

/**
 * Which lines to draw, weakest first, and what is left out.
 *
 * `cut` is the least weight drawn: the threshold, or more where more than MOST_LINES would pass it. A weight that is
 * sent as 0 has no line.
 * @param {Model} model
 * @param {number[]} shown heads
 * @param {number} threshold
 * @param {Pin | null} focus
 */
export function chooseLines(model, shown, threshold, focus) {
  const cells = cellsOf(model, focus);
  const { counts, total } = tally(model, shown, cells);
  const least = Math.max(1, Math.ceil(threshold * model.levels - 1e-6));
  let [cut, many, held] = [model.levels + 1, 0, 0];
  while (cut > least && (many + counts[cut - 1] <= MOST_LINES || many === 0)) {
    cut -= 1;
    many += counts[cut];
    held += counts[cut] * cut;
  }
  /** @type {Line[]} */
  const lines = [];
  for (const cell of many ? cells : []) {
    for (const head of shown) {
      const step = model.steps[head * model.cells + cell];
      if (step < cut) continue;
      lines.push({ head, query: Math.floor(cell / model.keys), key: cell % model.keys, weight: step / model.levels });
    }
  }
  lines.sort((a, b) => a.weight - b.weight);
  const crowded = cut > least;
  return {
    lines, all: cells.length * shown.length, crowded, share: total ? held / total : 0,
    cut: crowded ? cut / model.levels : threshold,
  };
}

/**
 * For each piece of the other side the mean weight over the shown heads, null where it is masked.
 * @param {Model} model @param {number[]} shown @param {Pin} focus
 */
export function meansOf(model, shown, focus) {
  return pairsOf(model, focus).map((pair) => {
    if (!isOpen(model, pair) || !shown.length) return null;
    return shown.reduce((sum, head) => sum + weightOf(model, head, pair), 0) / shown.length;
  });
}
