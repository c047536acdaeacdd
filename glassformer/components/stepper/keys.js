// @ts-check
// Keys for the stepper that was used last, wherever the focus is, unless the key belongs to something else. And
// clicks and keys for the source, where a piece is picked, to see who looks at it.

import { clamped, isPlain } from "../common/dom.js";
import { offerStepper, runOf } from "../common/step.js";
import { canPick } from "./chips.js";
import { render, stepOf } from "./drawing.js";
import { go, leading, steppers, togglePlay } from "./moving.js";
import { tellRest } from "./settled-step.js";

/** @import { View } from "./view.js" */

const TYPING = "input, textarea, select, [contenteditable]:not([contenteditable='false'])";
const ARROWED = ["slider", "grid", "listbox", "menu", "menubar", "radiogroup", "tablist", "tree", "combobox",
  "textbox", "spinbutton"].map((role) => `[role='${role}']`).join(", ");
const DIALOGS = "[role='dialog'], dialog[open]:not(.gf-chart-dialog)";
const POINTER_MS = 1000;

// A choice that was clicked keeps the focus, but the arrows that follow are meant for the steps; only who came to it
// by keyboard wants to move it. Listening while the event goes down, we are asked before the choice is.
const clicked = new WeakSet();
let pointerAt = -POINTER_MS;
let heard = new AbortController();

/** @param {View} view @param {AbortSignal} gone */
export function enter(view, gone) {
  view.root.addEventListener("pointerdown", () => prefer(view));
  view.root.addEventListener("focusin", (event) => {
    onFocus(event);  // the document is not told of a focus that moves within a shadow tree
    prefer(view);
  });
  /** @type {(step: number, after: number, quiet?: boolean) => void} */
  const move = (step, after, quiet) => {
    go(view, step, after);
    if (quiet) view.settled = step;
  };
  offerStepper({ name: () => view.data?.name, said: view.caption, move }, gone);
  steppers.unshift(view);
  if (steppers.length > 1) return;
  heard = new AbortController();
  const options = { capture: true, signal: heard.signal };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Tab") pointerAt = -POINTER_MS;  // what gets the focus now gets it by keyboard
    onKey(event);
    if (!event.defaultPrevented) tellRest();
  }, options);
  document.addEventListener("pointerdown", () => { pointerAt = performance.now(); }, options);
  document.addEventListener("focusin", onFocus, options);
}

/** Forget a stepper; what comes back is the step of the one that is left. @param {View} view */
export function leave(view) {
  steppers.splice(steppers.indexOf(view), 1);
  if (!steppers.length) heard.abort();
  return stepOf(steppers.filter((other) => runOf(other.data.name) === runOf(view.data.name)).at(-1));
}

/** @param {View} view */
function prefer(view) {
  steppers.splice(steppers.indexOf(view), 1);
  steppers.push(view);
}

/** @param {FocusEvent} event */
function onFocus(event) {
  const at = event.composedPath()[0];
  if (performance.now() - pointerAt < POINTER_MS) clicked.add(at);
  else clicked.delete(at);
}

/** @param {Event} event whether the focus was left behind by a click */
const isLeftOver = (event) => clicked.has(event.composedPath()[0]);

/** @param {Element} element */
const isShown = (element) => Boolean(element.getClientRects().length);

/**
 * Whether the key belongs to something else: a field, a widget that uses arrows itself, or an open dialog.
 * @param {Event} event @param {View} view
 */
function isTaken(event, view) {
  const at = event.composedPath()[0];
  if (at instanceof Element) {
    if (view.sourceList.contains(at)) return !isLeftOver(event);
    if (view.root.contains(at)) return at.matches("select, input");
    const leftover = isLeftOver(event) && at.closest("[role='radiogroup']");
    if (!leftover && (at.closest(TYPING) || at.closest(ARROWED))) return true;
  }
  return Array.from(document.querySelectorAll(DIALOGS)).some(isShown);
}

/** @type {Record<string, (view: View) => number>} */
const MOVES = {
  ArrowLeft: (view) => view.step - 1,
  ArrowRight: (view) => view.step + 1,
  Home: () => 0,
  End: (view) => view.run.target.length - 1,
};

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.defaultPrevented || !isPlain(event) || event.shiftKey) return;
  const used = steppers.findLast((candidate) => isShown(candidate.root));
  const view = used?.data && leading(used);
  if (!view?.run?.target.length) return;
  const at = event.composedPath()[0];
  if (event.key === " ") {
    // On a button Space presses it, as everywhere.
    if (at !== view.root && at !== view.slider) return;
    event.preventDefault();
    togglePlay(view);
    return;
  }
  const move = MOVES[event.key];
  if (!move || isTaken(event, view)) return;
  event.preventDefault();
  event.stopPropagation();
  go(view, move(view));
}

/**
 * Pick a piece; the one that was picked already is let go. Where Python does something with the choice, it is told.
 * @param {View} view @param {number | null} index
 */
function pick(view, index) {
  if (view.data.choosable) {
    if (index !== null) view.setTriggerValue("chosen", index);
    return;
  }
  view.picked = index === view.picked ? null : index;
  render(view);
}

/**
 * Have the source answer to clicks and keys. It is one stop of the Tab key; arrows go from piece to piece there, but
 * after a click, which leaves the focus behind, they are meant for the steps.
 * @param {View} view
 */
export function watchSource(view) {
  const list = view.sourceList;
  /** @param {Event} event */
  const placeOf = (event) => view.sourceChips.findIndex((chip) => event.composedPath().includes(chip));
  list.addEventListener("click", (event) => {
    const index = placeOf(event);
    if (index >= 0 && canPick(view)) pick(view, index);
  });
  list.addEventListener("keydown", (event) => {
    const index = placeOf(event);
    if (index < 0 || !canPick(view)) return;
    const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: Infinity }[event.key];
    if (to !== undefined && !isLeftOver(event)) view.sourceChips[clamped(to, view.sourceChips.length)].focus();
    else if (event.key === "Enter" || event.key === " ") pick(view, index);
    else if (event.key === "Escape" && view.picked !== null) pick(view, null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
