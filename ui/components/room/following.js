// @ts-check
// Goes where the teacher goes: a step moves the stepper, at once and without the server; anything else opens an address.

import { openInPlace } from "../common/links.js";
import { moveStep } from "../common/step.js";

/** @import { RoomState } from "./types.js" */

const OUR_OWN = ["room", "lang", "present", "cover"];  // of a reader, not of what is looked at
const SMALL = ["step", "rev", ...OUR_OWN];  // the version of a checkpoint, which the plain address leaves out, is the server's

/** What a sentence is run with; who keeps a sentence of their own keeps these. */
const RUN = ["model", "rev", "answers", "src", "ref", "max", "how", "beam", "lp", "temp", "k", "p", "seed"];
/** What belongs to the teacher's run alone. */
const OF_THAT_RUN = ["forced", "tried", "result", "do", "job", "with", "b"];
const LESSON = ["lesson", "path"];

const UNDER_WAY_MS = 500;  // until Streamlit says that it runs the page that was asked for
const IDLE = "[data-testid='stApp'][data-test-script-state='notRunning']";

let moving = 0;
let arrived = 0;

/**
 * What two addresses agree in that differ by a step at most.
 * @param {URL} address
 */
function butTheStep(address) {
  const parameters = Array.from(address.searchParams).filter(([name, value]) =>
    !SMALL.includes(name) && (name !== "lesson" || value));
  return `${address.pathname.split("/").at(-1)} ${JSON.stringify(parameters.sort())}`;
}

/**
 * The teacher's address, for a reader who is in a room and has a language.
 * @param {RoomState} state
 * @param {string} here
 */
export function whereTheTeacherIs(state, here) {
  const [before, there] = [new URL(here), new URL(`${state.page}?${state.query}`, here)];
  if (state.own) {
    // A step of a lesson finds in each sentence what it is about.
    const left = there.searchParams.has("lesson")
      ? Array.from(there.searchParams.keys()).filter((name) => !LESSON.includes(name)) : [...RUN, ...OF_THAT_RUN];
    for (const name of left) there.searchParams.delete(name);
  }
  if (before.searchParams.get("lesson") && !there.searchParams.has("lesson")) there.searchParams.set("lesson", "");
  for (const name of state.own ? [...RUN, ...OUR_OWN] : OUR_OWN) {
    const value = before.searchParams.get(name);
    if (value !== null) there.searchParams.set(name, value);
  }
  return there;
}

/**
 * Whether somebody with a sentence of their own is at the teacher's step of a lesson, wherever they look there.
 * @param {RoomState} state
 * @param {URL} there
 * @param {string} here
 */
function atTheLessonsStep({ own }, there, here) {
  const now = new URL(here);
  const lesson = there.searchParams.get("lesson");
  return own && lesson !== null && now.searchParams.get("lesson") === lesson && now.pathname === there.pathname;
}

/**
 * Whether only the step differs, and which that is, from 0; null if more differs.
 * @param {URL} there
 * @param {string} here
 */
export function stepThere(there, here) {
  if (butTheStep(there) !== butTheStep(new URL(here))) return null;
  return Number(there.searchParams.get("step") ?? 1) - 1;
}

/**
 * Go where the teacher is; who does so with many others begins to redraw at a random moment.
 * @param {RoomState} state
 */
export function follow(state) {
  clearTimeout(moving);
  if (!state.page) return;
  const there = whereTheTeacherIs(state, location.href);
  if (atTheLessonsStep(state, there, location.href)) return;
  const [step, after] = [stepThere(there, location.href), Math.random() * state.spread];
  if (step !== null && moveStep(step, after)) return;
  arrived = performance.now() + after + UNDER_WAY_MS;
  moving = setTimeout(() => openInPlace(there.href), after);
}

/** Whether another page is on its way: what is said to Python meanwhile would be taken for the page before. */
export function isUnderWay() {
  return performance.now() < arrived || document.querySelector(IDLE) === null;
}

/** Stay where one is. */
export function stay() {
  clearTimeout(moving);
}
