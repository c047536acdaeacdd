// @ts-check
// The pieces of source and output: made once for each run, changed at each step.

import { make, pieceText } from "../common/dom.js";
import { say } from "../common/words.js";
import { filler, formatProbability } from "./numbers.js";

/** @import { SourceChip } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

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
  item.title = say("The model reads this first; it is not part of the output.");
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

/**
 * @param {View} view
 * @param {number} index
 * @param {boolean} hidden
 */
export function fillTarget(view, index, hidden) {
  const chip = view.run.target[index];
  const item = view.targetChips[index];
  const { still } = view.run;
  const state = index > view.step && !still ? "future" : hidden ? "hidden" : "shown";
  item.className = `gf-chip gf-${state}`;
  item.classList.toggle("gf-now", index === view.step && !still);
  item.classList.toggle("gf-special", Boolean(chip.special) && state === "shown");
  item.classList.toggle("gf-forced", Boolean(chip.forced) && state === "shown");
  item.dataset.filler = filler(chip.piece);
  if (item.dataset.state === state) return;
  item.dataset.state = state;
  if (state !== "shown") {
    const isNext = state === "hidden";
    item.title = isNext ? say("What comes here? Guess first.") : say("Step {n}, not reached yet", { n: index + 1 });
    item.replaceChildren(make("bdi", "gf-piece", isNext ? "?" : "·"), make("span", "gf-probability", "\u00a0"));
    return;
  }
  const values = { piece: chip.piece, id: chip.id };
  item.title = chip.forced
    ? say("{piece}, id {id}: chosen by you, not by the model. Click to go to its step.", values)
    : chip.probability === null ? say("{piece}, id {id}. Click to go to its step.", values)
    : say("{piece}, id {id}. Below it: the probability that the model gave it. Click to go to its step.", values);
  const shown = chip.probability === null ? "\u00a0" : formatProbability(chip.probability);
  const probability = make("span", "gf-probability", shown);
  probability.dataset.forced = say("yours");
  item.replaceChildren(pieceText(chip.piece), probability);
}

/**
 * How much a step looks at a source piece, 0 to 1; null if there is no shading.
 * @param {View} view
 * @param {number} step
 * @param {number} index
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

/**
 * @param {SourceChip} chip
 * @param {string | null} weight
 */
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
