// @ts-check
// The pieces of source and output: made once for each run, changed at each step. And what is said of a source piece
// that was picked: who looks at it, and at which step.

import { make, pieceText, set } from "../common/dom.js";
import { say, sayNodes } from "../common/i18n.js";
import { filler, formatProbability } from "./numbers.js";

/** @import { SourceChip } from "../common/payloads.js" */
/** @import { View } from "./view.js" */

/** @param {SourceChip} chip */
function sourceChip(chip) {
  const item = make("li", "gf-chip");
  if (chip.special) item.classList.add("gf-special");
  if (chip.unknown) item.classList.add("gf-unknown");
  item.append(pieceText(chip.piece));
  return item;
}

/** @param {string} piece */
function startChip(piece) {
  const item = make("li", "gf-chip gf-start gf-special");
  item.title = say("The model reads this token first; it is not part of the output.");
  item.append(pieceText(piece), make("span", "gf-probability", say("start")));
  return item;
}

/**
 * Make the chips of a run.
 * @param {View} view
 * @param {(index: number) => void} choose called with an output piece that was clicked
 */
export function buildChips(view, choose) {
  const { source, target, start_piece: start } = view.run;
  view.sourceChips = source.map(sourceChip);
  view.sourceList.replaceChildren(...view.sourceChips);
  view.targetChips = target.map((_, index) => {
    const item = make("li", "gf-chip");
    item.addEventListener("click", () => choose(index));
    return item;
  });
  view.targetList.replaceChildren(startChip(start), ...view.targetChips);
}

/** @param {View} view @param {number} index @param {boolean} hidden */
export function fillTarget(view, index, hidden) {
  const chip = view.run.target[index];
  const item = view.targetChips[index];
  const { still } = view.run;
  const later = view.data.foretold ? "coming" : "future";
  const state = index > view.step && !still ? later : hidden ? "hidden" : "shown";
  item.className = `gf-chip gf-${state}`;
  item.classList.toggle("gf-now", index === view.step && !still);
  item.classList.toggle("gf-special", Boolean(chip.special) && state === "shown");
  item.classList.toggle("gf-forced", Boolean(chip.forced) && state === "shown");
  item.dataset.filler = filler(chip.piece);
  if (item.dataset.state === state) return;
  item.dataset.state = state;
  if (state === "coming") {
    item.title = say("Step {n}, not reached yet", { n: index + 1 });
    item.replaceChildren(pieceText(chip.piece), make("span", "gf-probability", "\u00a0"));
    return;
  }
  if (state !== "shown") {
    const isNext = state === "hidden";
    item.title = isNext ? say("What comes next? Guess first.") : say("Step {n}, not reached yet", { n: index + 1 });
    item.replaceChildren(make("bdi", "gf-piece", isNext ? "?" : "·"), make("span", "gf-probability", "\u00a0"));
    return;
  }
  const values = { piece: chip.piece, id: chip.id };
  item.title = chip.forced
    ? say("{piece}, id {id}: chosen by you, not by the model. Click to go to its step.", values)
    : chip.probability === null ? say("{piece}, id {id}. Click to go to its step.", values)
    : say("{piece}, id {id}. The number below is the probability that the model gave this token. Click to go to its step.", values);
  const shown = chip.probability === null ? "\u00a0" : formatProbability(chip.probability);
  const probability = make("span", "gf-probability", shown);
  probability.dataset.forced = say("yours");
  item.replaceChildren(pieceText(chip.piece), probability);
}

/**
 * How much a step looks at a source piece, 0 to 1; null if there is no shading.
 * @param {View} view @param {number} step @param {number} index
 */
export function weightAt({ run: { source, shading, still } }, step, index) {
  return shading ? shading.steps[(still ? 0 : step) * source.length + index] / shading.levels : null;
}

/** @param {View} view */
export function drawSource(view) {
  const { source, shading } = view.run;
  view.sourceChips.forEach((item, index) => {
    const weight = weightAt(view, view.step, index);
    const chip = source[index];
    item.style.setProperty("--weight", String(weight ?? 0));
    item.title = sourceTitle(chip, weight === null ? null : weight.toFixed((shading?.levels ?? 0) > 255 ? 3 : 2));
  });
}

/** @param {SourceChip} chip @param {string | null} weight */
function sourceTitle({ piece, id, unknown }, weight) {
  const values = { piece, id, weight: weight ?? "" };
  if (weight === null && unknown) return say("{piece} (not in the vocabulary), id {id}", values);
  if (weight === null) return say("{piece}, id {id}", values);
  if (unknown) return say("{piece} (not in the vocabulary), id {id}, weight {weight} at this step", values);
  return say("{piece}, id {id}, weight {weight} at this step", values);
}

/**
 * The source piece with the largest weight at this step; none if there is no shading.
 * @param {View} view
 */
export function strongestSource(view) {
  const weights = view.sourceChips.map((_, index) => weightAt(view, view.step, index) ?? 0);
  return view.run.shading ? view.sourceChips[weights.indexOf(Math.max(...weights))] ?? null : null;
}

/**
 * Whether source pieces can be picked: only where each step has weights of its own, or Python wants to know.
 * @param {View} view
 */
export function canPick({ run, data }) {
  return data.choosable || Boolean(run.shading && !run.still && run.target.length);
}

/**
 * Mark the picked piece, and shade each output piece by how much its step looks at it. In guess mode steps that are
 * still to come give nothing away.
 * @param {View} view
 */
export function drawPicked(view) {
  const can = canPick(view);
  const picked = view.data.choosable ? view.data.chosen : view.picked;
  view.root.classList.toggle("gf-picking", view.picked !== null);
  set(view.sourceList, { role: can ? "group" : "list" }); // of buttons, or of pieces
  view.sourceChips.forEach((chip, index) => {
    chip.classList.toggle("gf-picked", index === picked);
    if (!can) return chip.removeAttribute("role");
    set(chip, { role: "button", "aria-pressed": index === picked, tabindex: index === (picked ?? 0) ? 0 : -1 });
  });
  view.targetChips.forEach((chip, step) => {
    const weight = picked === null || step > lastSeen(view) ? 0 : weightAt(view, step, picked);
    chip.style.setProperty("--weight", String(weight ?? 0));
  });
}

/** @param {View} view */
function lastSeen(view) {
  return view.data.covered ? view.step : view.run.target.length - 1;
}

/**
 * Under what the step says: what the shades are, or who looks most at the picked piece.
 * @param {View} view
 */
export function drawNote(view) {
  const { picked, run } = view;
  if (picked === null) {
    const cut = run.cut ? [make("span", "gf-cut", run.stop_reason), " "] : [];
    return view.note.replaceChildren(...cut, run.shading_label);
  }
  const weights = run.target.slice(0, lastSeen(view) + 1).map((_, step) => weightAt(view, step, picked) ?? 0);
  const most = weights.indexOf(Math.max(...weights));
  const piece = pieceText(run.source[picked].piece, "gf-quoted");
  const values = { piece, n: String(most + 1), weight: formatProbability(weights[most]) };
  const said = sayNodes("The output is shaded by its attention to ‘{piece}’, which is strongest at step {n} ({weight})", values);
  view.note.replaceChildren(...said);
}
