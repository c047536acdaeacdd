// @ts-check
// Large type: for all of the app while it is presented, and for a chart that is shown as large as the window. And how
// much of the window is left for what a page is about.
//
// That the app is presented stands on <html>, as a class for the rules of `shared/page_style.py`, and in the address, so
// that it outlives a reload and can be bookmarked. Python leaves this parameter alone: it writes addresses without, and
// we add it again.

import { PAGE } from "./streamlit-page.js";

export const PRESENT_EVENT = "glassformer-present";
export const PLAIN_TYPE = 13;  // pixels of a label in a chart, as Python lays charts out
const CLASS = "gf-present";
const PARAMETER = "present";
const SPOKEN = "lang";
const PLAIN_PAGE = 16;

/**
 * How many pixels large letters have in a window: 24 in one of 1920 × 1080, never much smaller than usual.
 * @param {number} width @param {number} height
 */
export function largeType(width, height) {
  return Math.round(Math.max(Math.min(18, 12 + width / 200), Math.min(width / 80, height / 36)));
}

/** The pixels of large letters in this window. */
export function largeHere() {
  return largeType(window.innerWidth, window.innerHeight);
}

export function isPresenting() {
  return document.documentElement.classList.contains(CLASS);
}

/**
 * By how much everything in a chart is larger than Python laid it out.
 * @param {boolean} isLarge whether it is shown as large as the window
 */
export function typeScale(isLarge) {
  return isLarge || isPresenting() ? largeHere() / PLAIN_TYPE : 1;
}

/**
 * An address that says whether the app is presented, and all else as it did.
 * @param {string} address @param {boolean} presented
 */
export function presentedAddress(address, presented) {
  const changed = new URL(address);
  if ((changed.searchParams.get(PARAMETER) === "1") === presented) return address;
  if (presented) changed.searchParams.set(PARAMETER, "1");
  else changed.searchParams.delete(PARAMETER);
  return changed.href;
}

/**
 * Name a language in the address, in place: going back shall lead to what was looked at before.
 * @param {string} language
 */
export function speakInAddress(language) {
  const changed = new URL(location.href);
  if (changed.searchParams.get(SPOKEN) === language) return;
  changed.searchParams.set(SPOKEN, language);
  history.replaceState(history.state, "", changed.href);
}

function keepAddress() {
  const wanted = presentedAddress(location.href, isPresenting());
  if (wanted !== location.href) history.replaceState(history.state, "", wanted);
}

function setType() {
  const { style } = document.documentElement;
  // Streamlit measures all but borders in this size.
  style.fontSize = isPresenting() ? `${Math.max(PLAIN_PAGE, largeHere())}px` : "";
  document.dispatchEvent(new CustomEvent(PRESENT_EVENT));
}

/** Begin or end the presentation. @param {boolean} presented */
export function present(presented) {
  document.documentElement.classList.toggle(CLASS, presented);
  keepAddress();
  setType();
}

// What opens with "present=1" begins so before the first chart is drawn.
if (new URLSearchParams(location.search).get(PARAMETER) === "1") present(true);
window.addEventListener("resize", () => { if (isPresenting()) setType(); });
// A browser without this knows the address only until Streamlit writes the next one.
window.navigation?.addEventListener("currententrychange", keepAddress);

const BELOW = 8;

/**
 * The height that the window has left under all that stands above an element, before anybody scrolls, and at most
 * `most`; its own where that is too little, as it is for what nobody sees before scrolling.
 * @param {HTMLElement} element
 * @param {{ own: number, least: number, most: number, below?: number }} heights `below` of what shall be seen under it
 */
export function fittedHeight(element, { own, least, most, below = BELOW }) {
  const scrolled = element.closest(PAGE.main)?.scrollTop ?? 0;
  const left = Math.floor(window.innerHeight - element.getBoundingClientRect().top - scrolled - below);
  return left < least ? own : Math.min(left, most);
}

/** What changes that height: the window, and whatever stands above. @returns {HTMLElement[]} */
export function whatMakesRoom() {
  return Array.from(document.querySelectorAll(`${PAGE.main}, ${PAGE["main-block"]}`),
    (found) => /** @type {HTMLElement} */ (found));
}
