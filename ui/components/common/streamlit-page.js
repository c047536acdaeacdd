// @ts-check
// All that touches private parts of Streamlit's page, but for rules of style: what its parts are called, what state it
// is in, how it takes something at once, and how it goes to an address. Its names are in `ui/components/streamlit_page.py`;
// without them, and in a saved run, nothing is known of it: then steps ask the server, and links load whole pages.

import { SELECTORS } from "./served.js";

export const PAGE = SELECTORS;
const OFF = ":not(*)";
let told = false;

/** @param {string} lost */
function warn(lost) {
  if (!told) console.warn(`Streamlit's page is not as it was: ${lost}.`);
  told = true;
}

/**
 * Whether the page is in all of these states: runs, rests, connected, or known at all.
 * @param {string[]} states
 */
export function isPage(...states) {
  const app = document.querySelector(PAGE.app);
  if (app && !app.matches(PAGE.known)) warn("steps ask the server");
  return app !== null && states.every((state) => app.matches(PAGE[state]));
}

/**
 * Have what is said to Python reach it by itself, ahead of what the reader does next. Streamlit sends what is said in
 * one turn of the browser together, when a timer is up, and runs what the first asked for alone: so here it is up at once.
 * @param {() => void} tell
 */
export function atOnce(tell) {
  const later = window.setTimeout;
  let sent = !isPage("known");
  window.setTimeout = /** @type {any} */ ((/** @type {() => void} */ act, /** @type {number} */ ms) => {
    if (ms || !isPage("known")) return later(act, ms);
    sent = true;
    return act();
  });
  try {
    tell();
  } finally {
    window.setTimeout = later;
  }
  if (!sent) warn("a click that follows a step may be lost");
}

/**
 * Go to an address of the app without loading the page anew: Streamlit takes it as it takes what the Back button leads to.
 * @param {string} href
 */
export function goTo(href) {
  if (PAGE.app === OFF) return location.assign(href);
  if (href !== location.href) history.pushState({}, "", href);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}
