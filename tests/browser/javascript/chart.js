// @ts-check
// A chart as Streamlit calls it: what Plotly is asked to draw at a step and in a theme, what clicks and keys tell.

import { changed, momentAt, wantFrames } from "../../../glassformer/components/common/frames.js";
import { present, typeScale } from "../../../glassformer/components/common/present.js";
import { DARK_COLORS, PLOTLY_FILE } from "../../../glassformer/components/common/served.js";
import { restOf, tellStep } from "../../../glassformer/components/common/step.js";
import { component as chart } from "../../../glassformer/components/plotly/view.js";
import { component as rest } from "../../../glassformer/components/stepper/settled-step.js";
import { base64, comesTo, equal, focused, placed, press, saving, test, wait } from "./harness.js";

/** @import { PlotlyPayload, RestPayload } from "../../../glassformer/components/common/payloads.js" */

/** @type {Record<string, (event: any) => void>} */
const listeners = {};
/** Stands for Plotly: keeps what it shall draw, twenty pixels a place. */
const FAKE = {
  react: async (/** @type {any} */ plot, /** @type {any[]} */ data, /** @type {any} */ layout) => {
    const axis = { l2p: (/** @type {number} */ at) => 20 * at, _offset: 0, _length: 200, ticklabelstandoff: 50 };
    const on = (/** @type {string} */ name, /** @type {(event: any) => void} */ act) => { listeners[name] = act; };
    Object.assign(plot, { data, layout, on, _fullLayout: { ...layout, xaxis: axis, yaxis: axis } });
  },
  relayout: async () => {}, toImage: async () => "<svg></svg>", purge: () => {}, Fx: { unhover: () => {} },
};
const COLOUR = Object.keys(DARK_COLORS)[0];

/**
 * A chart of a figure.
 * @param {object[]} data @param {object} [layout]
 * @param {Partial<PlotlyPayload> & { background?: string, plotly?: object | null }} [more]
 */
function stage(data, layout = {}, { background, plotly = FAKE, ...more } = {}) {
  const address = new URL(`../../../glassformer/components/plotly/${PLOTLY_FILE}`, import.meta.url).href;
  if (plotly) window.__glassformerPlotly = new Map([[address, Promise.resolve(/** @type {any} */ (plotly))]]);
  else window.__glassformerPlotly?.delete(address);
  /** @type {PlotlyPayload} */
  const payload = { figure: JSON.stringify({ data, layout }), alt: "A chart.", height: 300, caption: "", said: null, name: "c",
    file: "c", about: [], table: "", fit: 0, clickable: true, follows: "server", step: null, ...more };
  return placed(chart, payload, background);
}

/** The same, once it is drawn. @param {Parameters<typeof stage>} of */
async function drawn(...of) {
  const made = stage(...of), plot = made.one(".gf-plot");
  await comesTo(() => plot._fullLayout !== undefined, true);
  return { ...made, plot };
}

test("while its script is loading a chart says so, and where it does not come; the next one asks for it again", async () => {
  const { error } = console;
  console.error = () => {};
  const scripts = () => document.querySelectorAll(`script[src$="${PLOTLY_FILE}"]`).length;
  for (let time = 0; time < 2; time += 1) {
    const asked = scripts();
    const { one, texts, leave } = stage([{ y: [1] }], {}, { plotly: null });  // there is no such file here
    equal(one(".gf-chart").dataset.waits, "Loading the chart…");
    const said = () => texts(".gf-chart-note:not([hidden])").map((note) => note?.slice(0, 52));
    await comesTo(said, ["The chart could not be drawn because its script did "]);
    equal([one(".gf-chart").dataset.waits, scripts() > asked], [undefined, true]);
    await leave();
  }
  const { texts, leave } = stage([]);
  await comesTo(() => texts(".gf-chart-note:not([hidden])"), ["Nothing to draw yet."]);
  await leave();
  console.error = error;
});

