// @ts-check
// Goes where the teacher goes: a step moves the stepper, at once and without the server; anything else opens an address.
//
// That may fail: a run that Streamlit had begun before puts its own page back into the address, and what is asked for
// while the connection is made anew is lost. So it is looked whether the address and what Python has drawn are where
// the teacher is; if not, the address is opened again, after ever longer waits, and at last the whole page is.

import { currentStep, moveStep } from "../../../../components/common/step.js";
import { isPage, openInPlace } from "../../../../components/common/streamlit-page.js";
import { storage } from "./connection.js";

/** @import { RoomState } from "./types.js" */

const OUR_OWN = ["room", "lang", "present"];  // of a reader, not of what is looked at
const SMALL = ["step", "rev", ...OUR_OWN];  // the version of a checkpoint, which the plain address leaves out, is the server's

/** What a sentence is run with; who keeps a sentence of their own keeps these. */
const RUN = ["model", "rev", "answers", "src", "ref", "max", "how", "beam", "lp", "temp", "k", "p", "seed"];
/** What belongs to the teacher's run alone. */
const OF_THAT_RUN = ["forced", "tried", "result", "do", "job", "with", "b"];
/** A step of a lesson finds in each run what it is about, so these are enough; of the run it takes the last ones. */
const LESSON = ["lesson", "path", "cover"];
const RUN_OF_A_STEP = ["model", "rev", "answers", "src", "mine"];
/** Without these a session stays in its lesson, and keeps covered what is; said with nothing, they end that. */
const TAKEN_BACK = ["lesson", "cover"];

const UNDER_WAY_MS = 500;  // until Streamlit says that it runs the page that was asked for
const LOOK_MS = 200;
const LOOKS = 3;  // between two runs of the script there is a moment of rest
const AGAIN_MS = 1000;  // and twice as long each time
const TRIES = 5;  // to go again
const RELOADED = "glassformer-room-reloaded";

let moving = 0;
let arrived = 0;
let drawn = "";
/** @type {{ state: RoomState, inLesson: boolean, tried: number, rested: number, again: number } | null} */
let going = null;  // where, until it is seen to have arrived

// A link or a way back that somebody follows is under way before Streamlit says so: of two requests that Python has not
// begun the later one decides the page.
addEventListener("popstate", () => { arrived = Math.max(arrived, performance.now() + UNDER_WAY_MS); });

/** What two addresses agree in that differ by a step at most. @param {URL} address */
function butTheStep(address) {
  const parameters = Array.from(address.searchParams).filter(([name, value]) =>
    !SMALL.includes(name) && (value || !TAKEN_BACK.includes(name)));
  return `${address.pathname.split("/").at(-1)} ${JSON.stringify(parameters.sort())}`;
}

/**
 * The teacher's address, for a reader who is in a room and has a language.
 * @param {RoomState} state
 * @param {string} here
 * @param {boolean} inLesson the reader's session is in a lesson, whatever the address says
 */
export function whereTheTeacherIs(state, here, inLesson) {
  const [before, there] = [new URL(here), new URL(`${state.page}?${state.query}`, here)];
  const step = there.searchParams.has("lesson");
  if (state.own) {
    const left = step
      ? Array.from(there.searchParams.keys()).filter((name) => !LESSON.includes(name)) : [...RUN, ...OF_THAT_RUN];
    for (const name of left) there.searchParams.delete(name);
  }
  for (const name of TAKEN_BACK) {
    const is = before.searchParams.get(name) || (name === "lesson" && inLesson);
    if (is && !there.searchParams.has(name)) there.searchParams.set(name, "");
  }
  for (const name of state.own ? [...step ? RUN_OF_A_STEP : RUN, ...OUR_OWN] : OUR_OWN) {
    const value = before.searchParams.get(name);
    if (value !== null) there.searchParams.set(name, value);
  }
  return there;
}

/**
 * Whether somebody with a sentence of their own is at the teacher's step of a lesson, wherever they look there.
 * @param {RoomState} state @param {URL} there @param {string} here
 */
function atTheLessonsStep({ own }, there, here) {
  const now = new URL(here);
  /** @param {string} name */
  const alike = (name) => (now.searchParams.get(name) ?? "") === (there.searchParams.get(name) ?? "");
  return own && there.searchParams.has("lesson") && TAKEN_BACK.every(alike) && now.pathname === there.pathname;
}

/**
 * Whether only the step differs, and which that is, from 0; null if more differs.
 * @param {URL} there @param {string} here
 */
export function stepThere(there, here) {
  if (butTheStep(there) !== butTheStep(new URL(here))) return null;
  return Number(there.searchParams.get("step") ?? 1) - 1;
}

/**
 * Go where the teacher is; who does so with many others begins to redraw at a random moment.
 * @param {RoomState} state
 * @param {boolean} inLesson as for `whereTheTeacherIs`
 */
export function follow(state, inLesson) {
  const before = going;
  stay();
  if (!state.page) return;
  const there = whereTheTeacherIs(state, location.href, inLesson);
  const after = Math.random() * state.spread;
  if (!before && !isUnderWay() && isAt(state, there, location.href)) {
    const step = stepThere(there, location.href);
    if (atTheLessonsStep(state, there, location.href) || (step !== null && moveStep(step, after))) return;
  }
  going = { state, inLesson, tried: 0, rested: 0, again: 0 };
  arrived = performance.now() + after + UNDER_WAY_MS;
  moving = setTimeout(look, after);
}

/** Go, look whether the page has come there, and go again where it rests elsewhere for long. */
function look() {
  if (!going) return;
  const { state, inLesson, tried, again } = going, now = performance.now();
  const there = whereTheTeacherIs(state, location.href, inLesson), here = isAt(state, there, location.href);
  going.rested = isUnderWay() ? 0 : going.rested + 1;
  const rests = going.rested >= LOOKS;
  if (rests && here && isAt(state, there, new URL(drawn, location.href).href)) {
    stay();
    const step = Number(there.searchParams.get("step") ?? 1) - 1;
    if (!atTheLessonsStep(state, there, location.href) && currentStep() !== step) moveStep(step, 0);
    return;
  }
  moving = setTimeout(look, LOOK_MS);
  if (tried && (!rests || now < again)) return;
  if (tried > TRIES) {
    stay();
    if (storage().getItem(RELOADED) === there.href) return;  // once is enough
    storage().setItem(RELOADED, there.href);
    location.assign(there.href);
  } else if (tried || !here) openInPlace(there.href, tried > 0);
  arrived = now + UNDER_WAY_MS;
  if (going) Object.assign(going, { tried: tried + 1, rested: 0, again: now + AGAIN_MS * 2 ** tried });
}

/**
 * Whether an address shows what the teacher looks at, but for the step.
 * @param {RoomState} state @param {URL} there @param {string} address
 */
const isAt = (state, there, address) => atTheLessonsStep(state, there, address) || stepThere(there, address) !== null;

/** @param {string} at the address that Python has drawn, behind the app's own */
export const hearDrawn = (at) => { drawn = at; };

/** Whether another page is on its way: what is said to Python meanwhile would be taken for the page before. */
export function isUnderWay() {
  return performance.now() < arrived || (isPage("known") && !isPage("rests", "connected"));
}

/** Stay where one is. */
export function stay() {
  clearTimeout(moving);
  going = null;
}
