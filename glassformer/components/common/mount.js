// @ts-check
// The life of a component: made once for its place on a page, shown again for every change of data or theme, taken
// down when it has left the page.
//
// Streamlit calls the default export of a component again for every change, and calls the function returned by the
// LAST call when the component leaves the page. But when a call is overtaken by the next one, the function it
// returned is called at once, on a page that still shows us; so a cleanup first looks whether we are really gone.

import { make, markTheme } from "./dom.js";
import { PRESENT_EVENT } from "./present.js";
import { STYLES } from "./served.js";
import { STEP_EVENT } from "./step.js";
import { PAGE } from "./streamlit-page.js";
import { speak, spoken } from "./i18n.js";

/** @import { Component, Create, Show, Spoken } from "./payloads.js" */

/** What a component holds of what it was not sent yet. @type {any} */
export const UNSAID = undefined;

/**
 * What differs from component to component.
 * @template View
 * @template {Spoken} Payload
 * @typedef {object} Part
 * @property {keyof typeof STYLES} styles
 * @property {string} className of the root
 * @property {Create<View>} create
 * @property {Show<View, Payload>} show
 * @property {(view: View) => HTMLElement[]} [watched] whose size matters
 * @property {(view: View) => void} [resized]
 * @property {(view: View) => void} [fontsCame]
 * @property {(view: View) => void} [stepped]
 * @property {(view: View) => void} [scaled] the presentation began or ended, or its letters have another size
 * @property {(view: View) => void} [close]
 */

/**
 * Say that a component is there: the first sight of a page waits for it. It may live in a shadow root.
 * @param {HTMLElement} parent
 */
export function isThere(parent) {
  const { host = parent } = /** @type {any} */ (parent.getRootNode());
  host.closest(PAGE.component)?.toggleAttribute("data-there", true);
}

/**
 * A component as Streamlit wants it.
 * @template View
 * @template {Spoken} Payload
 * @param {Part<View, Payload>} part
 */
export function mount(part) {
  /** @type {WeakMap<HTMLElement, Mounted<View>>} */
  const all = new WeakMap();
  /** @param {Component<Payload>} component */
  return (component) => {
    const { data: { payload }, parentElement: parent } = component;
    speak(payload);
    document.documentElement.lang = spoken();
    let mounted = all.get(parent);
    if (!mounted && !parent.isConnected) return () => {};  // it left the page while our script was loading
    if (mounted && mounted.language !== spoken()) {
      mounted.end();  // labels are written once, so another language starts anew
      mounted = undefined;
    }
    if (!mounted) all.set(parent, mounted = start(part, parent));
    const { view, root, end } = mounted;
    const generation = (mounted.generation += 1);
    const current = mounted;
    markTheme(root);
    part.show(view, component);
    isThere(parent);
    return () => setTimeout(() => {
      if (parent.isConnected || generation !== current.generation) return;
      end();
      all.delete(parent);
    });
  };
}

/**
 * @template View
 * @typedef {{ view: View, root: HTMLElement, language: string, generation: number, end: () => void }} Mounted
 */

/**
 * @template View
 * @template {Spoken} Payload
 * @param {Part<View, Payload>} part
 * @param {HTMLElement} parent
 * @returns {Mounted<View>}
 */
function start(part, parent) {
  dress(parent, part.styles);
  const root = make("div", `gf-root ${part.className}`);
  const ends = new AbortController();
  const { signal } = ends;
  const view = part.create(root, signal);
  parent.append(root);
  const sizes = new ResizeObserver(() => part.resized?.(view));
  for (const element of part.watched?.(view) ?? []) sizes.observe(element);
  // At the next frame: Chromium lays out the page before it tells, and then each component would lay it out once more.
  if (part.fontsCame) {
    requestAnimationFrame(() => document.fonts.ready.then(() => signal.aborted || part.fontsCame?.(view)));
  }
  document.addEventListener(STEP_EVENT, () => part.stepped?.(view), { signal });
  document.addEventListener(PRESENT_EVENT, () => part.scaled?.(view), { signal });
  const end = () => {
    ends.abort();
    sizes.disconnect();
    root.remove();
    part.close?.(view);
  };
  return { view, root, language: spoken(), generation: 0, end };
}

/** @type {Map<string, CSSStyleSheet>} */
const sheets = new Map();

/**
 * Give the root that an element lives in the component's styles; they survive whatever Streamlit puts in there.
 * @param {HTMLElement} element @param {keyof typeof STYLES} styles
 */
function dress(element, styles) {
  const root = /** @type {Document | ShadowRoot} */ (element.getRootNode());
  for (const name of /** @type {const} */ (["common", styles])) {
    const sheet = sheets.get(name) ?? new CSSStyleSheet();
    if (!sheets.has(name)) sheet.replaceSync(STYLES[name]);
    sheets.set(name, sheet);
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  }
}
