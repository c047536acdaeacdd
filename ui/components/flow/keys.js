// @ts-check
// The columns by keyboard: one piece of each is reached with Tab, the one that had the focus last.

import { letGo, point, togglePin } from "./acts.js";
import { OTHER, pinned } from "./choices.js";
import { rowCentre } from "./places.js";

/** @import { Side } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/** @type {Record<string, (index: number) => number>} */
const MOVES = {
  ArrowUp: (index) => index - 1,
  ArrowDown: (index) => index + 1,
  PageUp: (index) => index - 10,
  PageDown: (index) => index + 10,
  Home: () => 0,
  End: () => Infinity,
};

/**
 * The piece that an event is about, null beside all pieces.
 * @param {Event} event
 */
export function indexOf(event) {
  const token = event.target instanceof Element ? event.target.closest(".gf-flow-token") : null;
  return token instanceof HTMLElement ? Number(token.dataset.index) : null;
}

/**
 * @param {View} view
 * @param {Side} side
 * @param {FocusEvent} event
 */
export function onFocus(view, side, event) {
  const index = indexOf(event);
  if (index === null) return;
  view.tokens[side].forEach((made, place) => { made.tabIndex = place === index ? 0 : -1; });
  if (event.target instanceof Element && event.target.matches(":focus-visible")) point(view, side, index);
}

/**
 * @param {View} view
 * @param {Side} side
 * @param {KeyboardEvent} event
 */
export function onKey(view, side, event) {
  const index = indexOf(event);
  if (index === null || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") togglePin(view, side, index);
  else if (event.key === "Escape" && pinned(view)) letGo(view);
  else if (event.key === "ArrowLeft" && side === "key") focusToken(view, "query", nearest(view, side, index));
  else if (event.key === "ArrowRight" && side === "query") focusToken(view, "key", nearest(view, side, index));
  else if (MOVES[event.key]) focusToken(view, side, MOVES[event.key](index));
  else if (!event.key.startsWith("Arrow")) return;
  event.preventDefault();
  event.stopPropagation();
}

/**
 * The piece of the other column at the same height.
 * @param {View} view
 * @param {Side} side
 * @param {number} index
 */
function nearest({ rows }, side, index) {
  if (!rows) return index;
  const other = rows[OTHER[side]];
  return Math.round((rowCentre(rows, side, index) - other.start) / other.pitch - 0.5);
}

/**
 * @param {View} view
 * @param {Side} side
 * @param {number} index
 */
export function focusToken(view, side, index) {
  const tokens = view.tokens[side];
  tokens[Math.max(0, Math.min(index, tokens.length - 1))]?.focus();
}