test("presented, a chart is drawn for less room and shown larger, with no small letters", async () => {
  const scaled = () => [made.one(".gf-chart-sheet").style.transform, made.plot.layout.width < made.one(".gf-chart").clientWidth];
  const small = { xaxis: { tickfont: { size: 10 } } };
  const made = await drawn([{ type: "bar", y: [1, 2] }], small);
  equal([scaled(), made.plot.layout.xaxis.tickfont.size], [["", false], 10]);
  present(true);
  await comesTo(() => scaled()[1], true);
  equal([scaled()[0].slice(0, 11), made.plot.layout.xaxis.tickfont.size], [`scale(${typeScale(false)}`.slice(0, 11), 13]);
  present(false);
  await comesTo(scaled, ["", false]);
  await made.leave();
});

test("a click on a mark is told, and a second one on the same mark is another", async () => {
  const { told, leave } = await drawn([{ type: "bar", y: [1, 2] }]);
  for (let time = 0; time < 2; time += 1) {
    listeners.plotly_click({ points: [{ curveNumber: 0, pointNumber: 1, customdata: 7, data: {} }] });
  }
  const click = { curve: 0, index: [1], customdata: 7, step: null };
  equal(told, [["click", { ...click, count: 1 }], ["click", { ...click, count: 2 }]]);
  await leave();
});

let charts = 0;
const MOMENT = { alt: "1", height: 300, caption: "", said: null, file: "c", about: [], figure: { data: [{ y: [0] }], layout: {} } };

/**
 * A chart whose frames are what is said, and its stepper, both of the run "s".
 * @param {object | null} frames
 */
async function chartWith(frames) {
  const { fetch } = window;
  window.fetch = async () => new Response(JSON.stringify(frames), { status: frames ? 200 : 503 });
  const made = await drawn([{ y: [0] }], {}, { name: "s-c", follows: `frames ${++charts}`, step: 0 });
  const quiet = placed(rest, /** @type {RestPayload} */ ({ name: "s-stepper" }));
  wantFrames();
  await comesTo(() => restOf("s-stepper") !== null, frames !== null);
  await wait(50);
  window.fetch = fetch;
  const leave = async () => {
    tellStep(null, "s-c");
    await made.leave();
    await quiet.leave();
  };
  return { ...made, leave };
}

