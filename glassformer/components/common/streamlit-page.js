// @ts-check
// All that touches private parts of Streamlit's page: what its parts are called (`streamlit_private.py`), what
// state it is in, and how it takes something at once. Turned off, and in a saved run, nothing is known of it: then steps
// ask the server, and links load whole pages.
//
// And opening a page of the app in place, as one entry of the browser's history, as a click on a link of the menu or of
// a lesson does. Asked of Python, another page with parameters would be two entries.

import { SELECTORS } from "./served.js";
import { isPlain } from "./dom.js";

export const PAGE = SELECTORS;
let warned = false;

/** @param {string} lost */
function warn(lost) {
  if (!warned) console.warn(`Streamlit's page is not as it was: ${lost}.`);
  warned = true;
}

/**
 * Whether the page is in all of these states: runs, rests, connected, or known at all.
 * @param {string[]} states
 */
export function isPage(...states) {
  const app = document.querySelector(PAGE.app);
  if (app && !app.matches(PAGE.known)) warn("each step asks the server");
  return app !== null && states.every((state) => app.matches(PAGE[state]));
}

/**
 * Have what is told to Python reach it by itself, ahead of what the reader does next. Streamlit sends what is told in
 * one turn of the browser together, by a timer, and runs what the first asked for alone: so here the timer is up at once.
 * @param {() => void} tell
 */
export function atOnce(tell) {
  const later = window.setTimeout;
  let sent = !isPage("known");
  const send = (/** @type {() => void} */ act, /** @type {number} */ ms) => (ms ? later(act, ms) : (sent = true, act()));
  if (!sent) window.setTimeout = /** @type {any} */ (send);
  try {
    tell();
  } finally {
    window.setTimeout = later;
  }
  if (!sent) warn("a click that follows a step may be lost");
}

/**
 * Go to an address of the app in place: Streamlit takes it as it takes what the Back button leads to.
 * @param {string} href
 */
export function goTo(href) {
  if (PAGE.app === ":not(*)") return location.assign(href);
  if (href !== location.href) history.pushState({}, "", href);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}

const SETTLE = 300;  // milliseconds until what is above a heading has its height
const MENU = ".st-key-menu a, .st-key-tabs a";
const FOLLOWED = `${MENU}, .gf-ways a, .gf-grown a`;

/**
 * Open an address of the app.
 * @param {string} address as a link says it: whole, or what follows the last slash of this one
 * @param {boolean} [again] whether also where the browser is there, as Streamlit may not be
 */
export function openInPlace(address, again = false) {
  const { href, hash } = new URL(address, location.href);
  if (hash) scrollTo(hash.slice(1));
  if (href === location.href && !again) return;
  goTo(href);
}

/**
 * Scroll to a heading once it is there: Streamlit does so only where the whole page opens anew.
 * @param {string} anchor @param {number} [tries] how often it is looked for
 */
function scrollTo(anchor, tries = 100) {
  const heading = document.getElementById(anchor);
  if (heading) setTimeout(() => heading.isConnected && heading.scrollIntoView({ block: "start" }), SETTLE);
  else if (tries) setTimeout(scrollTo, 100, anchor, tries - 1);
}

/** @param {MouseEvent} event */
function follow(event) {
  const link = event.target instanceof Element ? event.target.closest(FOLLOWED) : null;
  if (!(link instanceof HTMLAnchorElement) || event.defaultPrevented || event.button) return;
  if (!isPlain(event) || event.shiftKey) return;  // a new tab or window
  event.preventDefault();
  openInPlace(link.href);
}

/** @param {AbortSignal} signal ends it */
export function followLinks(signal) {
  document.addEventListener("click", follow, { signal });
}

/**
 * Have the links of the menu, and others that go by the step, lead to a step, from 0, before Python has drawn them so.
 * @param {number} step
 */
export function pointMenu(step) {
  for (const link of document.querySelectorAll(`${MENU}, .gf-at-step a`)) {
    link.setAttribute("href", atStep(link.getAttribute("href") ?? "", step));
  }
}

/**
 * An address of the app at a step, from 0.
 * @param {string} address @param {number} step
 */
export function atStep(address, step) {
  const [path, query = ""] = address.split("?");
  const parameters = new URLSearchParams(query);
  if (step) parameters.set("step", String(step + 1));
  else parameters.delete("step");
  return parameters.size ? `${path}?${parameters}` : path;
}
