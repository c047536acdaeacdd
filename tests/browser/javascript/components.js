// @ts-check
// Whole components, as Streamlit calls them: what is drawn, what keys and clicks do, what Python is told.

import { make } from "../../../glassformer/components/common/dom.js";
import { wantFrames } from "../../../glassformer/components/common/frames.js";
import { DARK_COLORS, PLOTLY_FILE } from "../../../glassformer/components/common/served.js";
import { restOf, tellStep } from "../../../glassformer/components/common/step.js";
import { component as flow } from "../../../glassformer/components/flow/view.js";
import { component as chart } from "../../../glassformer/components/plotly/view.js";
import { component as rest } from "../../../glassformer/components/stepper/settled-step.js";
import { component as stepper } from "../../../glassformer/components/stepper/view.js";
import { base64, equal, test } from "./harness.js";

/** @import { FlowPayload, PlotlyPayload, RestPayload, StepperPayload } from "../../../glassformer/components/common/payloads.js" */

/** @param {number} ms */
const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/**
 * A component on the page, and what Python is told.
 * @template Payload
 * @param {(component: any) => () => void} component
 * @param {Payload} payload
 */
function placed(component, payload, background = "#ffffff") {
  /** @type {[name: string, value: any][]} */
  const told = [];
  const parent = make("div");
  parent.style.setProperty("--st-background-color", background);
  document.body.append(parent);
  const hear = (/** @type {string} */ name, /** @type {unknown} */ value) => { told.push([name, value]); };
  let end = () => {};
  const show = (/** @type {Partial<Payload>} */ change = {}) => {
    end = component({ data: { payload: { ...payload, ...change } }, parentElement: parent,
      setStateValue: hear, setTriggerValue: hear });
  };
  const leave = async () => {
    parent.remove();
    end();
    await wait(5);
  };
  show();
  return { told, parent, show, leave };
}

/**
 * Press a key where the focus is.
 * @param {string} key
 */
function press(key) {
  document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
}

/** @param {Element} parent @param {string} selector */
const found = (parent, selector) => /** @type {HTMLElement[]} */ (Array.from(parent.querySelectorAll(selector)));

// ---------------------------------------------------------------- the stepper

const PIECES = ["▁a", "<b>x</b>", "</s>"];

/** @type {StepperPayload} */
const RUN = {
  name: "stepper", step: 0, step_revision: 4, covered: false, revealed_step: null, compact: false, led: false,
  foretold: true, large: false, chosen: null, choosable: false, asks: true, moves: "",
  run: {
    run_id: "r", source: PIECES.map((piece, id) => ({ piece, id })), start_piece: "<s>", shading: null,
    target: PIECES.map((piece, id) => ({ piece, id, probability: 0.5 })), texts: PIECES.map(() => [0, "a"]),
    shading_label: "", stop_reason: "It ended.", cut: false, still: false,
  },
};

test("keys step through a run, and Python is told once of the step where they rest", async () => {
  const { told, parent, leave } = placed(stepper, RUN);
  const root = found(parent, ".gf-stepper")[0];
  root.focus();
  const steps = ["ArrowRight", "End", "ArrowRight", "ArrowLeft", "Home", "End"].map((key) => {
    press(key);
    return root.dataset.step;
  });
  equal([steps, told], [["1", "2", "2", "1", "0", "2"], []]);
  await wait(300);
  const [[name, { when, ...report }], ...others] = told;
  equal([name, report, others, when > 0], ["step", { run_id: "r", step_revision: 4, step: 2 }, [], true]);
  await leave();
});

test("pieces stand in the stepper as text", async () => {
  const { parent, leave } = placed(stepper, RUN);
  const shown = found(parent, ".gf-source bdi").map((piece) => piece.textContent);
  equal([shown, found(parent, "bdi b, bdi s").length], [PIECES, 0]);
  await leave();
});

// ---------------------------------------------------------------- the flow view

