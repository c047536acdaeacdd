// @ts-check
// Where the Tab key stops: one empty element for each marked term, behind the part of the page it stands in.

import { make } from "../common/dom.js";
import { PAGE } from "../common/streamlit-page.js";
import { hideTip, showTip } from "./tip.js";

/** @import { Marked, View } from "./types.js" */

/**
 * Have a stop for each marked term, and no other, in the order of the page. Stops that are right stay: one of them may
 * have the focus.
 * @param {View} view @param {Map<string, Marked>} found
 */
export function renewStops(view, found) {
  /** @type {Map<Element, HTMLElement[]>} */
  const wanted = new Map();
  for (const [id, { range }] of found) {
    const home = homeOf(range);
    if (!home) continue;
    const stop = view.stops.get(id) ?? makeStop(view, id);
    view.stops.set(id, stop);
    wanted.set(home, [...wanted.get(home) ?? [], stop]);
  }
  const kept = new Set([...wanted.values()].flat());
  for (const [id, stop] of view.stops) {
    if (kept.has(stop)) continue;
    stop.remove();
    view.stops.delete(id);
  }
  for (const [home, stops] of wanted) {
    const last = [...home.children].slice(-stops.length);
    if (stops.some((stop, place) => stop !== last[place])) home.append(...stops);
  }
}

/**
 * The part of the page that a text stands in. It is Streamlit's, and takes no harm from one more element at its end.
 * @param {Range} range
 */
function homeOf(range) {
  const root = range.startContainer.getRootNode();
  const element = root instanceof ShadowRoot ? root.host : range.startContainer.parentElement;
  return element?.closest(PAGE.element) ?? null;
}

/**
 * Scroll a term to the middle, unless it is well in the window already: what sticks to its top would cover it there.
 * @param {Range} range
 */
function bringIntoView(range) {
  const { top, bottom } = range.getBoundingClientRect();
  if (top < innerHeight * 0.4 || bottom > innerHeight) {
    range.startContainer.parentElement?.scrollIntoView({ block: "center" });
  }
}

/** @param {View} view @param {string} id */
function makeStop(view, id) {
  const stop = make("span", "gf-term-stop", "", {
    role: "note", tabindex: 0, "aria-label": view.terms.get(id)?.name ?? "", "aria-describedby": view.tip.element.id,
  });
  stop.addEventListener("focus", () => {
    const marked = [...view.marked.values()].flat().find(({ term }) => term.id === id);
    if (!marked) return;
    bringIntoView(marked.range);
    showTip(view.tip, marked);
  });
  stop.addEventListener("blur", () => hideTip(view.tip));
  return stop;
}
