// @ts-check
// Lines from queries to keys, one colour a head. Pointing, pinning, hiding heads and the threshold all happen here;
// Python is told what an address keeps: the pinned piece, the heads that are shown, and following the step.

import { cssVariable, make, makeButton, pen, set } from "../common/dom.js";
import { mount, UNSAID } from "../common/mount.js";
import { fittedHeight, isPresenting, typeScale, whatMakesRoom } from "../common/present.js";
import { press } from "../common/save.js";
import { makeUnder } from "../common/picture-footer.js";
import { say } from "../common/i18n.js";
import { toggleFollowing } from "./acts.js";
import { fillHeads, makeBars } from "./bars.js";
import { everyHead, KEPT, same } from "./choices.js";
import { fillColumns, makeColumn } from "./columns.js";
import { markStep, paint, reveal, titleOf, update } from "./drawing.js";
import { saveDrawing } from "./svg.js";
import { decode, SIDES } from "./weights.js";
import { placeRows, rowCentre } from "./places.js";

/** @import { FlowPayload, Pin, Show } from "../common/payloads.js" */
/** @import { Both, Chosen, Model, Pair, Rows, Scene } from "./types.js" */

const ROOM = 560;
const LEAST_ROOM = 240;
/** Letters fit rows of at least so many pixels. */
const SIZES = [[40, 17], [26, 14], [20, 13], [17, 12], [0, 11]];

/**
 * The height for the lines: what the window has left, so that all of them are seen at once.
 * @param {View} view
 */
function roomOf(view) {
  const isLarge = view.under.isLarge(), own = Math.round(ROOM * typeScale(isLarge));
  if (isLarge) return Math.max(LEAST_ROOM, window.innerHeight - 180 * typeScale(isLarge));
  const below = view.body.getBoundingClientRect().bottom - view.scroll.getBoundingClientRect().bottom;
  const heights = { own, least: LEAST_ROOM, most: own };
  const withTools = isPresenting() ? fittedHeight(view.scroll, { ...heights, below }) : own;
  return withTools < own ? withTools : fittedHeight(view.scroll, heights);
}

/** @param {View} view */
function layOut(view) {
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

/** The lines, as the modules of this folder hand them to each other. */
export class View {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.data = /** @type {FlowPayload} */ (UNSAID);
    this.setStateValue = /** @type {(name: string, value: unknown) => void} */ (UNSAID);
    this.model = /** @type {Model} */ (UNSAID);
    this.chosen = /** @type {Chosen} */ (UNSAID);
    this.painted = /** @type {Scene} */ (UNSAID);
    this.rows = /** @type {Rows | undefined} */ (undefined);
    this.shown = /** @type {number[]} */ ([]);
    this.focus = this.pin = this.pointed = /** @type {Pin | null} */ (null);
    this.pair = /** @type {Pair | null} */ (null);
    this.tokens = /** @type {Both<HTMLElement[]>} */ ({ query: [], key: [] });
    this.mount = Math.random().toString(36).slice(2);  // names this view in what Python is told, to hear what it has heard
    this.following = false;
    this.sent = this.width = this.room = this.textSize = 0;  // the room: the height that the lines were given
    this.scale = 1;  // by how much letters, and all that goes with them, are larger than usual
    this.revealed = NaN;
    this.stamp = this.signature = this.note = "";  // the signature is that of the pieces that stand there
    this.spans = { left: 0, right: 0, middle: 0 };
    this.body = make("div", "gf-flow-body");
    this.title = make("div", "gf-flow-title");
    this.readout = make("p", "gf-flow-readout", "", { "aria-live": "polite" });
    this.count = make("p", "gf-flow-count");
    this.scroll = make("div", "gf-flow-scroll");
    this.stage = make("div", "gf-flow-stage");
    this.canvas = make("canvas", "gf-flow-canvas", "", { role: "img" });
    this.axes = { query: make("div", "gf-flow-axis"), key: make("div", "gf-flow-axis") };
    this.lists = { query: makeColumn(this, "query"), key: makeColumn(this, "key") };
    this.heads = make("div", "gf-flow-heads", "", { role: "group", "aria-label": say("Heads shown") });
    this.chips = make("div", "gf-flow-chips");
    const about = { type: "range", min: 0, max: 0.5, step: 0.01, "aria-label": say("Hide lines below this weight") };
    this.slider = make("input", "gf-flow-slider", "", about);
    this.cutText = make("span", "gf-flow-cut");
    this.follow = makeButton("gf-flow-button gf-flow-follow", say("Follow the step"),
      say("Always pin the row of the current step"), () => toggleFollowing(this));
    this.under = makeUnder(root, this.body, {
      className: "gf-flow-dialog", name: () => this.data.name, changed: () => layOut(this),
      data: () => press(this.data.table), picture: (format) => saveDrawing(this, format),
    });
    const [axes, middle] = [make("div", "gf-flow-axes"), make("div", "gf-flow-middle")];
    axes.append(this.axes.query, this.title, this.axes.key);
    middle.append(this.canvas);
    this.stage.append(this.lists.query, middle, this.lists.key);
    this.scroll.append(this.stage);
    this.scroll.addEventListener("scroll", () => paint(this), { passive: true });
    this.body.append(makeBars(this), this.readout, axes, this.scroll, this.count);
  }
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
  styles: "flow", className: "gf-flow", create: (root) => new View(root), show, stepped, scaled: layOut,
  watched: (view) => [view.root, view.scroll, ...whatMakesRoom()],
  resized: (view) => view.root.clientWidth
    && (view.width !== view.scroll.clientWidth || view.room !== roomOf(view)) && layOut(view),
  fontsCame: (view) => view.data && layOut(view),
});
