// @ts-check
// Where the reader rests while nothing on the page has to be drawn for a step. Shows nothing. The address and the menu
// say it at once; Python hears of it as soon as the reader does anything but step, so a walk of many steps asks nobody.

import { isThere } from "../common/mount.js";
import { moveStep, offerRest, runOf } from "../common/step.js";
import { atOnce, isPage, pointMenu } from "../common/streamlit-page.js";

/** @import { Component, RestPayload } from "../common/payloads.js" */
/** @import { Report } from "../common/step.js" */

export const SETTLE_MS = 200;
const DOING = ["pointerdown", "click", "input", "change", "drop"];

/** What Python has not heard of: of the page's own run, as no other has an address. @type {Report | null} */
let untold = null;
/** How Python is told of it. @type {(report: Report) => void} */
let tell = () => {};
/** The step of each address that the browser has been at since Python heard last. @type {Map<string, number>} */
const steps = new Map();

/** Tell Python now where the reader rests, ahead of what the reader does next. */
export function tellRest() {
  const report = untold;
  forget();
  if (report) atOnce(() => tell(report));
}

/**
 * Where the reader stays when Python, which has not heard of it, says another step, as a server that has begun anew
 * does; then it will hear. Null if it has.
 * @param {string} run @param {{ step: number, step_revision: number }} drawn
 */
export function stays(run, drawn) {
  if (untold?.run_id !== run) return null;
  const news = drawn.step_revision !== untold.step_revision;  // else a stepper that is put up again, as drawn before
  if (news && drawn.step !== untold.step) setTimeout(tellRest, SETTLE_MS);
  untold.step_revision = drawn.step_revision;
  return untold.step;
}

function forget() {
  untold = null;
  steps.clear();
}

/**
 * Have the address say a step, as an entry of the browser's history; whether it does.
 * @param {[string, string]} addresses
 * @param {number} step
 * @param {number} before what it says now
 */
function write([first, second], step, before) {
  if (steps.get(location.search) === step) return true;
  const query = step ? second.replace(/(^|&)step=2(?=&|$)/, `$1step=${step + 1}`) : first;
  try {
    steps.set(location.search, before);
    history.pushState({}, "", query ? `?${query}` : location.pathname);
    steps.set(location.search, step);
  } catch (error) {  // Safari allows a hundred in half a minute
    console.warn(error);
    return false;
  }
  return true;
}

/** @param {Event} event */
function onDoing(event) {
  const stepping = event.composedPath().some((at) => at instanceof Element && at.matches(".gf-controls, .gf-target"));
  if (!stepping) tellRest();
}

/**
 * Whoever goes to another address is at its step: Streamlit has asked Python for that page. But an address that Python
 * was at last is no news to it, so the stepper goes there by itself.
 */
function onPop() {
  const step = steps.get(location.search);
  forget();
  if (step === undefined) return;
  pointMenu(step);
  moveStep(step, 0, true);
}

addEventListener("popstate", onPop);
for (const name of DOING) document.addEventListener(name, onDoing, { capture: true });

/** @param {Component<RestPayload>} component */
export function component({ data: { payload: { name, addresses } }, parentElement, setStateValue }) {
  isThere(parentElement);
  const own = !runOf(name);
  /** @param {Report} report */
  const now = (report) => setStateValue("step", report);
  if (own) tell = now;
  const end = offerRest(name, (report, before) => {
    if (own) pointMenu(report.step);
    if (!own || !addresses || !isPage("rests") || !write(addresses, report.step, before)) {
      if (own) forget();
      else tellRest();
      return now(report);
    }
    untold = { ...report, written: location.search.slice(1) };
  });
  return () => setTimeout(() => {
    if (parentElement.isConnected) return;
    end();
    if (tell === now) tell = () => {};
  });
}
