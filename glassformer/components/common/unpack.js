// @ts-check
// Numbers as `packing.py` packs them: bytes as base64 text, and a bit for each place that has one.

/** @import { Packed } from "./payloads.js" */

/** @param {string} text */
export function bytesOf(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/**
 * A test of bits, highest bit first; without bits every place passes.
 * @param {string | null | undefined} text @returns {(place: number) => boolean}
 */
export function bitsOf(text) {
  if (!text) return () => true;
  const bits = bytesOf(text);
  return (place) => Boolean(bits[place >> 3] & (128 >> (place & 7)));
}

/**
 * What was packed, as whole steps of 1 / levels.
 * @param {Packed} packed @returns {Uint8Array | Uint16Array}
 */
export function unpackSteps({ levels, count, steps, filled }) {
  const raw = bytesOf(steps);
  const sent = levels > 255 ? new Uint16Array(raw.buffer) : raw;
  if (filled === null) return sent;
  const has = bitsOf(filled);
  const all = levels > 255 ? new Uint16Array(count) : new Uint8Array(count);
  let place = 0;
  for (let i = 0; i < count; i += 1) if (has(i)) all[i] = sent[place++];
  return all;
}
