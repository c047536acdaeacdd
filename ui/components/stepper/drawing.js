// @ts-check
// Draws one step.

import { make, pieceText } from "../common/dom.js";
import { tellStep } from "../common/step.js";
import { say, sayNodes } from "../common/words.js";
import { drawSource, fillTarget, strongestSource } from "./chips.js";
import { commonStart, saidProbability } from "./numbers.js";

/** @import { View } from "./types.js" */

/** @param {View} view */
export function render(view) {
  const { target, stop_reason: reason } = view.run;
  view.root.classList.toggle("gf-empty", !target.length);
  tellStep(stepOf(view), view.data.name);
  if (!target.length) {
    view.text.replaceChildren();
    view.caption.replaceChildren(say("Nothing was produced. {reason}", { reason }));
    return;
  }
  const covered = view.data.covered && view.data.revealed_step !== view.step;
  drawSource(view);
  view.targetChips.forEach((_, index) => fillTarget(view, index, covered && index === view.step));
  drawText(view, covered);
  view.caption.replaceChildren(...caption(view, covered));
  drawControls(view);
  view.root.dataset.step = String(view.step);
  keepInView(view.targetList, view.targetChips[view.step]);
  const strongest = strongestSource(view);
  if (strongest) keepInView(view.sourceList, strongest);
  view.text.scrollTop = view.text.scrollHeight;
}

/**
 * The step that a stepper shows; null if there is none.
 * @param {View | undefined} view
 */
export function stepOf(view) {
  return view?.run?.target.length ? view.step : null;
}

/**
 * @param {View} view
 * @param {boolean} covered
 */
function drawText(view, covered) {
  const { texts } = view.run;
  const before = texts[view.step - 1] ?? "";
  const after = covered ? before : texts[view.step] ?? "";
  const same = covered ? before : commonStart(before, after);
  const newest = covered ? make("span", "gf-new gf-question", "?") : make("span", "gf-new", after.slice(same.length));
  view.text.replaceChildren(same, newest);
}

/**
 * Keep the height the finished text will need, so that the controls never move under a finger.
 * @param {View} view
 */
export function reserve(view) {
  view.text.style.minHeight = "";
  if (!view.run || view.root.classList.contains("gf-long")) return;
  const probe = make("p", "gf-text gf-probe", `${view.run.texts.at(-1) ?? ""} ?`);
  probe.dir = "auto";
  view.text.before(probe);
  const height = probe.offsetHeight;
  probe.remove();
  view.text.style.minHeight = `${height}px`;
}

/**
 * What the step reads and predicts, in words.
 * @param {View} view
 * @param {boolean} covered
 */
function caption(view, covered) {
  const { target, start_piece: start, stop_reason: reason } = view.run;
  const chip = target[view.step];
  const step = make("b", "", say("Step {n} of {all}", { n: view.step + 1, all: target.length }));
  const read = pieceText(view.step ? target[view.step - 1].piece : start, "gf-quoted");
  if (covered) return sayNodes("{step}: reads ‘{read}’, predicts ?", { step, read });
  const piece = pieceText(chip.piece, "gf-quoted");
  const p = make("span", "gf-said", saidProbability(chip.probability));
  const said = chip.forced
    ? sayNodes("{step}: reads ‘{read}’, you chose ‘{piece}’ (the model gave it {p})", { step, read, piece, p })
    : sayNodes("{step}: reads ‘{read}’, predicts ‘{piece}’ ({p})", { step, read, piece, p });
  const isLast = view.step === target.length - 1;
  return isLast && reason ? [...said, make("span", "gf-stop", say(". {reason}", { reason }))] : said;
}

/** @param {View} view */
function drawControls(view) {
  const end = view.run.target.length - 1;
  // aria-disabled instead of disabled: a button that is disabled under the focus would lose it.
  for (const element of [view.first, view.back]) element.setAttribute("aria-disabled", String(view.step === 0));
  for (const element of [view.next, view.last]) element.setAttribute("aria-disabled", String(view.step === end));
  view.slider.value = String(view.step + 1);
  view.slider.setAttribute("aria-valuetext", say("Step {n} of {all}", { n: view.step + 1, all: end + 1 }));
  view.slider.style.setProperty("--done", String(end > 0 ? view.step / end : 1));
}

/**
 * Scroll a list, and nothing around it, so that an entry is seen: in the middle of a high list, on top of a low one.
 * @param {HTMLElement} list
 * @param {HTMLElement} item
 */
function keepInView(list, item) {
  const [frame, place] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  if (place.top >= frame.top && place.bottom <= frame.bottom) return;
  const above = frame.height > 3 * place.height ? (frame.height - place.height) / 2 : 0;
  list.scrollTop += place.top - frame.top - above;
}
