// @ts-check
// Steps through a finished run.

import { make } from "../common/dom.js";
import { mount } from "../common/mount.js";
import { tellStep } from "../common/step.js";
import { say } from "../common/words.js";
import { buildChips } from "./chips.js";
import { makeControls } from "./controls.js";
import { render, reserve } from "./drawing.js";
import { enter, leave } from "./keys.js";
import { clamp, go, pause } from "./moving.js";
import { unpacked } from "./numbers.js";

/** @import { Component, StepperPayload } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

// Longer runs do not keep room for what is still to come: the blank would fill the screen. Their controls stand above
// the output instead, where growing text cannot move them.
const LONG_PIECES = 28;
const LONG_TEXT = 160;

/**
 * @param {string} className
 * @param {string} heading
 */
function block(className, heading) {
  const section = make("section", `gf-block ${className}`);
  const head = make("div", "gf-head");
  const note = make("span", "gf-note");
  head.append(make("span", "gf-heading", heading), note);
  section.append(head);
  return { section, note };
}

/** @param {HTMLElement} root */
function create(root) {
  root.tabIndex = 0;
  root.setAttribute("role", "group");
  const label = say("Step through the translation. Arrow keys move, Home and End jump, Space plays.");
  root.setAttribute("aria-label", label);
  const source = block("gf-source", say("Source"));
  const target = block("gf-target", say("Output so far"));
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    root, sourceNote: source.note, targetNote: target.note, step: 0, speed: 1, timer: null,
    sourceList: make("ol", "gf-pieces"), targetList: make("ol", "gf-pieces"),
    text: make("p", "gf-text"), caption: make("p", "gf-caption"),
  }));
  view.text.dir = "auto";
  view.caption.setAttribute("aria-live", "polite");
  source.section.append(view.sourceList);
  target.section.append(view.text, view.targetList);
  root.append(source.section, target.section, view.caption, makeControls(view));
  enter(view);
  return view;
}

/** @param {View} view */
function build(view) {
  const { source, target, texts, shading_label: label } = view.run;
  buildChips(view, (index) => go(view, index));
  const long = Math.max(source.length, target.length) > LONG_PIECES || (texts.at(-1) ?? "").length > LONG_TEXT;
  view.root.classList.toggle("gf-long", long);
  view.slider.max = String(Math.max(1, target.length));
  view.sourceNote.textContent = label ? say("Shaded by {label}", { label }) : "";
  view.targetNote.textContent = say("below each piece: its id and its probability");
}

/**
 * Take Python's step when it is news: another run, or a revision we have not seen. Else our own place wins.
 * @param {View} view
 * @param {StepperPayload} data
 */
function adopt(view, data) {
  const run = unpacked(data.run);
  const another = view.run?.run_id !== run.run_id;
  const news = another || view.revision !== data.step_revision;
  if (view.run && another) pause(view);
  const shape = JSON.stringify([run.source, run.target, run.start_piece, run.shading_label]);
  Object.assign(view, { run, data, revision: data.step_revision });
  if (news) {
    clearTimeout(view.settling);
    view.step = view.settled = clamp(view, data.step);
  }
  view.step = clamp(view, view.step);
  if (shape !== view.shape) build(view);
  reserve(view);
  view.shape = shape;
}

/**
 * @param {View} view
 * @param {Component<StepperPayload>} component
 */
function show(view, { data: { payload }, setStateValue }) {
  view.setStateValue = setStateValue;
  adopt(view, payload);
  view.root.classList.toggle("gf-compact", Boolean(payload.compact));
  render(view);
}

/** @param {View} view */
function close(view) {
  pause(view);
  clearTimeout(view.settling);
  tellStep(leave(view), view.data.name);
}

export const component = mount({
  styles: "stepper", className: "gf-stepper", create, show, close,
  watched: (view) => [view.root], resized: reserve, fontsCame: reserve,
});
