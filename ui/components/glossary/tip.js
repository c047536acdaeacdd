// @ts-check
// The definition of a term beside it, above all else on the page.

import { make } from "../common/dom.js";

/** @import { Marked, Tip } from "./types.js" */

const GAP = 6;
const EDGE = 8;

/**
 * Make it, closed.
 * @param {HTMLElement} root
 * @returns {Tip}
 */
export function makeTip(root) {
  const element = make("div", "gf-term-tip");
  element.id = "gf-term-tip";
  element.setAttribute("role", "tooltip");
  element.popover = "manual";
  const [name, text] = [make("b"), make("span")];
  element.append(name, text);
  root.append(element);
  return { element, name, text, shown: null };
}

/**
 * Show what a marked term means.
 * @param {Tip} tip
 * @param {Marked} marked
 */
export function showTip(tip, marked) {
  if (tip.shown?.range !== marked.range) {
    tip.name.textContent = marked.term.name;
    tip.text.textContent = marked.term.text;
    tip.shown = marked;
    light(marked.range);
  }
  if (!tip.element.matches(":popover-open")) tip.element.showPopover();
  place(tip);
}

/** @param {Tip} tip */
export function hideTip(tip) {
  if (!tip.shown) return;
  tip.shown = null;
  tip.element.hidePopover();
  tip.name.textContent = tip.text.textContent = "";
  light(null);
}

/**
 * Put it under its term, or above where there is no room.
 * @param {Tip} tip
 */
export function place(tip) {
  const at = tip.shown?.range.getClientRects()[0];
  if (!at) return hideTip(tip);
  const { width, height } = tip.element.getBoundingClientRect();
  const left = Math.max(EDGE, Math.min(at.left, innerWidth - EDGE - width));
  const isBelow = at.bottom + GAP + height <= innerHeight - EDGE || at.top < GAP + height;
  const top = isBelow ? at.bottom + GAP : at.top - GAP - height;
  Object.assign(tip.element.style, { left: `${left}px`, top: `${top}px` });
}

/** @param {Range | null} range */
function light(range) {
  if (range) CSS.highlights.set("gf-term-open", new Highlight(range));
  else CSS.highlights.delete("gf-term-open");
}
