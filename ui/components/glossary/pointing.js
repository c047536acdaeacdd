// @ts-check
// Mouse, finger and Escape: which term is meant, and when its definition comes and goes.

import { hideTip, place, showTip } from "./tip.js";

/** @import { View } from "./types.js" */

const LEAVING_MS = 200;  // enough to move the mouse from the term onto its definition

/** @param {View} view */
export function listen(view) {
  const options = { signal: view.ends.signal };
  document.addEventListener("pointermove", (event) => event.pointerType !== "touch" && hover(view, event), options);
  document.addEventListener("click", (event) => tap(view, event), options);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !view.tip.shown) return;
    event.preventDefault();  // a dialog behind it stays open
    event.stopPropagation();
    hideTip(view.tip);
  }, { ...options, capture: true });
  document.addEventListener("scroll", () => view.tip.shown && place(view.tip), { ...options, capture: true, passive: true });
}

/**
 * @param {View} view
 * @param {PointerEvent} event
 */
function hover(view, event) {
  const at = event.composedPath()[0];
  const marked = pointedAt(view, at, event);
  if (view.pointed && view.pointed !== at) view.pointed.style.cursor = "";
  view.pointed = at instanceof HTMLElement ? at : null;
  if (view.pointed) view.pointed.style.cursor = marked ? "help" : "";
  if (marked || isOn(view, at)) {
    clearTimeout(view.leaving);
    view.leaving = undefined;
    if (marked) showTip(view.tip, marked);
  } else if (view.tip.shown && !view.leaving && !hasFocus(view)) {
    view.leaving = setTimeout(() => {
      view.leaving = undefined;
      hideTip(view.tip);
    }, LEAVING_MS);
  }
}

/**
 * @param {View} view
 * @param {MouseEvent} event
 */
function tap(view, event) {
  const at = event.composedPath()[0];
  const marked = pointedAt(view, at, event);
  if (marked) {
    clearTimeout(view.leaving);
    view.leaving = undefined;
    showTip(view.tip, marked);
    // The control of a label would take the focus, and on a phone open its keyboard.
    if (at instanceof Element && at.closest("label")) event.preventDefault();
  } else if (!isOn(view, at)) {
    hideTip(view.tip);
  }
}

/**
 * The marked term at a point.
 * @param {View} view
 * @param {EventTarget} at
 * @param {MouseEvent} point
 */
function pointedAt(view, at, { clientX: x, clientY: y }) {
  const here = at instanceof Element ? view.marked.get(at) : undefined;
  return here?.find(({ range }) => [...range.getClientRects()].some(({ left, right, top, bottom }) =>
    x >= left && x <= right && y >= top && y <= bottom));
}

/**
 * @param {View} view
 * @param {EventTarget} at
 */
function isOn(view, at) {
  return at instanceof Node && view.tip.element.contains(at);
}

/** @param {View} view */
function hasFocus(view) {
  return document.activeElement?.classList.contains("gf-term-stop") && view.tip.shown !== null;
}