test("a chart whose frames are here follows the step by itself, and a click on it says which that was", async () => {
  const said = [{ above: "<b>", table: null, below: "", pale: false, beside: false }];
  const changes = [null, { alt: ["2"], said, figure: { data: { 0: { y: { 0: [5] } } } } }];
  const { told, texts, plot, leave } = await chartWith({ first: MOMENT, changes });
  tellStep(1, "s-c");
  await comesTo(() => [plot.data[0].y, plot.getAttribute("aria-label")], [[5], "2"]);
  equal(texts(".gf-lines"), ["<b>"]);
  listeners.plotly_click({ points: [{ curveNumber: 0, pointNumber: 0, data: {} }] });
  tellStep(0, "s-c");
  await comesTo(() => plot.data[0].y, [0]);
  equal(told[0][1].step, 1);
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

test("a logarithmic map is coloured by powers of ten, and says its numbers", async () => {
  const cells = { rows: ["r"], columns: ["a", "b", "c"], floor: 0.001 };
  const { plot, leave } = await drawn([{ meta: "cells", colorbar: {}, z: [[1, 0.01, 0]] }], { meta: { cells } });
  equal(plot.data[0].z.map((/** @type {number[]} */ row) => row.map(Math.round)), [[0, -2, -3]]);
  equal(plot.data[0].customdata, [[["r", "a", 1], ["r", "b", 0.01], ["r", "c", 0]]]);
  await leave();
});

test("arrows move over a map, each cell is told, one that is closed as such, and Enter is a click on it", async () => {
  const cells = { rows: ["1: <b>a</b>", "2: b"], columns: ["1: x", "2: y", "3: z"], weights: true };
  const z = [[0.5, 0.25, 0.001], [0.75, 0.25, null]];
  const { told, one, texts, leave } = await drawn([{ meta: "cells", colorbar: {}, z, customdata: [] }], { meta: { cells } });
  const said = (/** @type {string} */ key, more = {}) => [press(key, more), texts(".gf-grid-said")[0]][1];
  one(".gf-grid").focus();
  equal(texts(".gf-grid-said"), ["Query 1: a reads key 1: x: 0.50"]);
  equal(["ArrowDown", "ArrowRight", "End", "Home"].map((key) => said(key)), [
    "Query 2: b reads key 1: x: 0.75", "Query 2: b reads key 2: y: 0.25", "Query 2: b cannot read key 3: z",
    "Query 2: b reads key 1: x: 0.75"]);
  equal([said("Home", { ctrlKey: true }), said("End")], ["Query 1: a reads key 1: x: 0.50", "Query 1: a reads key 3: z: 1.0e-3"]);
  press("Enter");
  equal(told.map(([, { index }]) => index), [[0, 2]]);
  equal([said("End", { ctrlKey: true }), said("ArrowDown"), told.length], [...Array(2).fill("Query 2: b cannot read key 3: z"), 1]);
  press("Escape");
  equal(focused().matches(".gf-grid"), false);
  await leave();
});

test("names beside tiles are their queries at the left and their keys below, at those of the cell pointed at", async () => {
  const grid = { codes: base64(new Uint8Array(12)), tops: [1], least: 0, layers: ["1"], heads: ["1", "2"],
    queries: ["q1", "q2"], keys: ["k1", "k2", "k3"] };
  const { all, texts, leave } = await drawn([{ meta: "grid" }], { meta: { grid } });
  const names = () => ["query", "key", "at"].map((kind) => texts(`.gf-edge-${kind}`));
  const every = [["q1", "q2"], ["k1", "k2", "k3", "k1", "k2", "k3"]];
  equal(names(), [...every, []]);
  listeners.plotly_hover({ points: [{ pointNumber: [1, 4] }] });
  equal(names(), [...every, ["q2", "k2"]]);
  equal(all(".gf-edge").map((name) => name.style.left), ["-8px", "-8px", "0px", "20px", "40px", "60px", "80px", "100px"]);
  listeners.plotly_unhover({});
  equal(names(), [...every, []]);
  await leave();
});

test("a zoom outlives new data, as Python says which belong together", async () => {
  const { plot, show, leave } = await drawn([{ y: [1] }], { uirevision: "run 1" });
  equal(plot.layout.uirevision, "run 1");
  show({ figure: JSON.stringify({ data: [{ y: [2] }], layout: { uirevision: "run 1" } }) });
  await comesTo(() => [plot.layout.uirevision, plot.data[0].y], ["run 1", [2]]);
  await leave();
});

test("a chart has the colours of the theme, and its table says what it is of", async () => {
  for (const [background, colour] of [["#ffffff", COLOUR], ["#101418", DARK_COLORS[COLOUR]]]) {
    const { all, plot, leave } = await drawn([{ y: [1], marker: { color: COLOUR } }], {}, { background, about: [["model", "=m"]] });
    equal(plot.data[0].marker.color, colour);
    equal(await (await saving(() => all(".gf-menu-entry")[1].click())).text(), "model,x,y\r\n'=m,0,1\r\n");
    await leave();
  }
});

test("a change makes of some JSON another: by keys, by places, or as a whole", () => {
  equal(changed({ a: 1, b: [1, 2], c: { d: 3 } }, { a: [2], b: { 1: [7] }, c: { d: [] } }), { a: 2, b: [1, 7], c: {} });
  equal(changed([1, 2], [[3]]), [3]);
  equal(changed({ a: 1 }, null), { a: 1 });
  equal(changed({}, { a: [[]], b: [null] }), { a: [], b: null });
});

test("the first step is left as it is, whatever is made of it", () => {
  const moment = { alt: "", height: 1, caption: "", file: "", about: [], figure: { data: [[1]] } };
  const frames = { first: moment, changes: [null, { figure: { data: { 0: { 0: [2] } } } }] };
  const figures = [1, 0, 1].map((step) => momentAt(/** @type {any} */ (frames), step).figure);
  equal(figures, [{ data: [[2]] }, { data: [[1]] }, { data: [[2]] }]);
});
