// @ts-check
// How much of the window is left for what a page is about.

const SCROLLER = "[data-testid='stMain']";
const PAGE = "[data-testid='stMainBlockContainer']";

/**
 * The height that the window has left under all that stands above an element, before anybody scrolls.
 * @param {HTMLElement} element
 */
export function roomUnder(element) {
  const scrolled = element.closest(SCROLLER)?.scrollTop ?? 0;
  return Math.floor(window.innerHeight - element.getBoundingClientRect().top - scrolled);
}

/**
 * What changes that height: the window, and whatever stands above.
 * @returns {HTMLElement[]}
 */
export function whatMakesRoom() {
  return Array.from(document.querySelectorAll(`${SCROLLER}, ${PAGE}`),
    (found) => /** @type {HTMLElement} */ (found));
}