/** @type {FlowPayload} */
const LINES = {
  sentence: "s", kind: "Kind", layer: "layer 1", queries: ["a", "b"], keys: ["x", "y"], query_axis: "Q", key_axis: "K",
  query_side: "target", key_side: "source", row_of_step: [], heads: 1, open: null, colours: [["#111111", "#eeeeee"]],
  weights: { levels: 255, count: 4, filled: null, steps: base64(Uint8Array.of(200, 55, 100, 155)) }, together: false,
  group: 1, output: { query: null, key: null }, shown: [], following: false, pin: null, reports: true, heard: null,
  name: "flow", file: "flow", table: "", alt: "Lines.", caption: "",
};

test("keys move over the pieces of the flow view and pin one, and Python is told", async () => {
  const { told, parent, leave } = placed(flow, LINES);
  const at = () => document.activeElement?.querySelector("bdi")?.textContent;
  found(parent, ".gf-flow-query .gf-flow-token")[0].focus();
  const moved = ["ArrowDown", "ArrowRight", "Home", "End", "ArrowLeft", "ArrowUp"].map((key) => {
    press(key);
    return at();
  });
  equal([moved, told], [["b", "y", "x", "y", "b", "a"], []]);
  press("Enter");
  equal(told.map(([name, { side, index, following }]) => [name, side, index, following]), [["pin", "query", 0, false]]);
  press("Escape");
  equal([told.length, told[1][1].side], [2, null]);
  await leave();
});

test("the piece that is pointed at keeps the focus when the flow view has new pieces", async () => {
  const { parent, show, leave } = placed(flow, LINES);
  found(parent, ".gf-flow-key .gf-flow-token")[1].focus();
  show({ keys: ["x", "new"] });
  equal(document.activeElement?.querySelector("bdi")?.textContent, "new");
  await leave();
});

test("lines have the colours of the theme", async () => {
  for (const [background, theme, colour] of [["#ffffff", "light", "#111111"], ["#101418", "dark", "#eeeeee"]]) {
    const { parent, leave } = placed(flow, LINES, background);
    const chip = found(parent, ".gf-flow-chip")[0];
    equal([found(parent, ".gf-root")[0].dataset.theme, chip.style.getPropertyValue("--head")], [theme, colour]);
    await leave();
  }
});

// ---------------------------------------------------------------- a chart

/** @type {Record<string, (event: any) => void>} */
const listeners = {};
/** Stands for Plotly: keeps what it shall draw, twenty pixels a place. */
const FAKE = {
  react: async (/** @type {any} */ plot, /** @type {any[]} */ data, /** @type {any} */ layout) => {
    const axis = { l2p: (/** @type {number} */ at) => 20 * at, _offset: 0, _length: 200, ticklabelstandoff: 50 };
    const on = (/** @type {string} */ name, /** @type {(event: any) => void} */ act) => { listeners[name] = act; };
    Object.assign(plot, { data, layout, on, _fullLayout: { ...layout, xaxis: axis, yaxis: axis } });
  },
  relayout: async () => {}, toImage: async () => "", purge: () => {}, Fx: { unhover: () => {} },
};
const COLOUR = Object.keys(DARK_COLORS)[0];

/**
 * A chart of a figure, once it is drawn.
 * @param {object[]} data
 * @param {object} layout
 * @param {string} [background]
 * @param {Partial<PlotlyPayload>} [more] of what Python sends
 */
async function drawn(data, layout, background = "#ffffff", more = {}) {
  const address = new URL(`../../../glassformer/components/plotly/${PLOTLY_FILE}`, import.meta.url).href;
  window.__glassformerPlotly = new Map([[address, Promise.resolve(FAKE)]]);
  /** @type {PlotlyPayload} */
  const payload = { figure: JSON.stringify({ data, layout }), alt: "A chart.", height: 300, caption: "", said: null, name: "c",
    file: "c", about: [], table: "", fit: 0, clickable: true, follows: "server", step: null, ...more };
  const made = placed(chart, payload, background);
  await wait(20);
  return { ...made, plot: /** @type {any} */ (found(made.parent, ".gf-plot")[0]) };
}

