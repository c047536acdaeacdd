// @ts-check
// All that touches private parts of Streamlit's page: what its parts are called (`streamlit_private.py`), what
// state it is in, and how it takes something at once. Turned off, and in a saved run, nothing is known of it: then steps
// ask the server, and links load whole pages.

import { SELECTORS } from "./served.js";

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
