// @ts-check
// Moves from step to step. Every step is taken here, at once; Python is told only where the reader came to rest.

import { say } from "../common/words.js";
import { isCovered, render } from "./drawing.js";
import { icon } from "./icons.js";

/** @import { View } from "./types.js" */

const SETTLE_MS = 200;
const PLAY_MS = 900;

/**
 * @param {View} view
 * @param {number} step
 */
export function clamp(view, step) {
  return Math.max(0, Math.min(step, view.run.target.length - 1));
}

/**
 * @param {View} view
 * @param {number} wanted
 * @param {number} [after] milliseconds by which Python is told later than usual
 */
export function go(view, wanted, after = 0) {
  const step = clamp(view, wanted);
  if (step === view.step) return;
  view.step = step;
  view.halted = null;
  render(view);
  clearTimeout(view.settling);
  view.settling = setTimeout(() => settle(view), SETTLE_MS + after);
}

/** @param {View} view */
function settle(view) {
  if (view.step === view.settled) return;
  view.settled = view.step;
  view.setStateValue("step", { run_id: view.run.run_id, step_revision: view.revision, step: view.step });
}

/**
 * @param {View} view
 * @param {boolean} playing
 */
function showPlaying(view, playing) {
  const label = playing ? say("Pause") : say("Play");
  view.play.replaceChildren(icon(playing ? "pause" : "play"));
  view.play.setAttribute("aria-label", label);
  view.play.title = label;
  // A caption that is read aloud several times a second helps nobody.
  view.caption.setAttribute("aria-live", playing ? "off" : "polite");
}

/** @param {View} view */
export function pause(view) {
  clearInterval(view.timer ?? undefined);
  view.timer = null;
  showPlaying(view, false);
}

/**
 * In guess mode Play stops at a step that nobody has guessed yet, and the stepper says so; keys may go on.
 * @param {View} view
 */
function halts(view) {
  if (!isCovered(view)) return false;
  pause(view);
  view.halted = view.step;
  render(view);
  return true;
}

/** @param {View} view */
export function play(view) {
  clearInterval(view.timer ?? undefined);
  const end = view.run.target.length - 1;
  if (view.step >= end && !isCovered(view)) go(view, 0);
  if (halts(view)) return;
  view.timer = setInterval(() => {
    go(view, view.step + 1);
    if (!halts(view) && view.step >= view.run.target.length - 1) pause(view);
  }, PLAY_MS / view.speed);
  showPlaying(view, true);
}

/** @param {View} view */
export function togglePlay(view) {
  if (view.timer) pause(view);
  else play(view);
}
