// @ts-check
// What the flow view says in words: what is looked at, and what the lines leave out.

import { make, pieceText } from "../common/dom.js";
import { asNumber, inARow, say, sayN, sayNodes } from "../common/i18n.js";
import { OTHER } from "./choices.js";
import { isOpen, MOST_LINES, SIDES, weightOf } from "./weights.js";

/** @import { Pin } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

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
