// @ts-check
// Steps through a finished run.

import { clamped, make, set } from "../common/dom.js";
import { wantFrames } from "../common/frames.js";
import { mount } from "../common/mount.js";
import { runOf, tellStep } from "../common/step.js";
import { PAGE } from "../common/streamlit-page.js";
import { say } from "../common/i18n.js";
import { buildChips } from "./chips.js";
import { offerAll, render, reserve } from "./drawing.js";
import { enter, leave, watchSource } from "./keys.js";
import { go, makeControls, pause } from "./moving.js";
import { unpacked } from "./numbers.js";
import { stays } from "./settled-step.js";

/** @import { Create, Show, StepperPayload } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/**
 * One of the two rows: its name, and what is in it.
 * @param {string} className @param {string} heading @param {HTMLElement[]} content
 */
function side(className, heading, ...content) {
  const section = make("section", `gf-side ${className}`);
  const inside = make("div", "gf-inside");
  inside.append(...content);
  const name = make("h2", "gf-heading", heading);
  const more = make("button", "gf-show-all", "", { type: "button" });
  more.addEventListener("click", () => offerAll(section, section.classList.toggle("gf-all")));
  section.append(name, more, inside);
  return { section, name };
}

/** @type {Create<View>} */
function create(root, gone) {
  const label = say("Step through the output. Arrow keys move, Home and End jump, Space plays.");
  set(root, { role: "group", tabindex: 0, "aria-label": label });
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    root, step: 0, speed: 1, timer: null, halted: null, picked: null,
    text: make("p", "gf-text", "", { dir: "auto" }),
    sourceList: make("ol", "gf-pieces"),
    targetList: make("ol", "gf-pieces"),
    caption: make("p", "gf-caption", "", { "aria-live": "polite" }), note: make("p", "gf-note"),
    bar: make("div", "gf-bar"),
  }));
  const says = make("div", "gf-says");
  says.append(view.caption, view.note);
  view.controls = makeControls(view);
  view.bar.append(view.controls, says);
  const target = side("gf-target", say("Output so far"), view.text, view.targetList);
  view.targetName = target.name;
  root.append(side("gf-source", say("Source"), view.sourceList).section, target.section, view.bar);
  view.text.addEventListener("click", (event) => {
    const word = /** @type {HTMLElement} */ (event.target).closest(".gf-word");
    if (word instanceof HTMLElement) go(view, Number(word.dataset.step));
  });
  watchSource(view);
  for (const near of ["pointerenter", "focusin"]) root.addEventListener(near, wantFrames);
  // Who goes to another address is at its step; a report of the one before would stop the run that draws it.
  addEventListener("popstate", () => clearTimeout(view.settling), { signal: gone });
  enter(view, gone);
  return view;
}

/**
 * Take Python's step when it is news: another run, or a revision we have not seen. Else our own place wins.
 * @param {View} view @param {StepperPayload} data
 */
function adopt(view, data) {
  const run = unpacked(data.run);
  const another = view.run?.run_id !== run.run_id;
  const news = another || view.revision !== data.step_revision;
  const kept = runOf(data.name) ? null : stays(run.run_id, data);
  if (view.run && another) pause(view);
  const shape = JSON.stringify([run.source, run.target, run.start_piece, run.shading_label, run.still]);
  Object.assign(view, { run, data, revision: data.step_revision });
  if (news) {
    clearTimeout(view.settling);
    view.step = view.settled = clamped(kept ?? data.step, run.target.length);
  }
  view.step = clamped(view.step, run.target.length);
  if (shape === view.shape) return;
  view.shape = shape;
  buildChips(view, (index) => go(view, index));
  view.picked = null;
  view.slider.max = String(Math.max(1, run.target.length));
}

/** @type {Show<View, StepperPayload>} */
function show(view, { data: { payload }, setStateValue, setTriggerValue }) {
  Object.assign(view, { setStateValue, setTriggerValue });
  view.root.classList.toggle("gf-compact", payload.compact);
  view.root.classList.toggle("gf-still", payload.run.still);
  view.root.classList.toggle("gf-large", payload.large);
  if (payload.led) view.controls.remove();
  else if (view.controls.parentElement !== view.bar) view.bar.prepend(view.controls);
  view.targetName.textContent = payload.run.still || payload.foretold ? say("Output") : say("Output so far");
  adopt(view, payload);
  render(view);
  resized(view);
}

/**
 * Tell the page how much stands above the controls: so much may scroll away, and they stay in sight.
 * @param {View} view
 */
function stick(view) {
  const root = view.root.getRootNode();
  const place = root instanceof ShadowRoot ? root.host.closest(PAGE.element) : null;
  const above = view.run?.still || !view.run?.target.length ? "200vh" : `${view.bar.offsetTop}px`;
  if (place instanceof HTMLElement) place.style.setProperty("--gf-above", above);
}

/** @param {View} view */
function resized(view) {
  reserve(view);
  stick(view);
}

/** @param {View} view */
function close(view) {
  pause(view);
  clearTimeout(view.settling);
  tellStep(leave(view), view.data.name);
}

/** @param {View} view */
function lettersChanged(view) {
  view.kept = undefined;
  resized(view);
}

export const component = mount({
  styles: "stepper", className: "gf-stepper", create, show, close,
  watched: (view) => [view.root], resized,
  fontsCame: lettersChanged, scaled: lettersChanged,
});
