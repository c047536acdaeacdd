// @ts-check
// Moves from step to step, by buttons, a slider and the clock. Every step is taken here, at once; Python is told only
// where the reader came to rest.

import { clamped, make, set, showSign } from "../common/dom.js";
import { wantFrames } from "../common/frames.js";
import { restOf } from "../common/step.js";
import { isPage } from "../common/streamlit-page.js";
import { say } from "../common/i18n.js";
import { isCovered, render } from "./drawing.js";
import { SETTLE_MS } from "./settled-step.js";

/** @import { View } from "./view.js" */

const APART_MS = 120;  // of what two fragments hear: of two that wait Streamlit runs one
const PLAY_MS = 900;
const SPEEDS = [0.5, 1, 2, 4];

/** On this browser page, the one used last at the end: it gets the keys. @type {View[]} */
export const steppers = [];

/**
 * The one that goes with another, where two runs are stepped through together.
 * @param {View} view
 */
const partner = (view) => steppers.find(({ data }) => data?.name === view.data.moves);

/** The one that has the buttons, and so the keys, where two go together. @param {View} view */
export const leading = (view) => (view.data.led && partner(view)) || view;

/**
 * @param {View} view
 * @param {number} wanted
 * @param {number} [after] milliseconds by which Python is told later than usual
 */
export function go(view, wanted, after = 0) {
  if (!moved(view, wanted)) return;
  const other = partner(view);
  if (other) moved(other, view.step);
  clearTimeout(other?.settling);
  clearTimeout(view.settling);
  view.settling = setTimeout(() => settle(view, other), SETTLE_MS + after);
}

/** @param {View} view @param {number} wanted */
function moved(view, wanted) {
  const step = clamped(wanted, view.run.target.length);
  if (step === view.step) return false;
  wantFrames();
  view.step = step;
  view.halted = null;
  render(view);
  return true;
}

/**
 * Do something once Python has run what it was asked for; where nothing runs, as in a saved file, at once.
 * @param {() => void} act
 */
function whenRan(act) {
  if (isPage("runs")) setTimeout(() => whenRan(act), APART_MS);
  else act();
}

/**
 * Tell Python where the reader rests; where it has to draw something, it moves the other stepper itself.
 * @param {View} view @param {View} [other]
 */
function settle(view, other) {
  const both = other ? [other, view] : [view];
  const tells = both.map(({ data }) => (data.asks ? null : restOf(data.name)));
  const drawn = tells.includes(null);
  both.forEach((one, place) => {
    if (one.step === one.settled) return;
    const before = one.settled;
    one.settled = one.step;
    const report = { run_id: one.run.run_id, step_revision: one.revision, step: one.step, when: Date.now() };
    const tell = () => tells[place]?.(report, before);
    if (drawn) { if (one === view) one.setStateValue("step", report); }
    else if (place) setTimeout(() => whenRan(tell), APART_MS);
    else tell();
  });
}

/** @param {View} view @param {boolean} playing */
function showPlaying(view, playing) {
  showSign(view.play, playing ? "pause" : "play", playing ? say("Pause") : say("Play"));
  // A caption that is read aloud several times a second helps nobody.
  set(view.caption, { "aria-live": playing ? "off" : "polite" });
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

/** @param {View} view */
export function makeControls(view) {
  const bar = make("div", "gf-controls");
  const buttons = make("div", "gf-buttons");
  view.slider.addEventListener("input", () => go(view, Number(view.slider.value) - 1));
  buttons.append(view.first, view.back, view.play, view.next, view.last);
  bar.append(buttons, view.slider, speeds(view));
  return bar;
}

/** @param {View} view */
function speeds(view) {
  const select = make("select", "gf-speed", "", { "aria-label": say("Playing speed") });
  select.append(...SPEEDS.map((speed) => new Option(`${speed}×`, String(speed), false, speed === 1)));
  select.addEventListener("change", () => {
    view.speed = Number(select.value);
    if (view.timer) play(view);
  });
  return select;
}
