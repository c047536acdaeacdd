// @ts-check
// The step that the reader looks at, known to all parts of a page before Python has heard of it.

export const STEP_EVENT = "glassformer-step";

/** The step, from 0; null where nothing is stepped through. */
export function currentStep() {
  return document.glassformerStep ?? null;
}

/**
 * Have every chart of the page mark a step.
 * @param {number | null} step
 */
export function tellStep(step) {
  if (step === currentStep()) return;
  document.glassformerStep = step;
  document.dispatchEvent(new CustomEvent(STEP_EVENT));
}

/**
 * The row of the current step, where rows belong to steps.
 * @param {(number | null)[] | undefined} rows
 */
export function rowOfStep(rows) {
  const step = currentStep();
  return step === null ? null : rows?.[step] ?? null;
}
