// @ts-check
// Draws what is said of a source piece that was picked: who looks at it, and at which step.

import { make, pieceText } from "../common/dom.js";
import { sayNodes } from "../common/words.js";
import { weightAt } from "./chips.js";
import { formatProbability } from "./numbers.js";

/** @import { View } from "./types.js" */

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
  view.sourceChips.forEach((chip, index) => {
    chip.classList.toggle("gf-picked", index === picked);
    if (!can) return chip.removeAttribute("role");
    chip.setAttribute("role", "button");
    chip.setAttribute("aria-pressed", String(index === picked));
    chip.tabIndex = index === (picked ?? 0) ? 0 : -1;
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
  const said = sayNodes("Output shaded by who looks at ‘{piece}’: most at step {n} ({weight})", values);
  view.note.replaceChildren(...said);
}
