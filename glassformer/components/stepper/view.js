// @ts-check
// Steps through a finished run.

import { clamped, make, set, signButton } from "../common/dom.js";
import { wantFrames } from "../common/frames.js";
import { mount, UNSAID } from "../common/mount.js";
import { runOf, tellStep } from "../common/step.js";
import { PAGE } from "../common/streamlit-page.js";
import { say } from "../common/i18n.js";
import { buildChips } from "./chips.js";
import { offerAll, render, reserve } from "./drawing.js";
import { enter, leave, watchSource } from "./keys.js";
import { go, makeControls, pause, togglePlay } from "./moving.js";
import { unpacked } from "./numbers.js";
import { stays } from "./settled-step.js";

/** @import { Show, StepperPayload } from "../common/payloads.js" */
/** @import { Run } from "./numbers.js" */

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

/** A stepper, as the modules of this folder hand it to each other. */
export class View {
  /** @param {HTMLElement} root @param {AbortSignal} gone */
  constructor(root, gone) {
    const label = say("Step through the output. Arrow keys move, Home and End jump, Space plays.");
    this.root = set(root, { role: "group", tabindex: 0, "aria-label": label });
    this.data = /** @type {StepperPayload} */ (UNSAID);
    this.run = /** @type {Run} */ (UNSAID);
    this.setStateValue = this.setTriggerValue = /** @type {(name: string, value: unknown) => void} */ (UNSAID);
    this.shape = "";  // what the chips show; others are made when it changes
    this.kept = "";  // what the height of the output was measured for
    this.step = this.settled = this.settling = 0;
    this.revision = NaN;
    this.speed = 1;
    this.timer = /** @type {number | null} */ (null);
    this.halted = /** @type {number | null} */ (null);  // the step at which Play stopped since nobody had guessed it
    this.picked = /** @type {number | null} */ (null);  // the source piece
    this.text = make("p", "gf-text", "", { dir: "auto" });
    this.sourceList = make("ol", "gf-pieces");
    this.targetList = make("ol", "gf-pieces");
    this.sourceChips = this.targetChips = /** @type {HTMLElement[]} */ ([]);
    this.caption = make("p", "gf-caption", "", { "aria-live": "polite" });
    this.note = make("p", "gf-note");
    this.bar = make("div", "gf-bar");  // the controls and what they say
    this.first = signButton("first", say("First step"), () => go(this, 0));
    this.back = signButton("back", say("Back one step"), () => go(this, this.step - 1));
    this.play = signButton("play", say("Play"), () => togglePlay(this));
    this.next = signButton("next", say("Next step"), () => go(this, this.step + 1));
    this.last = signButton("last", say("Last step"), () => go(this, this.run.target.length - 1));
    this.slider = make("input", "gf-slider", "", { type: "range", min: 1, step: 1, "aria-label": say("Step") });
    this.controls = makeControls(this);  // in the bar, unless another stepper moves this one
    const says = make("div", "gf-says");
    says.append(this.caption, this.note);
    this.bar.append(this.controls, says);
    const target = side("gf-target", say("Output so far"), this.text, this.targetList);
    this.targetName = target.name;
    root.append(side("gf-source", say("Source"), this.sourceList).section, target.section, this.bar);
    this.text.addEventListener("click", (event) => {
      const word = /** @type {HTMLElement} */ (event.target).closest(".gf-word");
      if (word instanceof HTMLElement) go(this, Number(word.dataset.step));
    });
    watchSource(this);
    for (const near of ["pointerenter", "focusin"]) root.addEventListener(near, wantFrames);
    // Who goes to another address is at its step; a report of the one before would stop the run that draws it.
    addEventListener("popstate", () => clearTimeout(this.settling), { signal: gone });
    enter(this, gone);
  }
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
  view.kept = "";
  resized(view);
}

export const component = mount({
  styles: "stepper", className: "gf-stepper", create: (root, gone) => new View(root, gone), show, close,
  watched: (view) => [view.root], resized,
  fontsCame: lettersChanged, scaled: lettersChanged,
});
