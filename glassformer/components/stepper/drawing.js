// @ts-check
// Draws one step.

import { make, moveSlider, pieceText, set } from "../common/dom.js";
import { tellStep } from "../common/step.js";
import { say, sayNodes } from "../common/i18n.js";
import { drawNote, drawPicked, drawSource, fillTarget, strongestSource } from "./chips.js";
import { byStep, commonStart, saidProbability } from "./numbers.js";

/** @import { TargetChip } from "../common/payloads.js" */
/** @import { View } from "./view.js" */

const FADES = 24;  // pixels at the end of a row that slides

/** @param {View} view */
export function render(view) {
  const { target, still, stop_reason: reason } = view.run;
  view.root.classList.toggle("gf-empty", !target.length);
  tellStep(stepOf(view), view.data.name);
  if (!target.length) {
    view.text.replaceChildren();
    view.caption.replaceChildren(reason || say("Nothing was produced."));
    if (still || view.data.choosable) drawSource(view);
    drawPicked(view);
    drawNote(view);
    return;
  }
  const covered = isCovered(view);
  drawSource(view);
  view.targetChips.forEach((_, index) => fillTarget(view, index, covered && index === view.step));
  drawText(view, covered);
  drawPicked(view);
  drawNote(view);
  view.caption.replaceChildren(...caption(view, covered));
  drawControls(view);
  view.root.dataset.step = String(view.step);
  requestAnimationFrame(() => follow(view));  // now the page would be laid out once more, only to look
}

/** @param {View} view */
function follow(view) {
  keepInView(view.targetList, view.targetChips[view.step]);
  const strongest = strongestSource(view);
  if (strongest) keepInView(view.sourceList, strongest);
  view.text.scrollTop = view.text.scrollHeight;
}

/** Whether the step's piece is hidden until somebody guesses it. @param {View} view */
export function isCovered({ data, step }) {
  return data.covered && data.revealed_step !== step;
}

/** The step that a stepper shows; null if there is none. @param {View | undefined} view */
export function stepOf(view) {
  return view?.run?.target.length ? view.step : null;
}

/** @param {View} view @param {boolean} covered */
function drawText(view, covered) {
  const { texts, starts } = view.run;
  const before = texts[view.step - 1] ?? "";
  const after = covered ? before : texts[view.step] ?? "";
  const same = covered ? before : commonStart(before, after);
  const newest = covered ? make("span", "gf-new gf-question", "?") : make("span", "gf-new", after.slice(same.length));
  const whole = view.data.foretold ? texts.at(-1) ?? "" : "";
  const coming = make("span", "gf-coming"), reached = commonStart(after, whole).length;
  coming.append(...wordsOf(whole.slice(reached), reached, starts));
  view.text.replaceChildren(...wordsOf(same, 0, starts.slice(0, view.step)), newest, coming);
}

/**
 * What each step has written of a part of the text; a click leads there.
 * @param {string} text @param {number} from @param {number[]} starts
 */
function wordsOf(text, from, starts) {
  return byStep(text, from, starts).map(([step, letters]) => {
    const word = make("span", "gf-word", letters);
    word.dataset.step = String(step);
    return word;
  });
}

/**
 * Keep the height that the finished output needs, so that the controls never move under a finger. What the first run
 * of a sentence needed stays for its branches: what is longer scrolls, and the page below stands still.
 * @param {View} view
 */
export function reserve(view) {
  if (!view.run) return;
  const { width } = view.root.getBoundingClientRect();
  const about = JSON.stringify([view.run.source, view.run.still, view.data.compact, width]);
  if (view.run.target.length && view.kept !== about) {
    view.kept = about;
    view.targetList.style.height = "";
    view.text.style.height = `${finishedHeight(view)}px`;
    view.targetList.style.height = getComputedStyle(view.targetList).height;
  }
  for (const side of view.root.querySelectorAll(".gf-side")) offerAll(side);
  if (view.run.target.length) follow(view);
}

