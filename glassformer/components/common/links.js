// @ts-check
// Opens a page of the app in place, as one entry of the browser's history; a click on a link of the menu or of a lesson does so.
// Asked of Python, another page with parameters would be two entries.

import { isPlain } from "./keys.js";
import { goTo } from "./streamlit-page.js";

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