test("a click on a mark is told, and a second one on the same mark is another", async () => {
  const { told, leave } = await drawn([{ type: "bar", y: [1, 2] }], {});
  for (let time = 0; time < 2; time += 1) {
    listeners.plotly_click({ points: [{ curveNumber: 0, pointNumber: 1, customdata: 7, data: {} }] });
  }
  const click = { curve: 0, index: [1], customdata: 7, step: null };
  equal(told, [["click", { ...click, count: 1 }], ["click", { ...click, count: 2 }]]);
  await leave();
});

/**
 * A chart whose frames are what is said, and its stepper, both of the run "s".
 * @param {object | null} frames
 */
async function chartWith(frames) {
  const { fetch } = window;
  window.fetch = async () => new Response(JSON.stringify(frames), { status: frames ? 200 : 503 });
  const made = await drawn([{ y: [0] }], {}, "#ffffff", { name: "s-c", follows: `frames ${++charts}`, step: 0 });
  const quiet = placed(rest, /** @type {RestPayload} */ ({ name: "s-stepper" }));
  wantFrames();
  await wait(50);
  window.fetch = fetch;
  const leave = async () => {
    tellStep(null, "s-c");
    await made.leave();
    await quiet.leave();
  };
  return { ...made, leave, heard: quiet.told };
}
let charts = 0;
const MOMENT = { alt: "1", height: 300, caption: "", said: null, file: "c", about: [], figure: { data: [{ y: [0] }], layout: {} } };

test("a chart whose frames are here follows the step by itself, and a click on it says which that was", async () => {
  const said = [{ above: "<b>", table: null, below: "", pale: false, beside: false }];
  const changes = [null, { alt: ["2"], said, figure: { data: { 0: { y: { 0: [5] } } } } }];
  const { told, parent, plot, leave } = await chartWith({ first: MOMENT, changes });
  equal(restOf("s-stepper") === null, false);
  tellStep(1, "s-c");
  await wait(20);
  equal([plot.data[0].y, plot.getAttribute("aria-label")], [[5], "2"]);
  equal(found(parent, ".gf-lines").map((line) => line.textContent), ["<b>"]);
  listeners.plotly_click({ points: [{ curveNumber: 0, pointNumber: 0, data: {} }] });
  tellStep(0, "s-c");
  await wait(20);
  equal([plot.data[0].y, told[0][1].step], [[0], 1]);
  await leave();
});

test("a chart without its frames asks Python for each step", async () => {
  const { plot, leave } = await chartWith(null);
  equal(restOf("s-stepper"), null);
  tellStep(1, "s-c");
  await wait(20);
  equal(plot.data[0].y, [0]);
  await leave();
  const one = placed(rest, /** @type {RestPayload} */ ({ name: "s-stepper" }));
  equal(restOf("s-stepper") === null, false);  // what has left asks for nothing
  await one.leave();
  equal(restOf("s-stepper"), null);
});

test("where nothing asks for a step, who hears of it draws nothing, and the menu leads there", async () => {
  const menu = make("div", "st-key-menu");
  const nav = make("nav", "");
  nav.append(make("a", "", "", { href: "masks?src=a+b" }), make("a", "", "", { href: "step?step=9" }));
  menu.append(nav);
  document.body.append(menu);
  const quiet = placed(rest, /** @type {RestPayload} */ ({ name: "stepper" }));
  const { told, parent, leave } = placed(stepper, { ...RUN, asks: false });
  found(parent, ".gf-stepper")[0].focus();
  press("ArrowRight");
  await wait(300);
  const [[, { when, ...report }]] = quiet.told;
  equal([report, told, when > 0], [{ run_id: "r", step_revision: 4, step: 1 }, [], true]);
  equal(found(nav, "a").map((link) => link.getAttribute("href")), ["masks?src=a+b&step=2", "step?step=2"]);
  menu.remove();
  await leave();
  await quiet.leave();
});

