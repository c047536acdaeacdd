// @ts-check
// Draws what has changed: lines, marks on the pieces, and what is said about them.

import { cssVariable, pen } from "../common/dom.js";
import { say } from "../common/words.js";
import { paintCanvas } from "./canvas.js";
import { everyHead, KEPT, pinned, shownHeads, stepRow } from "./choices.js";
import { rowCentre, scene } from "./places.js";
import { colourOf, drawCount, drawReadout, pieceAt } from "./readout.js";
import { chooseLines, formatWeight, meansOf, SIDES } from "./weights.js";

/** @import { Side } from "../common/payloads.js" */
/** @import { Look, View } from "./types.js" */

/** @param {View} view */
export function update(view) {
  if (!view.rows) return;
  const started = performance.now();
  view.shown = shownHeads(view);
  look(view);
  view.chosen = chooseLines(view.model, view.shown, KEPT.threshold, view.focus);
  view.painted = scene(view, view.spans.middle, view.rows);
  drawChips(view);
  for (const side of SIDES) drawTokens(view, side);
  markStep(view);
  drawReadout(view);
  drawCount(view);
  paint(view);
  const { dataset } = view.root;
  const pin = pinned(view);
  dataset.lines = String(view.chosen.lines.length);
  dataset.focus = view.focus ? `${view.focus.side} ${view.focus.index}` : "";
  dataset.pinned = pin ? `${pin.side} ${pin.index}` : "";
  dataset.heads = view.shown.map((head) => head + 1).join(" ");
  dataset.drawMs = (performance.now() - started).toFixed(1);
}

/**
 * Which piece's lines are drawn, and which pair is looked at beside a pinned piece.
 * @param {View} view
 */
function look(view) {
  const pin = pinned(view);
  const { pointed } = view;
  const beside = pin && pointed && pointed.side !== pin.side;
  view.focus = beside ? pin : pointed ?? pin;
  view.pair = null;
  if (!beside) return;
  const [query, key] = pin.side === "query" ? [pin.index, pointed.index] : [pointed.index, pin.index];
  view.pair = { query, key };
}

/** @param {View} view */
function drawChips(view) {
  view.heads.hidden = view.data.together;
  Array.from(view.chips.children).forEach((chip, head) => {
    if (chip instanceof HTMLElement) chip.style.setProperty("--head", colourOf(view, head));
    chip.setAttribute("aria-pressed", String(view.shown.includes(head)));
    chip.setAttribute("aria-label", say("Head {n}", { n: head + 1 }));
  });
  const weight = KEPT.threshold.toFixed(2);
  view.slider.value = String(KEPT.threshold);
  view.cutText.textContent = weight;
  view.slider.setAttribute("aria-valuetext", say("weight {weight}", { weight }));
  const stepped = view.data.row_of_step.length > 0;
  view.follow.hidden = !stepped;
  view.follow.setAttribute("aria-pressed", String(view.following && stepped));
}

/** @param {View} view */
export function markStep(view) {
  const now = stepRow(view);
  view.tokens.query.forEach((made, index) => made.classList.toggle("gf-flow-now", index === now));
}

/**
 * @param {View} view
 * @param {Side} side
 */
function drawTokens(view, side) {
  const { focus, shown } = view;
  const means = focus && focus.side !== side ? meansOf(view.model, shown, focus) : null;
  const pin = pinned(view);
  view.tokens[side].forEach((made, index) => {
    const mean = means?.[index] ?? null;
    const closed = means !== null && mean === null && shown.length > 0;
    const isPinned = pin?.side === side && pin.index === index;
    made.classList.toggle("gf-flow-focus", focus?.side === side && focus.index === index);
    made.classList.toggle("gf-flow-pinned", isPinned);
    made.classList.toggle("gf-flow-closed", closed);
    made.style.setProperty("--weight", Math.sqrt(mean ?? 0).toFixed(3));
    const value = made.lastElementChild;
    if (value) value.textContent = closed ? say("masked") : mean === null ? "" : formatWeight(mean);
    made.setAttribute("aria-selected", String(isPinned));
    const piece = pieceAt(view, side, index);
    made.title = closed ? say("{piece} (masked: it may not be looked at)", { piece }) : piece;
  });
}

/**
 * @param {View} view
 * @returns {Look}
 */
export function appearance(view) {
  const plain = cssVariable(view.root, "--st-text-color", "#31333f");
  const sideOf = (/** @type {string} */ name) =>
    (name === "neutral" ? plain : cssVariable(view.root, `--gf-${name}-text`, "#333333"));
  return {
    colours: everyHead(view).map((head) => colourOf(view, head)),
    faint: view.root.dataset.theme === "dark" ? "#27313d" : "#ebe8df",
    background: cssVariable(view.root, "--st-background-color", "#ffffff"),
    text: plain, query: sideOf(view.data.query_side), key: sideOf(view.data.key_side),
    line: (view.focus ? 2.2 : 1.6) * view.scale, size: view.textSize,
  };
}

/**
 * Only what is in view is painted: a canvas as tall as 512 rows would take a hundred megabytes.
 * @param {View} view
 */
export function paint(view) {
  if (!view.painted || !view.rows) return;
  const height = Math.min(view.rows.height, view.scroll.clientHeight);
  const [width, scale] = [view.spans.middle, Math.min(2, window.devicePixelRatio || 1)];
  const { canvas } = view;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = pen(canvas);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  paintCanvas(context, view.painted, appearance(view), view.scroll.scrollTop, height);
}

/**
 * Bring the row of the current step into view when the step changes.
 * @param {View} view
 */
export function reveal(view) {
  const now = stepRow(view);
  if (!view.rows || now === null || now === view.revealed) return;
  view.revealed = now;
  const y = rowCentre(view.rows, "query", now);
  const { scrollTop: top, clientHeight: height } = view.scroll;
  if (y < top + 20 || y > top + height - 20) view.scroll.scrollTop = y - height / 2;
}
