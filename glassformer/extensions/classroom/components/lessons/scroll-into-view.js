// @ts-check
// Brings the chart that a step points at into sight: once, when it first stands there, which is after the answer where
// it was covered. Whoever then scrolls away is left alone.

const EVERY_MS = 150;
const CALM = 3; // times in a row that it stands where it stood: charts above it may still be drawn
const LEAST = 40; // pixels: a chart that is not drawn yet is lower
const MARGIN = 16; // pixels above it

let known = "";
/** @type {ReturnType<typeof setInterval> | undefined} */
let timer;

/**
 * @param {string} place of the lesson; "" if another page than the step's is open
 * @param {string[]} keys of the charts that it points at
 */
export function lookAt(place, keys) {
  if (place === known) return;
  known = place;
  clearInterval(timer);
  if (!place || !keys.length) return;
  let [before, calm] = [NaN, 0];
  timer = setInterval(() => {
    const chart = keys.map((key) => document.querySelector(`.st-key-${CSS.escape(key)}`)).find(Boolean);
    const { top, height } = chart?.getBoundingClientRect() ?? { top: NaN, height: 0 };
    calm = top === before && height > LEAST ? calm + 1 : 0;
    before = top;
    if (!(chart instanceof HTMLElement) || calm < CALM) return;
    clearInterval(timer);
    show(chart);
  }, EVERY_MS);
}

/** @param {HTMLElement} chart */
function show(chart) {
  const { top, bottom, left, right } = chart.getBoundingClientRect();
  const panel = document.querySelector(".st-key-lesson_panel")?.getBoundingClientRect();
  const lies = panel && panel.left < right && panel.right > left; // a sheet over the page's lower part
  const roof = stays();
  if (top >= roof && bottom <= (lies ? panel.top : innerHeight)) return;
  chart.style.scrollMarginTop = `${roof + MARGIN}px`;
  chart.scrollIntoView({ block: "start" });
}

/** How much of the window is under the stepper's controls, which stay when the page is scrolled. */
function stays() {
  const stepper = document.querySelector(".st-key-stepper");
  if (!stepper) return 0;
  const above = -parseFloat(getComputedStyle(stepper).top);
  return Math.max(0, stepper.getBoundingClientRect().height - (above || 0));
}
