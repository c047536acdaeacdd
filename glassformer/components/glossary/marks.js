// @ts-check
// Underlines each term of the glossary where it first stands on a page, and shows what it means.
//
// Most texts are Streamlit's, that is React's, and React breaks when others change its nodes. So nothing is changed: the
// underline is a highlight (CSS.highlights), which is painted over ranges of text; what the mouse points at is looked
// up among these ranges; and for the keyboard an empty element of ours is added behind the part of the page that a
// term stands in. A browser without highlights shows none of it; the page Glossary has it all.

import { make } from "../common/dom.js";
import { mount } from "../common/mount.js";
import { PAGE } from "../common/streamlit-page.js";
import { blockOf, eachText, finder, isShown } from "./matching.js";

/** @import { Component, GlossaryMarksPayload, GlossaryTerm } from "../common/payloads.js" */
/** @import { Finder } from "./matching.js" */

/** @typedef {{ term: GlossaryTerm, range: Range }} Marked a term where it is underlined */

const QUIET_MS = 250;
const GAP = 6;
const EDGE = 8;
const LEAVING_MS = 200;  // enough to move the mouse from the term onto its definition
// What is looked at comes before what stands beside it.
const PARTS = [
  PAGE.main, `${PAGE.sidebar} h3`, `${PAGE.sidebar} ${PAGE.label}:not(${PAGE.checkbox} *)`,
];

class Marks {
  /** @param {HTMLElement} root @param {AbortSignal} gone */
  constructor(root, gone) {
    this.gone = gone;
    this.tip = make("div", "gf-term-tip", "", { id: "gf-term-tip", role: "tooltip", popover: "manual" });
    this.tip.append(make("b"), make("span"));
    root.append(this.tip);
    /** @type {Marked | null} */
    this.shown = null;
    /** @type {Map<string, GlossaryTerm>} */
    this.terms = new Map();
    /** @type {Finder | null} */
    this.find = null;
    this.said = "";
    /** @type {Map<Element, Marked[]>} by the element that their text is in */
    this.marked = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.stops = new Map();
    /** @type {WeakSet<Node>} */
    this.watched = new WeakSet();
    this.observer = new MutationObserver(() => this.soon());
    /** @type {HTMLElement | null} */
    this.pointed = null;
    [this.timer, this.leaving] = [0, 0];
    this.watch(document);
    this.listen();
  }

  /** @param {Component<GlossaryMarksPayload>} component */
  show({ data: { payload: { terms, apart } } }) {
    const said = JSON.stringify([terms, apart]);
    if (said !== this.said) {
      this.terms = new Map(terms.map((term) => [term.id, term]));
      this.find = finder(terms, apart);
      this.said = said;
    }
    this.soon();
  }

  close() {
    clearTimeout(this.timer);
    this.observer.disconnect();
    this.stops.forEach((stop) => stop.remove());
    CSS.highlights?.delete("gf-term");
  }

  // ---------------------------------------------------------------- underlines

  /** Mark anew, once the page has been quiet for a moment and the browser has nothing better to do. */
  soon() {
    clearTimeout(this.timer);
    const idle = globalThis.requestIdleCallback ?? setTimeout;
    this.timer = setTimeout(() => idle(() => this.gone.aborted || this.mark()), QUIET_MS);
  }

  mark() {
    if (!this.find || !globalThis.Highlight) return;
    /** @type {Map<string, Marked>} */
    const found = new Map();
    for (const part of PARTS) {
      for (const root of document.querySelectorAll(part)) eachText(root, (text) => this.search(text, found));
    }
    this.marked = new Map();
    for (const marked of found.values()) {
      const at = /** @type {Element} */ (marked.range.startContainer.parentElement);
      this.marked.set(at, [...this.marked.get(at) ?? [], marked]);
    }
    CSS.highlights.set("gf-term", new Highlight(...[...found.values()].map(({ range }) => range)));
    this.renewStops(found);
    if (this.shown && !this.shown.range.startContainer.isConnected) this.hideTip();
    this.observer.takeRecords();  // our own doing
  }

  /**
   * Take the terms of a text that have not been found before.
   * @param {Text} text @param {Map<string, Marked>} found
   */
  search(text, found) {
    this.watch(text.getRootNode());
    for (const { id, start, end } of this.find?.(text.data, () => blockOf(text)) ?? []) {
      const term = this.terms.get(id);
      if (!term || found.has(id) || !isShown(text)) continue;
      const range = new Range();
      range.setStart(text, start);
      range.setEnd(text, end);
      found.set(id, { term, range });
    }
  }

  /** Changes inside a shadow tree are told to who watches that tree. @param {Node} root */
  watch(root) {
    if (this.watched.has(root)) return;
    this.watched.add(root);
    this.observer.observe(root, { childList: true, characterData: true, subtree: true });
  }

  // ---------------------------------------------------------------- where the Tab key stops

