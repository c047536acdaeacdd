// @ts-check
// Moves through the training of a checkpoint. What a stop is stands there at once; Python is told where the reader
// rests. While the training is played, each stop waits for the picture of the one before.

import { clamped, isPlain, make, moveSlider, set, showSign, signButton } from "../../../../components/common/dom.js";
import { mount } from "../../../../components/common/mount.js";
import { isPage } from "../../../../components/common/streamlit-page.js";
import { say } from "../../../../components/common/i18n.js";

/** @import { Create, MomentsPayload, Show } from "../../../../components/common/payloads.js" */

/**
 * @typedef {object} View
 * @property {HTMLElement} root
 * @property {HTMLElement} name
 * @property {HTMLElement} told
 * @property {HTMLInputElement} slider
 * @property {Record<"back" | "play" | "next", HTMLButtonElement>} buttons
 * @property {MomentsPayload} data
 * @property {number} at the stop that is shown here
 * @property {string} rested what Python knows of
 * @property {boolean} passing whether Python was told that more comes
 * @property {number} settling
 * @property {number} timer of what is played; 0 if nothing is
 * @property {(name: string, value: unknown) => void} setStateValue
 */

const SETTLE_MS = 200;
const PLAY_MS = 900;
const LOOK_MS = 60;

/** @type {Create<View>} */
function create(root, gone) {
  set(root, { role: "group", "aria-label": say("Time in the training") });
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    root, at: 0, settling: 0, timer: 0, passing: false,
    name: make("p", "gf-moment"),
    told: make("p", "gf-measured", "", { title: say("Training loss, loss on the dev pairs, and score on the dev pairs at that time") }),
    slider: make("input", "gf-slider", "", { type: "range", min: 0, step: 1, "aria-label": say("Time in the training") }),
  }));
  view.buttons = {
    back: signButton("back", say("Earlier snapshot"), () => turn(view, view.at - 1)),
    play: signButton("play", say("Play the training"), () => (view.timer ? pause(view) : play(view))),
    next: signButton("next", say("Later snapshot"), () => turn(view, view.at + 1)),
  };
  view.slider.addEventListener("input", () => turn(view, Number(view.slider.value)));
  view.slider.addEventListener("keydown", (event) => {
    if (event.key !== " " || !isPlain(event)) return;
    event.preventDefault();
    view.buttons.play.click();
  });
  const bar = make("div", "gf-bar");
  bar.append(view.buttons.back, view.buttons.play, view.buttons.next, view.slider);
  root.append(view.name, bar, view.told);
  // Who goes to another address is at its snapshot.
  addEventListener("popstate", () => { clearTimeout(view.settling); halt(view); view.passing = false; }, { signal: gone });
  return view;
}

/** @type {Show<View, MomentsPayload>} */
function show(view, { data: { payload }, setStateValue }) {
  const before = view.data;
  Object.assign(view, { data: payload, setStateValue });
  const here = before?.stops[view.at]?.step;
  const moved = before?.of !== payload.of || before.revision !== payload.revision;
  const kept = payload.stops.findIndex((stop) => stop.step === here);  // a training that runs has more stops by now
  if (moved) {
    clearTimeout(view.settling);
    if (before?.of !== payload.of) halt(view);
  }
  view.at = moved || kept < 0 ? payload.at : kept;
  if (moved) view.rested = where(view);
  draw(view);
}

/** @param {View} view */
const where = (view) => JSON.stringify(view.data.stops[view.at].step);

/** @param {View} view */
function draw(view) {
  const { stops } = view.data;
  const stop = stops[view.at];
  view.slider.max = String(stops.length - 1);
  moveSlider(view.slider, view.at, view.at / Math.max(stops.length - 1, 1), `${stop.name}. ${stop.told}`);
  view.name.textContent = stop.name;
  view.told.textContent = stop.told;
  set(view.buttons.back, { "aria-disabled": view.at === 0 });
  set(view.buttons.next, { "aria-disabled": view.at === stops.length - 1 });
}

/** Go to a stop by hand. @param {View} view @param {number} wanted */
function turn(view, wanted) {
  halt(view);
  const at = clamped(wanted, view.data.stops.length);
  if (at === view.at) return;
  view.at = at;
  draw(view);
  clearTimeout(view.settling);
  view.settling = setTimeout(() => tell(view, false), SETTLE_MS);
}

/** @param {View} view @param {boolean} passing */
function tell(view, passing) {
  if (where(view) === view.rested && passing === view.passing) return;
  Object.assign(view, { rested: where(view), passing });
  view.setStateValue("move", { of: view.data.of, step: view.data.stops[view.at].step, passing, when: Date.now() });
}

/** @param {View} view */
function play(view) {
  if (view.at === view.data.stops.length - 1) pass(view, 0);
  view.timer = setTimeout(() => onwards(view), PLAY_MS);
  showPlaying(view);
}

/** Go to the next stop, once the picture of this one is there. @param {View} view */
function onwards(view) {
  if (isPage("known") && !isPage("rests")) {
    view.timer = setTimeout(() => onwards(view), LOOK_MS);
    return;
  }
  pass(view, view.at + 1);
  if (view.at === view.data.stops.length - 1) pause(view);
  else view.timer = setTimeout(() => onwards(view), PLAY_MS);
}

/** @param {View} view @param {number} wanted */
function pass(view, wanted) {
  clearTimeout(view.settling);
  view.at = clamped(wanted, view.data.stops.length);
  draw(view);
  tell(view, view.at < view.data.stops.length - 1);
}

/** Play no more; what is shown is where the reader rests. @param {View} view */
function pause(view) {
  halt(view);
  if (view.passing) tell(view, false);
}

/** @param {View} view */
function halt(view) {
  clearTimeout(view.timer);
  view.timer = 0;
  showPlaying(view);
}

/** @param {View} view */
function showPlaying(view) {
  showSign(view.buttons.play, view.timer ? "pause" : "play", view.timer ? say("Pause") : say("Play the training"));
}

/** @param {View} view */
function close(view) {
  clearTimeout(view.settling);
  clearTimeout(view.timer);
}

export const component = mount({ styles: "moments", className: "gf-moments", create, show, close });
