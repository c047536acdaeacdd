// @ts-check
// Gives columns, rows and letters their sizes for the room there is.

import { cssVariable, pen } from "../common/dom.js";
import { isPresenting, typeScale } from "../common/present.js";
import { fittedHeight } from "../common/available-height.js";
import { update } from "./drawing.js";
import { placeRows, rowCentre } from "./places.js";
import { SIDES } from "./weights.js";

/** @import { View } from "./types.js" */

const ROOM = 560;
const LEAST_ROOM = 240;
/** Letters fit rows of at least so many pixels. */
const SIZES = [[40, 17], [26, 14], [20, 13], [17, 12], [0, 11]];

/**
 * The height for the lines: what the window has left, so that all of them are seen at once.
 * @param {View} view
 */
export function roomOf(view) {
  const isLarge = view.under.isLarge(), own = Math.round(ROOM * typeScale(isLarge));
  if (isLarge) return Math.max(LEAST_ROOM, window.innerHeight - 180 * typeScale(isLarge));
  const below = view.body.getBoundingClientRect().bottom - view.scroll.getBoundingClientRect().bottom;
  const heights = { own, least: LEAST_ROOM, most: own };
  const withTools = isPresenting() ? fittedHeight(view.scroll, { ...heights, below }) : own;
  return withTools < own ? withTools : fittedHeight(view.scroll, heights);
}

/** @param {View} view */
export function layOut(view) {
  view.body.classList.toggle("gf-flow-presented", isPresenting());
  view.width = view.scroll.clientWidth;
  if (!view.width) return;  // in a closed tab: the size observer calls again when it opens
  const isLarge = view.under.isLarge();
  const scale = view.scale = typeScale(isLarge);
  const room = view.room = roomOf(view);
  // On a wide page few rows would be a flat band of nearly level lines.
  const widest = scale * (isLarge ? 56 : Math.max(36, Math.min(52, Math.round(view.width / 26 / scale))));
  const rows = view.rows = placeRows(view.model, room, widest, scale);
  view.textSize = Math.round(scale * (SIZES.find(([least]) => rows.pitch >= least * scale) ?? [0, 11])[1]);
  const [left, right] = columnWidths(view);
  view.spans = { left, right, middle: view.width - left - right };
  view.body.style.setProperty("--columns", `${left}px minmax(0, 1fr) ${right}px`);
  view.body.style.setProperty("--size", `${view.textSize}px`);
  view.stage.style.height = `${rows.height}px`;
  view.scroll.style.maxHeight = `${Math.max(room, isLarge ? 0 : 600 * scale)}px`;
  for (const side of SIDES) {
    const tall = Math.min(rows[side].pitch, view.textSize + 16 * scale) - 1;
    view.tokens[side].forEach((made, index) => {
      made.style.top = `${rowCentre(rows, side, index) - tall / 2}px`;
      made.style.height = `${tall}px`;
    });
  }
  update(view);
}

/** @param {View} view */
function columnWidths({ axes, canvas, data, root, scale, textSize, width }) {
  const context = pen(canvas);
  context.font = `${textSize}px ${cssVariable(root, "--st-code-font", "monospace")}`;
  const most = Math.floor(width * (width < 480 ? 0.34 : 0.32));
  return SIDES.map((side) => {
    const texts = side === "query" ? data.queries : data.keys;
    const needed = Math.ceil(Math.max(0, ...texts.map((text) => context.measureText(text).width))) + 66 * scale;
    const heading = Math.min(150, (axes[side].textContent ?? "").length * 7) * scale;
    return Math.min(most, Math.max(needed, heading));
  });
}
