// @ts-check
// The buttons, the slider and the choice of speed, made once.

import { make, makeButton } from "../common/dom.js";
import { say } from "../common/words.js";
import { icon } from "./icons.js";
import { go, play, togglePlay } from "./moving.js";

/** @import { Icon } from "./icons.js" */
/** @import { View } from "./types.js" */

const SPEEDS = [0.5, 1, 2, 4];

/**
 * @param {Icon} name
 * @param {string} label
 * @param {() => void} act
 */
function button(name, label, act) {
  const made = makeButton(`gf-button gf-${name}`, "", label, act);
  made.setAttribute("aria-label", label);
  made.append(icon(name));
  return made;
}

/** @param {View} view */
export function makeControls(view) {
  const bar = make("div", "gf-controls");
  const buttons = make("div", "gf-buttons");
  view.first = button("first", say("First step"), () => go(view, 0));
  view.back = button("back", say("Back one step"), () => go(view, view.step - 1));
  view.play = button("play", say("Play"), () => togglePlay(view));
  view.next = button("next", say("Next step"), () => go(view, view.step + 1));
  view.last = button("last", say("Last step"), () => go(view, view.run.target.length - 1));
  view.slider = make("input", "gf-slider");
  Object.assign(view.slider, { type: "range", min: "1", step: "1" });
  view.slider.setAttribute("aria-label", say("Step"));
  view.slider.addEventListener("input", () => go(view, Number(view.slider.value) - 1));
  buttons.append(view.first, view.back, view.play, view.next, view.last);
  bar.append(buttons, view.slider, speeds(view));
  return bar;
}

/** @param {View} view */
function speeds(view) {
  const select = make("select", "gf-speed");
  select.setAttribute("aria-label", say("Playing speed"));
  select.append(...SPEEDS.map((speed) => new Option(`${speed}×`, String(speed), false, speed === 1)));
  select.addEventListener("change", () => {
    view.speed = Number(select.value);
    if (view.timer) play(view);
  });
  return select;
}