test("two steppers go together, the shorter stands at its end, and Python hears of both or moves the other", async () => {
  for (const asks of [false, true]) {
    const short = placed(stepper, { ...RUN, name: "x-stepper", moves: "y-stepper", asks, step_revision: 1 });
    const run = { ...RUN.run, target: [...RUN.run.target, ...RUN.run.target], texts: [...RUN.run.texts, ...RUN.run.texts] };
    const long = placed(stepper, { ...RUN, run, name: "y-stepper", moves: "x-stepper", asks, step_revision: 1 });
    const rests = ["x-stepper", "y-stepper"].map((name) => placed(rest, /** @type {RestPayload} */ ({ name })));
    found(long.parent, ".gf-last")[0].click();
    const steps = [short, long].map(({ parent }) => found(parent, ".gf-stepper")[0].dataset.step);
    equal(steps, [RUN.run.target.length - 1, run.target.length - 1].map(String));
    await wait(500);
    const told = [...rests, short, long].map((one) => one.told.map(([, { step }]) => step));
    const [own, other] = steps.map(Number);
    equal(told, asks ? [[], [], [], [other]] : [[own], [other], [], []]);
    for (const one of [short, long, ...rests]) await one.leave();
  }
});

test("a step that was left for another address is not told", async () => {
  const { told, parent, leave } = placed(stepper, RUN);
  found(parent, ".gf-stepper")[0].focus();
  press("ArrowRight");
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
  await wait(300);
  equal(told, []);
  await leave();
});

test("a logarithmic map is coloured by powers of ten, and says its numbers", async () => {
  const cells = { rows: ["r"], columns: ["a", "b", "c"], floor: 0.001 };
  const { plot, leave } = await drawn([{ meta: "cells", colorbar: {}, z: [[1, 0.01, 0]] }], { meta: { cells } });
  equal(plot.data[0].z.map((/** @type {number[]} */ row) => row.map(Math.round)), [[0, -2, -3]]);
  equal(plot.data[0].customdata, [[["r", "a", 1], ["r", "b", 0.01], ["r", "c", 0]]]);
  await leave();
});

test("names beside tiles are their queries at the left and their keys below, at those of the cell pointed at", async () => {
  const grid = { codes: base64(new Uint8Array(12)), tops: [1], least: 0, layers: ["1"], heads: ["1", "2"],
    queries: ["q1", "q2"], keys: ["k1", "k2", "k3"] };
  const { parent, leave } = await drawn([{ meta: "grid" }], { meta: { grid } });
  const names = () => ["query", "key"].map((kind) => found(parent, `.gf-edge-${kind}`).map((name) => name.textContent));
  const at = () => found(parent, ".gf-edge-at").map((name) => name.textContent);
  const every = [["q1", "q2"], ["k1", "k2", "k3", "k1", "k2", "k3"]];
  equal([names(), at()], [every, []]);
  listeners.plotly_hover({ points: [{ pointNumber: [1, 4] }] });
  equal([names(), at()], [every, ["q2", "k2"]]);
  const left = found(parent, ".gf-edge").map((name) => /** @type {HTMLElement} */ (name).style.left);
  equal(left, ["-8px", "-8px", "0px", "20px", "40px", "60px", "80px", "100px"]);
  listeners.plotly_unhover({});
  equal([names(), at()], [every, []]);
  await leave();
});

test("a zoom outlives new data, as Python says which belong together", async () => {
  const { plot, show, leave } = await drawn([{ y: [1] }], { uirevision: "run 1" });
  equal(plot.layout.uirevision, "run 1");
  show({ figure: JSON.stringify({ data: [{ y: [2] }], layout: { uirevision: "run 1" } }) });
  await wait(20);
  equal([plot.layout.uirevision, plot.data[0].y], ["run 1", [2]]);
  await leave();
});

test("a chart has the colours of the theme", async () => {
  for (const [background, colour] of [["#ffffff", COLOUR], ["#101418", DARK_COLORS[COLOUR]]]) {
    const { plot, leave } = await drawn([{ y: [1], marker: { color: COLOUR } }], {}, background);
    equal(plot.data[0].marker.color, colour);
    await leave();
  }
});
