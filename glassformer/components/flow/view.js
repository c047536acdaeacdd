// @ts-check
// Lines from queries to keys, one colour a head. Pointing, pinning, hiding heads and the threshold all happen here;
// Python is told what an address keeps: the pinned piece, the heads that are shown, and following the step.

import { make, set } from "../common/dom.js";
import { mount } from "../common/mount.js";
import { whatMakesRoom } from "../common/available-height.js";
import { press } from "../common/save.js";
import { makeUnder } from "../common/picture-footer.js";
import { fillHeads, makeBars } from "./bars.js";
import { everyHead, KEPT, same } from "./choices.js";
import { fillColumns, makeColumn } from "./columns.js";
import { markStep, paint, reveal, update } from "./drawing.js";
import { layOut, roomOf } from "./layout.js";
import { titleOf } from "./readout.js";
import { saveDrawing } from "./svg.js";
import { decode, SIDES } from "./weights.js";

/** @import { Create, FlowPayload, Pin, Show } from "../common/payloads.js" */
/** @import { View } from "./types.js" */

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