/**
 * Offer to show all pieces of a side, where some are out of sight. What slides is a stop of the Tab key, unless there is
 * one in it.
 * @param {Element} side
 * @param {boolean} [all] that is done
 */
export function offerAll(side, all = side.classList.contains("gf-all")) {
  const more = /** @type {HTMLElement} */ (side.querySelector(".gf-show-all"));
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (side.querySelectorAll(".gf-text, .gf-pieces"))) {
    const slides = part.scrollHeight > part.clientHeight + 2 || part.scrollWidth > part.clientWidth + 2;
    part.tabIndex = slides && !part.querySelector("[role='button']") ? 0 : -1;
    if (part.matches(".gf-text")) continue;
    more.hidden = !all && !slides;
    more.textContent = all ? say("Show fewer") : say("Show all {n}", { n: part.children.length });
  }
}

/** The height of the whole text; its style has a limit. @param {View} view */
function finishedHeight(view) {
  const probe = make("p", "gf-text gf-probe", `${view.run.texts.at(-1) ?? ""} ?`);
  probe.dir = "auto";
  view.text.before(probe);
  const height = Math.ceil(probe.getBoundingClientRect().height);
  probe.remove();
  return height;
}

/**
 * What the step reads and predicts, in words.
 * @param {View} view @param {boolean} covered
 */
function caption(view, covered) {
  const { target, start_piece: start, stop_reason: reason, cut } = view.run;
  const chip = target[view.step];
  const step = make("b", "", say("Step {n} of {all}", { n: view.step + 1, all: target.length }));
  const read = pieceText(view.step ? target[view.step - 1].piece : start, "gf-quoted");
  if (covered) {
    const asked = sayNodes("{step}: reads ‘{read}’, predicts a hidden token", { step, read });
    return view.halted === view.step ? [...asked, make("span", "gf-stop", say(". Playback waits for your guess."))] : asked;
  }
  const piece = pieceText(chip.piece, "gf-quoted");
  const said = predicted(chip, { step, read, piece });
  const isLast = view.step === target.length - 1;
  return isLast && reason && !cut ? [...said, make("span", "gf-stop", say(". {reason}", { reason }))] : said;
}

/**
 * What a step predicts, with its probability if that may be seen.
 * @param {TargetChip} chip @param {{ step: Node, read: Node, piece: Node }} values
 */
function predicted({ probability, forced }, values) {
  if (probability === null) {
    return forced
      ? sayNodes("{step}: reads ‘{read}’, you chose ‘{piece}’", values)
      : sayNodes("{step}: reads ‘{read}’, predicts ‘{piece}’", values);
  }
  const p = make("span", "gf-said", saidProbability(probability));
  return forced
    ? sayNodes("{step}: reads ‘{read}’, you chose ‘{piece}’ (the model gave it a probability of {p})", { ...values, p })
    : sayNodes("{step}: reads ‘{read}’, predicts ‘{piece}’ ({p})", { ...values, p });
}

/** @param {View} view */
function drawControls(view) {
  const end = view.run.target.length - 1;
  // aria-disabled instead of disabled: a button that is disabled under the focus would lose it.
  for (const element of [view.first, view.back]) set(element, { "aria-disabled": view.step === 0 });
  for (const element of [view.next, view.last]) set(element, { "aria-disabled": view.step === end });
  const said = say("Step {n} of {all}", { n: view.step + 1, all: end + 1 });
  moveSlider(view.slider, view.step + 1, end > 0 ? view.step / end : 1, said);
}

/**
 * Scroll a list, and nothing around it, so that an entry is seen: with its row on top, or amid a single row.
 * @param {HTMLElement} list @param {HTMLElement} item
 */
function keepInView(list, item) {
  const [frame, place] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  if (place.top < frame.top || place.bottom > frame.bottom) list.scrollTop += place.top - frame.top;
  if (place.left >= frame.left && place.right <= frame.right - FADES) return;
  list.scrollLeft += (place.left + place.right - frame.left - frame.right) / 2;
}
