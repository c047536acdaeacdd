// @ts-check
// What this browser remembers of answers in lessons, and what a step points at. Nothing is drawn; nothing of it is
// kept by the server.

import { mount } from "../../../../components/common/mount.js";

/** @import { LessonMemoryPayload, LessonRow, Show } from "../../../../components/common/payloads.js" */

const KEY = "glassformer-lessons";
const MOST = 400;
const EVERY_MS = 150;
const CALM = 3;  // times in a row that it stands where it stood: charts above it may still be drawn
const LEAST = 40;  // pixels: a chart that is not drawn yet is lower
const MARGIN = 16;  // pixels above it

/** @type {ReturnType<typeof setInterval> | undefined} */
let timer;
let shown = "";  // the place of the lesson that was looked at last

/** @typedef {{ forgotten: number | null }} View */

/**
 * The rows that a text holds; none if it is something else.
 * @param {string} text @returns {LessonRow[]}
 */
export function readRows(text) {
  try {
    const rows = JSON.parse(text || "[]");
    return Array.isArray(rows) ? rows.filter((row) => Array.isArray(row) && row.length === 5) : [];
  } catch {
    return [];
  }
}

/**
 * Both, the newer for a step and a run that both have, and of too many the last ones.
 * @param {LessonRow[]} older @param {LessonRow[]} newer
 */
export function merged(older, newer) {
  const known = new Map([...older, ...newer].map((row) => [`${row[0]} ${row[1]}`, row]));
  return [...known.values()].slice(-MOST);
}

/** What is remembered; nothing where the browser lets us remember nothing. */
function stored() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** @param {string | null} text null: forget it */
function store(text) {
  try {
    if (text === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, text);
  } catch {
    // A full or a closed store: then a reload begins anew.
  }
}

/**
 * Bring the chart that a step points at into sight: once, when it first stands there, which is after the answer where
 * it was covered. Whoever then scrolls away is left alone.
 * @param {string} place of the lesson; "" if another page than the step's is open
 * @param {string[]} keys of the charts that it points at
 */
function lookAt(place, keys) {
  if (place === shown) return;
  shown = place;
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
    bring(chart);
  }, EVERY_MS);
}

/** @param {HTMLElement} chart */
function bring(chart) {
  const { top, bottom, left, right } = chart.getBoundingClientRect();
  const panel = document.querySelector(".st-key-lesson_panel")?.getBoundingClientRect();
  const lies = panel && panel.left < right && panel.right > left;  // a sheet over the page's lower part
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

/** @type {Show<View, LessonMemoryPayload>} */
function show(view, { data: { payload: { rows, forgotten, open, look } }, setStateValue }) {
  lookAt(open, look);
  const isFirst = view.forgotten === null;
  if (!isFirst && view.forgotten !== forgotten) store(null);
  view.forgotten = forgotten;
  const before = stored();
  if (rows.length) store(JSON.stringify(merged(readRows(before), rows)));
  if (isFirst && before) setStateValue("answers", before);
}

/** @returns {View} */
const create = () => ({ forgotten: null });

export const component = mount({ styles: "lessons", className: "gf-lesson-memory", create, show });
