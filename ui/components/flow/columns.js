// @ts-check
// The two columns of pieces: made once, filled for new data.

import { make, pieceText } from "../common/dom.js";
import { say } from "../common/words.js";
import { point, togglePin } from "./acts.js";
import { focusToken, indexOf, onFocus, onKey } from "./keys.js";
import { SIDES } from "./weights.js";

/** @import { Side } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

/**
 * @param {View} view
 * @param {Side} side
 */
export function makeColumn(view, side) {
  const list = make("div", `gf-flow-column gf-flow-${side}`);
  list.setAttribute("role", "listbox");
  list.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(view, side, indexOf(event)));
  list.addEventListener("pointerleave", () => point(view, side, null));
  list.addEventListener("focusin", (event) => onFocus(view, side, event));
  list.addEventListener("focusout", () => point(view, side, null));
  list.addEventListener("click", (event) => {
    const index = indexOf(event);
    if (index !== null) togglePin(view, side, index);
  });
  list.addEventListener("keydown", (event) => onKey(view, side, event));
  return list;
}

/**
 * @param {string} text
 * @param {number} index
 */
function token(text, index) {
  const made = make("div", "gf-flow-token");
  made.setAttribute("role", "option");
  made.tabIndex = index ? -1 : 0;
  made.dataset.index = String(index);
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
      first.title = side === "query" ? say("From here on rows predict the output") : say("Here the output begins");
    }
    view.lists[side].replaceChildren(...view.tokens[side]);
  }
  if (at) focusToken(view, at.side, at.index);
}
