// @ts-check
// The pure parts of the stepper: a run as it was packed, numbers and texts as they are shown.

import { unpackSteps } from "../common/unpack.js";

/** @import { SentRun } from "../common/payloads.js" */

/** @typedef {ReturnType<typeof unpacked>} Run whose texts are whole, and its shading whole steps of 1 / levels, [step, source] */

/** @param {SentRun} run */
export function unpacked(run) {
  let text = "";
  const texts = run.texts.map(([same, added]) => (text = text.slice(0, same) + added));
  const starts = run.texts.map(([same]) => same);
  const { shading } = run;
  return { ...run, texts, starts, shading: shading && { levels: shading.levels, steps: unpackSteps(shading) } };
}

/**
 * A part of a text, cut into what each step has written of it: pairs of a step and its letters.
 * @param {string} text @param {number} from the place at which the part begins
 * @param {number[]} starts where each step began to write
 * @returns {[step: number, letters: string][]}
 */
export function byStep(text, from, starts) {
  /** @type {[step: number, letters: string][]} */
  const found = [];
  let end = text.length;
  for (let step = starts.length - 1; step >= 0 && end > 0; step -= 1) {  // a later step may write over an earlier one
    const start = Math.max(starts[step] - from, 0);
    if (start >= end) continue;
    found.unshift([step, text.slice(start, end)]);
    end = start;
  }
  return found;
}

/**
 * Two digits where they say something; never "0.00" or "1.00" for a number that is neither.
 * @param {number} value
 */
export function formatProbability(value) {
  if (value === 0 || value === 1) return value.toFixed(2);
  if (value < 0.001) return "<0.001";
  if (value < 0.01) return value.toFixed(3);
  return value >= 0.995 ? ">0.99" : value.toFixed(2);
}

/** "p = 0.83", "p > 0.99". @param {number} value */
export function saidProbability(value) {
  const text = formatProbability(value);
  return /^[<>]/.test(text) ? `p ${text[0]} ${text.slice(1)}` : `p = ${text}`;
}

/**
 * Letters of the same width in a fixed-width font: they hold the place of a piece without giving it away.
 * @param {string} text
 */
export function filler(text) {
  const wide = (/** @type {string} */ letter) => (letter.codePointAt(0) ?? 0) > 0x2e7f;
  return Array.from(text, (letter) => (wide(letter) ? "国" : /\s/.test(letter) ? " " : "n")).join("");
}

/** @param {string} before @param {string} after */
export function commonStart(before, after) {
  const [left, right] = [Array.from(before), Array.from(after)];
  let count = 0;
  while (count < left.length && left[count] === right[count]) count += 1;
  return right.slice(0, count).join("");
}
