// @ts-check
// Keys for the stepper that was used last, wherever the focus is, unless the key belongs to something else.

import { offerMove, offerStatus, runOf } from "../common/step.js";
import { stepOf } from "./drawing.js";
import { go, togglePlay } from "./moving.js";

/** @import { View } from "./types.js" */

const TYPING = "input, textarea, select, [contenteditable]:not([contenteditable='false'])";
const ARROWED = ["slider", "grid", "listbox", "menu", "menubar", "radiogroup", "tablist", "tree", "combobox",
  "textbox", "spinbutton"].map((role) => `[role='${role}']`).join(", ");
const DIALOGS = "[role='dialog'], dialog[open]:not(.gf-chart-dialog)";
const POINTER_MS = 1000;

/** @type {View[]} on this browser page, the one used last at the end: it gets the keys */
const steppers = [];
// A choice that was clicked keeps the focus, but the arrows that follow are meant for the steps; only who came to it
// by keyboard wants to move it. Listening while the event goes down, we are asked before the choice is.
const clicked = new WeakSet();
/** @type {WeakMap<View, () => void>} */
const silenced = new WeakMap();
let pointerAt = -POINTER_MS;

/** @param {View} view */
export function enter(view) {
  view.root.addEventListener("pointerdown", () => prefer(view));
  view.root.addEventListener("focusin", () => prefer(view));
  const name = () => view.data?.name;
  const withdrawn = [offerStatus({ name, said: view.caption }),
    offerMove({ name, move: (step, after) => go(view, step, after) })];
  silenced.set(view, () => { for (const withdraw of withdrawn) withdraw(); });
  steppers.unshift(view);
  if (steppers.length > 1) return;
  document.addEventListener("keydown", onKey, true);
  document.addEventListener("pointerdown", onPointer, true);
  document.addEventListener("focusin", onFocus, true);
}

/**
 * Forget a stepper; what comes back is the step of the one that is left.
 * @param {View} view
 */
export function leave(view) {
  silenced.get(view)?.();
  steppers.splice(steppers.indexOf(view), 1);
  if (!steppers.length) {
    document.removeEventListener("keydown", onKey, true);
    document.removeEventListener("pointerdown", onPointer, true);
    document.removeEventListener("focusin", onFocus, true);
  }
  return stepOf(steppers.filter((other) => runOf(other.data.name) === runOf(view.data.name)).at(-1));
}

/** @param {View} view */
function prefer(view) {
  steppers.splice(steppers.indexOf(view), 1);
  steppers.push(view);
}

function onPointer() {
  pointerAt = performance.now();
}

/** @param {FocusEvent} event */
function onFocus(event) {
  const at = event.composedPath()[0];
  if (performance.now() - pointerAt < POINTER_MS) clicked.add(at);
  else clicked.delete(at);
}

/**
 * Whether the focus was left behind by a click.
 * @param {Event} event
 */
export function isLeftOver(event) {
  return clicked.has(event.composedPath()[0]);
}

/** @param {Element} element */
function isShown(element) {
  return Boolean(element.getClientRects().length);
}

/**
 * Whether the key belongs to something else: a field, a widget that uses arrows itself, or an open dialog.
 * @param {Event} event
 * @param {View} view
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
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
  const view = steppers.findLast((candidate) => isShown(candidate.root));
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
