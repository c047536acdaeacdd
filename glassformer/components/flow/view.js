// @ts-check
// Lines from queries to keys, one colour a head. Pointing, pinning, hiding heads and the threshold all happen here;
// Python is told what an address keeps: the pinned piece, the heads that are shown, and following the step.

import { cssVariable, make, pen, set } from "../common/dom.js";
import { mount } from "../common/mount.js";
import { fittedHeight, isPresenting, typeScale, whatMakesRoom } from "../common/present.js";
import { press } from "../common/save.js";
import { makeUnder } from "../common/picture-footer.js";
import { fillHeads, makeBars } from "./bars.js";
import { everyHead, KEPT, same } from "./choices.js";
import { fillColumns, makeColumn } from "./columns.js";
import { markStep, paint, reveal, titleOf, update } from "./drawing.js";
import { saveDrawing } from "./svg.js";
import { decode, SIDES } from "./weights.js";
import { placeRows, rowCentre } from "./places.js";

/** @import { Create, FlowPayload, Pin, Show } from "../common/payloads.js" */
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

/** @param {View} view */
function stage(view) {
  const heads = make("div", "gf-flow-axes");
  view.axes = { query: make("div", "gf-flow-axis"), key: make("div", "gf-flow-axis") };
  heads.append(view.axes.query, view.title, view.axes.key);
  view.lists = { query: makeColumn(view, "query"), key: makeColumn(view, "key") };
  const middle = make("div", "gf-flow-middle");
  middle.append(view.canvas);
  view.stage.append(view.lists.query, middle, view.lists.key);
  view.scroll.append(view.stage);
  view.scroll.addEventListener("scroll", () => paint(view), { passive: true });
  return [heads, view.scroll];
}

/** @type {Create<View>} */
function create(root) {
  const view = /** @type {View} */ (/** @type {Partial<View>} */ ({
    root, mount: Math.random().toString(36).slice(2), sent: 0, pin: null, pointed: null, following: false,
    body: make("div", "gf-flow-body"), title: make("div", "gf-flow-title"),
    readout: make("p", "gf-flow-readout", "", { "aria-live": "polite" }), count: make("p", "gf-flow-count"),
    scroll: make("div", "gf-flow-scroll"), stage: make("div", "gf-flow-stage"),
    canvas: make("canvas", "gf-flow-canvas", "", { role: "img" }),
  }));
  view.under = makeUnder(root, view.body, {
    className: "gf-flow-dialog", name: () => view.data.name, changed: () => layOut(view),
    data: () => press(view.data.table), picture: (format) => saveDrawing(view, format),
  });
  view.body.append(makeBars(view), view.readout, ...stage(view), view.count);
  return view;
}

/**
 * Take what Python says: heads, a pinned piece or following that are news; else the reader's own choice stays.
 * @param {View} view @param {FlowPayload} data
 */
function adopt(view, data) {
  const fresh = !view.data || data.sentence !== view.data.sentence;
  if (fresh) Object.assign(view, { pin: null, pointed: null });
  const heard = view.sent === 0 || data.heard === view.stamp;
  if (fresh || (heard && !same(data.pin, view.data.pin))) {
    view.pin = data.pin;
    if (data.pin) view.following = false;
  }
  if (!view.data || (heard && data.following !== view.data.following)) view.following = data.following && !view.pin;
  Object.assign(view, { data, model: decode(data) });
  const shown = data.shown.join(" ");
  if (heard && !data.together && shown !== KEPT.shown) {
    KEPT.shown = shown;
    KEPT.hidden = data.shown.length ? everyHead(view).filter((head) => !data.shown.includes(head)) : [];
  }
  /** @type {(place: Pin | null) => Pin | null} */
  const kept = (place) =>
    (place && place.index < (place.side === "query" ? data.queries : data.keys).length ? place : null);
  view.pin = kept(view.pin);
  view.pointed = kept(view.pointed);
}

/** @type {Show<View, FlowPayload>} */
function show(view, { data: { payload: data }, setStateValue }) {
  view.setStateValue = setStateValue;
  adopt(view, data);
  view.title.textContent = titleOf(view);
  for (const side of SIDES) {
    view.axes[side].textContent = data[`${side}_axis`];
    view.axes[side].dataset.side = view.lists[side].dataset.side = data[`${side}_side`];
    set(view.lists[side], { "aria-label": data[`${side}_axis`] });
  }
  for (const named of [view.canvas, view.under.tools]) set(named, { "aria-label": data.alt });
  view.under.tell(data.caption);
  view.under.table.hidden = !data.table;
  fillHeads(view);
  fillColumns(view);
  layOut(view);
  reveal(view);
}

/** Follow a step that Python need not hear of to draw it. @param {View} view */
function stepped(view) {
  if (!view.rows) return;
  if (view.following) update(view);
  else markStep(view);
  reveal(view);
}

export const component = mount({
  styles: "flow", className: "gf-flow", create, show, stepped, scaled: layOut,
  watched: (view) => [view.root, view.scroll, ...whatMakesRoom()],
  resized: (view) => view.root.clientWidth
    && (view.width !== view.scroll.clientWidth || view.room !== roomOf(view)) && layOut(view),
  fontsCame: (view) => view.data && layOut(view),
});
