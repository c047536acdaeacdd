// @ts-check
// Draws what has changed: lines, marks on the pieces, and what is said about them: what is looked at, and what the
// lines leave out.

import { cssVariable, make, pen, pieceText, set } from "../common/dom.js";
import { asNumber, inARow, say, sayN, sayNodes } from "../common/i18n.js";
import { everyHead, KEPT, OTHER, pinned, same, shownHeads, stepRow } from "./choices.js";
import { rowCentre, scene } from "./places.js";
import { chooseLines, formatWeight, isOpen, meansOf, MOST_LINES, SIDES, weightOf } from "./weights.js";

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { Look, Scene } from "./types.js" */
/** @import { View } from "./view.js" */

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
  view.readout.replaceChildren(...readout(view));
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
    set(chip, { "aria-pressed": view.shown.includes(head), "aria-label": say("Head {n}", { n: head + 1 }) });
  });
  const weight = KEPT.threshold.toFixed(2);
  view.slider.value = String(KEPT.threshold);
  view.cutText.textContent = weight;
  set(view.slider, { "aria-valuetext": say("weight {weight}", { weight }) });
  const stepped = view.data.row_of_step.length > 0;
  view.follow.hidden = !stepped;
  set(view.follow, { "aria-pressed": view.following && stepped });
}

/** @param {View} view */
export function markStep(view) {
  const now = stepRow(view);
  view.tokens.query.forEach((made, index) => made.classList.toggle("gf-flow-now", index === now));
}

/** @param {View} view @param {Side} side */
function drawTokens(view, side) {
  const { focus, shown } = view;
  const means = focus && focus.side !== side ? meansOf(view.model, shown, focus) : null;
  const pin = pinned(view);
  view.tokens[side].forEach((made, index) => {
    const mean = means?.[index] ?? null;
    const closed = means !== null && mean === null && shown.length > 0;
    const isPinned = same(pin, { side, index });
    made.classList.toggle("gf-flow-focus", same(focus, { side, index }));
    made.classList.toggle("gf-flow-pinned", isPinned);
    made.classList.toggle("gf-flow-closed", closed);
    made.style.setProperty("--weight", Math.sqrt(mean ?? 0).toFixed(3));
    const value = made.lastElementChild;
    if (value) value.textContent = closed ? say("masked") : mean === null ? "" : formatWeight(mean);
    set(made, { "aria-selected": isPinned });
    const piece = pieceAt(view, { side, index });
    made.title = closed ? say("{piece} (masked: attention not allowed)", { piece }) : piece;
  });
}

/** @param {View} view */
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
 * Paint what is in view: `top` is how far it is scrolled, `height` what is seen.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} drawn
 * @param {Look} how
 * @param {number} top
 * @param {number} height
 */
function paintCanvas(context, drawn, how, top, height) {
  context.lineWidth = how.line;
  context.lineCap = "butt";
  for (const line of drawn.lines) {
    const [y0, y1] = [line.y0 - top, line.y1 - top];
    if ((y0 < 0 && y1 < 0) || (y0 > height && y1 > height)) continue;
    const bend = (line.x1 - line.x0) * 0.4;
    context.globalAlpha = line.alpha;
    context.strokeStyle = how.colours[line.head];
    context.beginPath();
    context.moveTo(line.x0, y0);
    context.bezierCurveTo(line.x0 + bend, y0, line.x1 - bend, y1, line.x1, y1);
    context.stroke();
  }
  for (const block of drawn.blocks) {
    const y = block.y - top;
    if (y + block.height < 0 || y > height) continue;
    context.globalAlpha = 1;
    context.fillStyle = how.faint;
    context.fillRect(block.x, y, block.width, block.height);
    context.globalAlpha = block.alpha;
    context.fillStyle = how.colours[block.head];
    context.fillRect(block.x, y, block.width, block.height);
  }
  context.globalAlpha = 1;
}

/** Bring the row of the current step into view when the step changes. @param {View} view */
export function reveal(view) {
  const now = stepRow(view);
  if (!view.rows || now === null || now === view.revealed) return;
  view.revealed = now;
  const y = rowCentre(view.rows, "query", now);
  const { scrollTop: top, clientHeight: height } = view.scroll;
  if (y < top + 20 || y > top + height - 20) view.scroll.scrollTop = y - height / 2;
}

