// @ts-check
// The two columns of pieces: made once, filled for new data, and moved over by keyboard. One piece of each is reached
// with Tab, the one that had the focus last.

import { clamped, isPlain, make, pieceText } from "../common/dom.js";
import { say } from "../common/i18n.js";
import { letGo, point, togglePin } from "./acts.js";
import { OTHER, pinned } from "./choices.js";
import { rowCentre } from "./places.js";
import { SIDES } from "./weights.js";

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { View } from "./view.js" */

/** @param {View} view @param {Side} side */
export function makeColumn(view, side) {
  const list = make("div", `gf-flow-column gf-flow-${side}`, "", { role: "listbox" });
  /** @type {(event: Event) => Pin | null} the piece that an event is about, null beside all pieces */
  const placeOf = ({ target }) => {
    const at = target instanceof Element ? target.closest(".gf-flow-token") : null;
    return at instanceof HTMLElement ? { side, index: Number(at.dataset.index) } : null;
  };
  list.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(view, side, placeOf(event)));
  list.addEventListener("pointerleave", () => point(view, side, null));
  list.addEventListener("focusin", (event) => {
    const place = placeOf(event);
    if (!place) return;
    view.tokens[side].forEach((made, index) => { made.tabIndex = index === place.index ? 0 : -1; });
    if (event.target instanceof Element && event.target.matches(":focus-visible")) point(view, side, place);
  });
  list.addEventListener("focusout", () => point(view, side, null));
  list.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place) togglePin(view, place);
  });
  list.addEventListener("keydown", (event) => {
    const place = placeOf(event);
    if (!place || !isPlain(event) || !pressed(view, place, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}

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
 * What a key does on a piece; whether it means something here, as all arrows do.
 * @param {View} view @param {Pin} place @param {string} key
 */
function pressed(view, place, key) {
  const { side, index } = place;
  if (key === "Enter" || key === " ") togglePin(view, place);
  else if (key === "Escape" && pinned(view)) letGo(view);
  else if (key === (side === "key" ? "ArrowLeft" : "ArrowRight")) focusToken(view, beside(view, place));
  else if (MOVES[key]) focusToken(view, { side, index: MOVES[key](index) });
  else return key.startsWith("Arrow");
  return true;
}

/**
 * The piece of the other column at the same height.
 * @param {View} view @param {Pin} place @returns {Pin}
 */
function beside({ rows }, { side, index }) {
  const other = OTHER[side];
  if (!rows) return { side: other, index };
  const { start, pitch } = rows[other];
  return { side: other, index: Math.round((rowCentre(rows, side, index) - start) / pitch - 0.5) };
}

/** @param {View} view @param {Pin} place */
function focusToken(view, { side, index }) {
  const tokens = view.tokens[side];
  tokens[clamped(index, tokens.length)]?.focus();
}

/** @param {string} text @param {number} index */
function token(text, index) {
  const made = make("div", "gf-flow-token", "", { role: "option", tabindex: index ? -1 : 0, "data-index": index });
  made.append(pieceText(text, "gf-flow-piece"), make("span", "gf-flow-value"));
  return made;
}

/** @param {View} view */
export function fillColumns(view) {
  const { queries, keys, output } = view.data;
  const signature = JSON.stringify([queries, keys, output]);
  if (signature === view.signature) return;
  view.signature = signature;
  const { activeElement: focused } = /** @type {Document | ShadowRoot} */ (view.root.getRootNode());
  const at = focused instanceof HTMLElement && focused.dataset.index !== undefined ? view.pointed : null;
  view.tokens = { query: queries.map(token), key: keys.map(token) };
  for (const side of SIDES) {
    const first = output[side] === null ? undefined : view.tokens[side][output[side]];
    if (first && output[side]) {
      first.classList.add("gf-flow-output");
      first.title = side === "query" ? say("The rows from this one on predict the output") : say("The output begins with this token");
    }
    view.lists[side].replaceChildren(...view.tokens[side]);
  }
  if (at) focusToken(view, at);
}
