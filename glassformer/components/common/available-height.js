// @ts-check
// How much of the window is left for what a page is about.

import { PAGE } from "./streamlit-page.js";

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
