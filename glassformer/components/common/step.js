// @ts-check
// The step that the reader looks at, known to all parts of a page before Python has heard of it. A page may show two
// runs beside each other, and each has a step of its own.

export const STEP_EVENT = "glassformer-step";

/**
 * The run that a component is about: the name "b-stepper" says that it is "b", a bare name the page's own, "".
 * @param {string} name
 */
export const runOf = (name) => (name.includes("-") ? name.split("-")[0] : "");

/**
 * Where the step of a component's run is kept.
 * @param {string} name @returns {`glassformerStep${string}`}
 */
const stepKey = (name) => `glassformerStep${runOf(name)}`;

/**
 * The step of a component's run, from 0; null where nothing is stepped through.
 * @param {string} [name]
 */
export function currentStep(name = "") {
  return document[stepKey(name)] ?? null;
}

/** @typedef {{ run_id: string, step_revision: number, step: number, when: number, written?: string }} Report */
/** @typedef {(report: Report, before: number) => void} Tell with the step where the reader rested before */

/** @type {Map<string, Tell>} */
const rests = new Map();

/**
 * Offer to hear where the reader rests, where nothing has to be drawn for that; ends by the function that comes back.
 * @param {string} name @param {Tell} tell
 */
export function offerRest(name, tell) {
  const run = runOf(name);
  rests.set(run, tell);
  return () => { if (rests.get(run) === tell) rests.delete(run); };
}

/** Who has to be drawn anew by Python for a step, each with its run. @type {Map<object, string>} */
const asking = new Map();

/**
 * Say whether something of a page has to be drawn anew by Python for each step.
 * @param {object} who @param {string} name @param {boolean} asks
 */
export function ask(who, name, asks) {
  if (asks) asking.set(who, runOf(name));
  else asking.delete(who);
}

/**
 * Who hears of a step of a component's run alone; null if something asks for it.
 * @param {string} name
 */
export function restOf(name) {
  const run = runOf(name);
  return Array.from(asking.values()).includes(run) ? null : rests.get(run) ?? null;
}

/**
 * What a stepper offers: an element in which it says what its step reads and predicts, and to be moved to a step, of
 * which Python is told so many milliseconds later than usual, or not where that is seen to.
 * @typedef {{
 *   name: () => string | undefined, said: HTMLElement, move: (step: number, after: number, quiet?: boolean) => void
 * }} Stepper
 */

/** @type {Set<Stepper>} */
const steppers = new Set();

/**
 * Offer a stepper, until it is gone.
 * @param {Stepper} stepper @param {AbortSignal} gone
 */
export function offerStepper(stepper, gone) {
  steppers.add(stepper);
  gone.addEventListener("abort", () => steppers.delete(stepper));
}

/** @param {string} run */
const stepperOf = (run) => Array.from(steppers).findLast((one) => runOf(one.name() ?? "") === run);

/**
 * Show what the stepper of a component's run says, now and at every step, until the function is called that comes back.
 * @param {string} name @param {HTMLElement} shown
 */
export function followStatus(name, shown) {
  const told = stepperOf(runOf(name));
  const copy = () => shown.replaceChildren(...Array.from(told?.said.childNodes ?? [], (node) => node.cloneNode(true)));
  const watcher = new MutationObserver(copy);
  if (told) watcher.observe(told.said, { childList: true, characterData: true, subtree: true });
  copy();
  return () => watcher.disconnect();
}

/**
 * Move the stepper of the page's own run, from outside; whether there is one.
 * @param {number} step from 0
 * @param {number} after
 * @param {boolean} [quiet] Whether somebody else tells Python.
 */
export function moveStep(step, after, quiet = false) {
  const stepper = stepperOf("");
  stepper?.move(step, after, quiet);
  return stepper !== undefined;
}

/**
 * Have every chart of a stepper's run mark a step.
 * @param {number | null} step @param {string} [name]
 */
export function tellStep(step, name = "") {
  if (step === currentStep(name)) return;
  document[stepKey(name)] = step;
  document.dispatchEvent(new CustomEvent(STEP_EVENT));
}

/**
 * The row of the current step, where rows belong to steps.
 * @param {(number | null)[] | undefined} rows
 * @param {string} [name] Of the component that has the rows.
 */
export function rowOfStep(rows, name = "") {
  const step = currentStep(name);
  return step === null ? null : rows?.[step] ?? null;
}
