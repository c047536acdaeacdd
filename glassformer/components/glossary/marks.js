// @ts-check
// Underlines each term of the glossary where it first stands on a page, and shows what it means.
//
// Most texts are Streamlit's, that is React's, and React breaks when others change its nodes. So nothing is changed: the
// underline is a highlight (CSS.highlights), which is painted over ranges of text; what the mouse points at is looked
// up among these ranges; and for the keyboard an empty element of ours is added behind the part of the page that a
// term stands in. A browser without highlights shows none of it; the page Glossary has it all.

import { mount } from "../common/mount.js";
import { PAGE } from "../common/streamlit-page.js";
import { blockOf, eachText, finder, isShown } from "./matching.js";
import { renewStops } from "./tip.js";
import { hideTip, listen, makeTip } from "./tip.js";

/** @import { Create, GlossaryMarksPayload, Show } from "../common/payloads.js" */
/** @import { Marked, View } from "./types.js" */

const QUIET_MS = 250;
// What is looked at comes before what stands beside it.
const PARTS = [
  PAGE.main, `${PAGE.sidebar} h3`, `${PAGE.sidebar} ${PAGE.label}:not(${PAGE.checkbox} *)`,
];

/**
 * Mark anew, once the page has been quiet for a moment and the browser has nothing better to do.
 * @param {View} view
 */
function soon(view) {
  clearTimeout(view.timer);
  const idle = globalThis.requestIdleCallback ?? setTimeout;
  view.timer = setTimeout(() => idle(() => view.gone.aborted || mark(view)), QUIET_MS);
}

/** @param {View} view */
function mark(view) {
  if (!view.find || !globalThis.Highlight) return;
  /** @type {Map<string, Marked>} */
  const found = new Map();
  for (const part of PARTS) {
    for (const root of document.querySelectorAll(part)) eachText(root, (text) => search(view, text, found));
  }
  view.marked = new Map();
  for (const marked of found.values()) {
    const at = /** @type {Element} */ (marked.range.startContainer.parentElement);
    view.marked.set(at, [...view.marked.get(at) ?? [], marked]);
  }
  CSS.highlights.set("gf-term", new Highlight(...[...found.values()].map(({ range }) => range)));
  renewStops(view, found);
  const shown = view.tip.shown;
  if (shown && !shown.range.startContainer.isConnected) hideTip(view.tip);
  view.observer.takeRecords();  // our own doing
}

/**
 * Take the terms of a text that have not been found before.
 * @param {View} view @param {Text} text @param {Map<string, Marked>} found
 */
function search(view, text, found) {
  watch(view, text.getRootNode());
  for (const { id, start, end } of view.find?.(text.data, () => blockOf(text)) ?? []) {
    const term = view.terms.get(id);
    if (!term || found.has(id) || !isShown(text)) continue;
    const range = new Range();
    range.setStart(text, start);
    range.setEnd(text, end);
    found.set(id, { term, range });
  }
}

/**
 * Changes inside a shadow tree are told to who watches that tree.
 * @param {View} view @param {Node} root
 */
function watch(view, root) {
  if (view.watched.has(root)) return;
  view.watched.add(root);
  view.observer.observe(root, { childList: true, characterData: true, subtree: true });
}

/** @type {Create<View>} */
function create(root, gone) {
  /** @type {View} */
  const view = {
    tip: makeTip(root), terms: new Map(), find: null, said: "", marked: new Map(), stops: new Map(),
    observer: new MutationObserver(() => soon(view)), watched: new WeakSet(), gone,
  };
  watch(view, document);
  listen(view);
  return view;
}

/** @type {Show<View, GlossaryMarksPayload>} */
function show(view, { data: { payload: { terms, apart } } }) {
  const said = JSON.stringify([terms, apart]);
  if (said !== view.said) {
    view.terms = new Map(terms.map((term) => [term.id, term]));
    view.find = finder(terms, apart);
    view.said = said;
  }
  soon(view);
}

/** @param {View} view */
function close(view) {
  clearTimeout(view.timer);
  view.observer.disconnect();
  view.stops.forEach((stop) => stop.remove());
  CSS.highlights?.delete("gf-term");
}

export const component = mount({
  styles: "glossary", className: "gf-glossary-marks", create, show, close,
});
