// @ts-check
// The definition of a term beside it, above all else on the page, and when it comes and goes. Where the
// Tab key stops: one empty element for each marked term, behind the part of the page it stands in.

import { make } from "../common/dom.js";
import { PAGE } from "../common/streamlit-page.js";

/** @import { Marked, Tip, View } from "./types.js" */

const GAP = 6;
const EDGE = 8;
const LEAVING_MS = 200;  // enough to move the mouse from the term onto its definition

/**
 * Make it, closed.
 * @param {HTMLElement} root @returns {Tip}
 */
export function makeTip(root) {
  const element = make("div", "gf-term-tip", "", { id: "gf-term-tip", role: "tooltip", popover: "manual" });
  const [name, text] = [make("b"), make("span")];
  element.append(name, text);
  root.append(element);
  return { element, name, text, shown: null };
}

/**
 * Show what a marked term means.
 * @param {Tip} tip @param {Marked} marked
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

/** Put it under its term, or above where there is no room. @param {Tip} tip */
function place(tip) {
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

/**
 * Mouse, finger and Escape: which term is meant, and when its definition comes and goes.
 * @param {View} view
 */
export function listen(view) {
  const options = { signal: view.gone };
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

/** @param {View} view @param {PointerEvent} event */
function hover(view, event) {
  const at = event.composedPath()[0];
  const marked = pointedAt(view, at, event);
  if (view.pointed && view.pointed !== at) view.pointed.style.cursor = "";
  view.pointed = at instanceof HTMLElement ? at : null;
  if (view.pointed) view.pointed.style.cursor = marked ? "help" : "";
  if (marked || isOn(view, at)) {
    stays(view);
    if (marked) showTip(view.tip, marked);
  } else if (view.tip.shown && !view.leaving && !document.activeElement?.classList.contains("gf-term-stop")) {
    view.leaving = setTimeout(() => {
      view.leaving = undefined;
      hideTip(view.tip);
    }, LEAVING_MS);
  }
}

/** @param {View} view */
function stays(view) {
  clearTimeout(view.leaving);
  view.leaving = undefined;
}

/** @param {View} view @param {MouseEvent} event */
function tap(view, event) {
  const at = event.composedPath()[0];
  const marked = pointedAt(view, at, event);
  if (marked) {
    stays(view);
    showTip(view.tip, marked);
    // The control of a label would take the focus, and on a phone open its keyboard.
    if (at instanceof Element && at.closest("label")) event.preventDefault();
  } else if (!isOn(view, at)) {
    hideTip(view.tip);
  }
}

/**
 * The marked term at a point.
 * @param {View} view @param {EventTarget} at @param {MouseEvent} point
 */
function pointedAt(view, at, { clientX: x, clientY: y }) {
  const here = at instanceof Element ? view.marked.get(at) : undefined;
  return here?.find(({ range }) => [...range.getClientRects()].some(({ left, right, top, bottom }) =>
    x >= left && x <= right && y >= top && y <= bottom));
}

/** @type {(view: View, at: EventTarget) => boolean} */
const isOn = ({ tip }, at) => at instanceof Node && tip.element.contains(at);

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
    if (stops.some((stop, at) => stop !== last[at])) home.append(...stops);
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