const LISTED = 5;

/** @param {View} view @param {number} head */
export function colourOf(view, head) {
  const { colours } = view.data;
  return colours[head % colours.length][view.root.dataset.theme === "dark" ? 1 : 0];
}

/** @param {View} view */
export const titleOf = ({ data: { kind, layer } }) => say("{kind}, {layer}", { kind, layer });

/** @type {(view: View, place: Pin) => string} */
export const pieceAt = ({ data }, { side, index }) => (side === "query" ? data.queries : data.keys)[index];

/** @type {(view: View, place: Pin) => HTMLElement} */
const quoted = (view, place) => pieceText(pieceAt(view, place), "gf-flow-quoted");

/**
 * A head in its colour, and what it gives.
 * @param {View} view @param {number} head @param {...Node} rest
 */
function swatched(view, head, ...rest) {
  const item = make("span", "gf-flow-item");
  const swatch = make("span", "gf-flow-swatch");
  swatch.style.setProperty("--head", colourOf(view, head));
  item.append(swatch, view.data.together ? say("mean") : say("head {n}", { n: head + 1 }), ...rest);
  return item;
}

/** @param {number} weight */
const bold = (weight) => make("b", "", weight.toFixed(3));

/** What is looked at, in words. @param {View} view */
export function readout(view) {
  const { focus, pair, shown, model } = view;
  if (!focus && !shown.length) return [say("No head is shown. Click a head, or All.")];
  if (!focus) {
    return [inARow([say("Hover over a token to see only its lines; click it to pin them."),
      say("Keyboard: arrow keys move, Enter pins, Escape unpins.")])];
  }
  const begin = make("span", "gf-flow-begin");
  if (pair) {
    const [query, key] = SIDES.map((side) => quoted(view, { side, index: pair[side] }));
    if (!isOpen(model, pair)) {
      begin.append(...sayNodes("{query} cannot look at {key}", { query, key }));
      return [begin, say("It is masked.")];
    }
    begin.append(...sayNodes("{query} looks at {key}", { query, key }));
    return [begin, ...shown.map((head) => swatched(view, head, bold(weightOf(model, head, pair))))];
  }
  const piece = quoted(view, focus);
  const side = OTHER[focus.side];
  const items = view.chosen.lines.slice(-LISTED).reverse().map((line) =>
    swatched(view, line.head, quoted(view, { side, index: line[side] }), bold(line.weight)));
  const beginning = !items.length
    ? sayNodes("{piece} has no line: all its weights are below the threshold", { piece })
    : side === "key" ? sayNodes("{piece} looks most at", { piece })
    : sayNodes("{piece} gets the most attention from", { piece });
  begin.append(...beginning);
  return [begin, ...items];
}

/** @param {number} share */
function percent(share) {
  if (share > 0 && share < 0.01) return say("under 1%");
  if (share > 0.99 && share < 1) return say("over 99%");
  return say("{n}%", { n: Math.round(share * 100) });
}

/** @param {View} view */
export function drawCount(view) {
  const { lines, all, cut, crowded, share } = view.chosen;
  const values = { all: asNumber(all), share: percent(share) };
  const said = [sayN("{n} of {all} lines is drawn; it carries {share} of the total weight.",
    "{n} of {all} lines are drawn; they carry {share} of the total weight.", lines.length, values)];
  if (crowded) {
    said.push(say("More than {many} lines cannot be distinguished, so no lines are drawn for weights below {cut}.",
      { many: asNumber(MOST_LINES), cut: cut.toFixed(4) }));
  } else if (lines.length < all) {
    said.push(cut
      ? say("Weights below {cut} have no line.", { cut: cut.toFixed(2) })
      : say("Weights that round to 0 have no line."));
  }
  view.note = inARow(said);
  if (view.focus) {
    said.push(say("The number next to a token is its mean weight over the heads shown; each coloured block is one head."));
  }
  if (view.model.levels <= 255) said.push(say("Weights are rounded to {step}.", { step: "1/255" }));
  view.count.textContent = all ? inARow(said) : "";
}