  /**
   * Have an empty element for each marked term, behind the part of the page it stands in, and no other, in the order of
   * the page. Those that are right stay: one of them may have the focus.
   * @param {Map<string, Marked>} found
   */
  renewStops(found) {
    /** @type {Map<Element, HTMLElement[]>} */
    const wanted = new Map();
    for (const [id, { range }] of found) {
      const home = homeOf(range);
      if (!home) continue;
      const stop = this.stops.get(id) ?? this.makeStop(id);
      this.stops.set(id, stop);
      wanted.set(home, [...wanted.get(home) ?? [], stop]);
    }
    const kept = new Set([...wanted.values()].flat());
    for (const [id, stop] of this.stops) {
      if (kept.has(stop)) continue;
      stop.remove();
      this.stops.delete(id);
    }
    for (const [home, stops] of wanted) {
      const last = [...home.children].slice(-stops.length);
      if (stops.some((stop, place) => stop !== last[place])) home.append(...stops);
    }
  }

  /** @param {string} id */
  makeStop(id) {
    const stop = make("span", "gf-term-stop", "", {
      role: "note", tabindex: 0, "aria-label": this.terms.get(id)?.name ?? "", "aria-describedby": this.tip.id,
    });
    stop.addEventListener("focus", () => {
      const marked = [...this.marked.values()].flat().find(({ term }) => term.id === id);
      if (!marked) return;
      bringIntoView(marked.range);
      this.showTip(marked);
    });
    stop.addEventListener("blur", () => this.hideTip());
    return stop;
  }

  // ---------------------------------------------------------------- the definition, beside its term

  /** @param {Marked} marked */
  showTip(marked) {
    if (this.shown?.range !== marked.range) {
      const [name, text] = this.tip.children;
      [name.textContent, text.textContent] = [marked.term.name, marked.term.text];
      this.shown = marked;
      CSS.highlights.set("gf-term-open", new Highlight(marked.range));
    }
    if (!this.tip.matches(":popover-open")) this.tip.showPopover();
    this.place();
  }

  hideTip() {
    if (!this.shown) return;
    this.shown = null;
    this.tip.hidePopover();
    for (const part of this.tip.children) part.textContent = "";
    CSS.highlights.delete("gf-term-open");
  }

  /** Put it under its term, or above where there is no room. */
  place() {
    const at = this.shown?.range.getClientRects()[0];
    if (!at) return this.hideTip();
    const { width, height } = this.tip.getBoundingClientRect();
    const left = Math.max(EDGE, Math.min(at.left, innerWidth - EDGE - width));
    const isBelow = at.bottom + GAP + height <= innerHeight - EDGE || at.top < GAP + height;
    const top = isBelow ? at.bottom + GAP : at.top - GAP - height;
    Object.assign(this.tip.style, { left: `${left}px`, top: `${top}px` });
  }

  /** Mouse, finger and Escape: which term is meant, and when its definition comes and goes. */
  listen() {
    const options = { signal: this.gone };
    document.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.hover(event), options);
    document.addEventListener("click", (event) => this.tap(event), options);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.shown) return;
      event.preventDefault();  // a dialog behind it stays open
      event.stopPropagation();
      this.hideTip();
    }, { ...options, capture: true });
    document.addEventListener("scroll", () => this.shown && this.place(), { ...options, capture: true, passive: true });
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const at = event.composedPath()[0];
    const marked = this.pointedAt(at, event);
    if (this.pointed && this.pointed !== at) this.pointed.style.cursor = "";
    this.pointed = at instanceof HTMLElement ? at : null;
    if (this.pointed) this.pointed.style.cursor = marked ? "help" : "";
    if (marked || this.isOn(at)) {
      this.stays();
      if (marked) this.showTip(marked);
    } else if (this.shown && !this.leaving && !document.activeElement?.classList.contains("gf-term-stop")) {
      this.leaving = setTimeout(() => {
        this.leaving = 0;
        this.hideTip();
      }, LEAVING_MS);
    }
  }

  stays() {
    clearTimeout(this.leaving);
    this.leaving = 0;
  }

  /** @param {MouseEvent} event */
  tap(event) {
    const at = event.composedPath()[0];
    const marked = this.pointedAt(at, event);
    if (marked) {
      this.stays();
      this.showTip(marked);
      // The control of a label would take the focus, and on a phone open its keyboard.
      if (at instanceof Element && at.closest("label")) event.preventDefault();
    } else if (!this.isOn(at)) this.hideTip();
  }

  /** The marked term at a point. @param {EventTarget} at @param {MouseEvent} point */
  pointedAt(at, { clientX: x, clientY: y }) {
    const here = at instanceof Element ? this.marked.get(at) : undefined;
    return here?.find(({ range }) => [...range.getClientRects()].some(({ left, right, top, bottom }) =>
      x >= left && x <= right && y >= top && y <= bottom));
  }

  /** @param {EventTarget} at */
  isOn(at) {
    return at instanceof Node && this.tip.contains(at);
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

export const component = mount({
  styles: "glossary", className: "gf-glossary-marks", create: (root, gone) => new Marks(root, gone),
  show: (marks, /** @type {Component<GlossaryMarksPayload>} */ shown) => marks.show(shown),
  close: (marks) => marks.close(),
});
