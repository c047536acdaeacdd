// @ts-check
// What pictures show at each step of a run, fetched once; see `runs/step_frames.py`.

/** @import { Frames, Moment } from "./payloads.js" */

const MOST_KEPT = 60;
const IDLE_MS = 1000;
const PATIENCE_MS = 2000;
/** @type {Map<string, Promise<Frames | null>>} */
const fetched = new Map();

/** Have frames that need not be fetched, by their names. @param {Record<string, Frames>} given */
export function giveFrames(given) {
  for (const [name, frames] of Object.entries(given)) fetched.set(name, Promise.resolve(frames));
}

/** The frames under a name; null if there are none, or they did not come. @param {string} name */
export function framesOf(name) {
  const known = fetched.get(name);
  if (known) return known;
  const coming = get(name);
  fetched.set(name, coming);
  coming.then((found) => { if (!found) fetched.delete(name); });
  for (const old of Array.from(fetched.keys()).slice(0, -MOST_KEPT)) fetched.delete(old);
  return coming;
}

/** Who waits until frames are wanted. @type {Set<(nothing?: unknown) => void>} */
const waiting = new Set();

/** Somebody is about to step: those of all pictures are fetched now. */
export function wantFrames() {
  for (const go of waiting) go();
  waiting.clear();
}

/** Wait until somebody is about to step, or has looked at a page for a while: who only passes by costs nothing. */
export function whenWanted() {
  return new Promise((resolve) => {
    waiting.add(resolve);
    setTimeout(() => whenIdle().then(() => { if (waiting.delete(resolve)) resolve(undefined); }), PATIENCE_MS);
  });
}

/** Wait until the browser has nothing to do, or for a moment. */
export function whenIdle() {
  return new Promise((resolve) => {
    if ("requestIdleCallback" in window) requestIdleCallback(resolve, { timeout: IDLE_MS });
    else setTimeout(resolve, IDLE_MS / 4);
  });
}

/** @param {string} name @returns {Promise<Frames | null>} */
async function get(name) {
  try {
    const answer = await fetch(new URL(`frames/${name}`, location.href.replace(/\/+(?=[?#]|$)/, "")));
    return answer.status === 200 ? await answer.json() : null;
  } catch (error) {
    console.warn(error);
    return null;
  }
}

/**
 * The picture at a step.
 * @param {Frames} frames @param {number} step @returns {Moment}
 */
export function momentAt({ first, changes }, step) {
  return changed(structuredClone(first), structuredClone(changes[step]));
}

/**
 * Make of some JSON another one, by what `frames.py` calls its change.
 * @param {any} before @param {any} change
 */
export function changed(before, change) {
  if (change === null || change === undefined) return before;
  if (Array.isArray(change)) return change[0];
  for (const [key, one] of Object.entries(change)) {
    if (Array.isArray(one) && !one.length) delete before[key];
    else before[key] = changed(before[key], one);
  }
  return before;
}
