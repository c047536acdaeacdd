// @ts-check

import { leaveRoom, namedInTiles } from "../../../glassformer/components/plotly/edges.js";
import { fitHeads, fitTicks, fitTitle, wrapped } from "../../../glassformer/components/plotly/fit.js";
import { stepMarks } from "../../../glassformer/components/plotly/step-display.js";
import { gridNumber, restoreGrid } from "../../../glassformer/components/plotly/numbers.js";
import { decoded, rawText, shortest } from "../../../glassformer/components/plotly/numbers.js";
import { recolour } from "../../../glassformer/components/plotly/paint.js";
import { tableOf } from "../../../glassformer/components/plotly/table.js";
import { tellStep } from "../../../glassformer/components/common/step.js";
import { speak } from "../../../glassformer/components/common/i18n.js";
import { base64, close, equal, test } from "./harness.js";

/** @import { Grid, Trace } from "../../../glassformer/components/plotly/types.js" */

// ---------------------------------------------------------------- numbers

test("numbers in Plotly's form are read, two-dimensional ones as rows", () => {
  const bdata = base64(Float32Array.of(1, 2, 3, 4, 5, 6));
  equal(decoded({ dtype: "f4", bdata }), [1, 2, 3, 4, 5, 6]);
  equal(decoded({ dtype: "f4", bdata, shape: "2, 3" }), [[1, 2, 3], [4, 5, 6]]);
  equal([decoded([1, 2]), decoded(undefined)], [[1, 2], []]);
});

test("cells that were not sent are NaN, and one number stands for all", () => {
  const there = base64(Uint8Array.of(0b10110000));
  const one = { dtype: "f4", shape: "2, 2", there };
  equal(decoded({ ...one, bdata: base64(Float32Array.of(1, 2, 3)) }), [[1, NaN], [2, 3]]);
  equal(decoded({ ...one, bdata: base64(Float32Array.of(7)) }), [[7, NaN], [7, 7]]);
});

test("half precision and three bytes are read as what they stand for", () => {
  equal(decoded({ dtype: "f2", bdata: base64(Uint16Array.of(0x3c00, 0xc000, 0x3555, 1)) }),
    [1, -2, Math.fround(0.333251953125), 2 ** -24]);
  const bytes = new Uint8Array(Float32Array.of(-1.5).buffer);
  equal(decoded({ dtype: "f3", bdata: base64(bytes.slice(1)) }), [-1.5]);
});

test("a 32-bit number is as short as tells it from its neighbours", () => {
  equal([shortest(Float32Array.of(0.1), 0), shortest([0.1], 0)], [0.1, 0.1]);
  const third = Math.fround(1 / 3);
  equal(Math.fround(shortest(Float32Array.of(third), 0)), third);
});

test("the text behind the markup of a chart is found", () => {
  equal(rawText("\u2068<b>&#60;s&#62;</b>\u2069<br>⟨U+202E⟩"), "<s>; \u202e");
});

// ---------------------------------------------------------------- maps of maps

/** @type {Grid} two layers of two heads, two queries and one key each */
const GRID = {
  codes: base64(Uint8Array.of(250, 0, 125, 255, 254, 50, 1, 250)), tops: [1], least: 0,
  layers: ["L1", "L2"], heads: ["H1", "H2"], queries: ["1: <b>a</b>", "2: <b>b</b>"], keys: ["1: <b>x</b>"],
};

test("a byte stands for a share of its scale", () => {
  equal([125, 250, 254, 255].map((code) => gridNumber(code, 0.5, 0)), [0.25, 0.5, null, null]);
  close(gridNumber(125, 1, 1e-4) ?? NaN, 1e-2);
  equal([0, 125, 250, 255].map((code) => gridNumber(code, 2, 0, true)), [-2, 0, 2, null]);
});

test("a map of maps gets its numbers, its names and its closed cells", () => {
  /** @type {Trace} */
  const weights = { meta: "grid" };
  /** @type {Trace} */
  const closed = { meta: "grid-closed" };
  /** @type {Trace} */
  const other = { meta: "cells" };
  for (const trace of [weights, closed, other]) restoreGrid(trace, GRID);
  equal(other, { meta: "cells" });
  equal(weights.z, [[1, 0], [0.5, null], [null, 0.2], [1 / 250, 1]]);
  equal(closed.z, [[null, null], [null, 0], [null, null], [null, null]]);
  equal(weights.customdata[3][1], [["L2", "2: <b>b</b>"], ["H2", "1: <b>x</b>"], 1]);
});

test("maps with scales of their own have each its top", () => {
  /** @type {Trace} */
  const trace = { meta: "grid" };
  restoreGrid(trace, { ...GRID, tops: [0.1, 0.2, 0.3, 0.4] });
  /** @type {[unknown, unknown, number | null][][]} */
  const named = trace.customdata;
  const numbers = named.map((row) => row.map((cell) => cell[2]));
  equal(numbers, [[0.1, 0], [0.05, null], [null, 0.2 * 0.4], [0.3 / 250, 0.4]]);
});

// ---------------------------------------------------------------- tables

const MAP = {
  data: [
    { z: [[0.5, NaN], [0.25, 0.75]], name: "weight" },
    { z: [[null, 0], [null, null]], hovertemplate: "<i>comes later</i><extra></extra>" },
    { z: [[1]], hoverinfo: "skip" },
  ],
  layout: { meta: { ticks: {
    xaxis: { title: "Key", labels: ["a", "b…"], whole: { 1: "bbb" } }, yaxis: { title: "Query", labels: ["c", "d"] },
  } } },
};

test("a map is one row a cell, with reasons instead of numbers, and columns in the language of the page", () => {
  speak({});
  const { columns, rows } = tableOf(MAP);
  equal(columns, ["Query number", "Query", "Key number", "Key", "weight", "note"]);
  equal(rows, [[1, "c", 1, "a", 0.5, ""], [1, "c", 2, "bbb", null, "comes later"],
    [2, "d", 1, "a", 0.25, ""], [2, "d", 2, "bbb", 0.75, ""]]);
  speak({ lang: "de", words: { "{title} number": "{title} Nr.", note: "Hinweis" } });
  equal(tableOf(MAP).columns, ["Query Nr.", "Query", "Key Nr.", "Key", "weight", "Hinweis"]);
  speak({});
});

test("several traces are one table, told apart by name, and a figure may say its table itself", () => {
  const data = [{ x: [1, 2], y: [3, 4], name: "one" }, { x: [1], y: [5] }];
  const layout = { xaxis: { title: { text: "Epoch" } }, yaxis: { title: { text: "Loss" } } };
  equal(tableOf({ data, layout }),
    { columns: ["series", "Epoch", "Loss"], rows: [["one", 1, 3], ["one", 2, 4], ["series 2", 1, 5]] });
  const table = { columns: ["a"], rows: [[1]] };
  equal(tableOf({ data: [{ x: [1] }], layout: { meta: { table } } }), table);
});

// ---------------------------------------------------------------- fitting, marking, painting

test("a title is broken at spaces, an escaped letter being one", () => {
  equal(wrapped("aaaa bbbb cccc dddd", 0, 17), ["aaaa bbbb", "cccc dddd"]);
  equal(wrapped("&#60;&#60;&#60; bbbb cccc", 0, 17), ["&#60;&#60;&#60; bbbb", "cccc"]);
  equal(wrapped("one", 500, 17), ["one"]);
});

test("a title in Chinese is broken between characters, but not before a mark that closes or behind one that opens", () => {
  const title = "第 1 步看源句的哪里：全部 3 层 × 4 个头的平均";
  const lines = wrapped(title, 260, 17);
  equal(lines.every((line) => line.length > 0 && line.trim() === line), true);
  equal(lines.join("").replaceAll(" ", ""), title.replaceAll(" ", ""));
  equal([lines.length, lines.every((line) => line.length <= 20)], [2, true]);
  equal(wrapped("一二三四五六，七八", 0, 17), ["一二三四五", "六，七八"]);
  equal(wrapped("一二三四五（六）七八", 0, 17), ["一二三四五", "（六）七八"]);
  equal(wrapped("一二三四 softmax", 0, 17), ["一二三四", "softmax"]);
  equal(wrapped("一二三四五六七", 0, 17), ["一二三四", "五六七"]);  // none alone
});

test("a title of several lines makes its room, and leaves its legend some", () => {
  const layout = { title: { text: "many words ".repeat(12).trim(), font: { size: 17 } } };
  fitTitle(layout, 320, false);
  const lines = layout.title.text.split("<br>").length;
  equal([lines > 2, /** @type {any} */ (layout).margin.t], [true, 26 + lines * 17 * 1.3]);
  const tops = [true, false].map((showlegend) => {
    const other = /** @type {any} */ (
      { showlegend, margin: { t: 96 }, title: { text: "one two three four five six", font: { size: 20 } } });
    fitTitle(other, 150, false);
    return other.margin.t;
  });
  equal(tops[0] > 96 + 20, true);
  equal(tops[1] < tops[0], true);
});

test("the head of a band is broken where it is wider than the chart, other notes are not", () => {
  const text = "some words that head a band of their own";
  const layout = { margin: { l: 60, r: 20 }, annotations: [{ x: 0, xref: "paper", yref: "y2 domain", text }, { text }] };
  fitHeads(layout, 300);
  equal(layout.annotations.map((note) => note.text.split("<br>").length), [2, 1]);
  const bare = {};
  fitHeads(bare, 300);
  equal(bare, {});
});

test("tiles are all named where there is room, else one of them, and never without the place that is pointed at", () => {
  equal(namedInTiles(3, 2, 13, undefined), [0, 1, 2, 3, 4, 5]);
  equal(namedInTiles(3, 2, 13, 4), [0, 1, 2, 3, 4, 5]);
  equal(namedInTiles(4, 3, 6, undefined), [0, 3]);
  equal(namedInTiles(4, 3, 6, 9), [9]);
  equal(namedInTiles(4, 3, 7, 10), [8, 10]);
  for (let at = 0; at < 40; at += 1) {
    const places = namedInTiles(20, 2, 3, at);
    equal(places.includes(at) && places.every((place, i) => !i || (place - places[i - 1]) * 3 >= 13), true);
    equal(new Set(places.map((place) => Math.floor(place / 20))).size, 1);
  }
});

test("names of tiles have room of their own, but not more than a fifth, as a whole number", () => {
  const grid = { queries: ["1: <b>ab</b>"], keys: ["1: <b>我喜欢</b>"] };
  const layout = /** @type {any} */ ({ width: 500, height: 400, meta: { grid } });
  leaveRoom(layout);
  const [left, below] = [layout.yaxis, layout.xaxis].map((axis) => axis.ticklabelstandoff);
  equal([left, below].map(Number.isInteger), [true, true]);
  equal(left >= 5 * 6.8 && left < 60 && below > 6 * 6.8 && below < 80, true);
  grid.queries.push("x".repeat(90));
  leaveRoom(layout);
  equal(layout.yaxis.ticklabelstandoff, 114);
  const other = /** @type {any} */ ({ width: 500, height: 400, meta: {} });
  leaveRoom(other);
  equal(other.yaxis, undefined);
});

test("as many pieces are named as fit, and the axis says which", () => {
  const ticks = { title: "Key", labels: Array.from("abcdefghij") };
  /** @type {Record<string, any>} */
  const axis = {};
  const titles = [150, 75, 50, 38].map((length) => [
    fitTicks(axis, ticks, length, undefined), axis.title.text.replace("<br>", " ")]);
  equal(titles, [[1, "Key"], [2, "Key (1 in 2 labelled)"], [4, "Key (1 in 4 labelled)"],
    [5, "Key (1 in 5 labelled)"]]);
  equal(axis.ticktext, ["a", "f"]);
  equal(fitTicks(axis, ticks, 75, [1.5, 6.5]), 1);  // zoomed in, more of them fit
  equal(fitTicks(axis, ticks, 140, undefined), 1);  // rows as thin as a chart that is fitted to a room makes them
});

test("the mark stands at the row of the step, in every map", () => {
  const follow = { rows: [null, 4], starts: [0, 10], marks: [{ type: "rect" }, { type: "path" }] };
  tellStep(1);
  equal(stepMarks(follow), [{ type: "rect", y0: 3.5, y1: 4.5 }, { type: "path", yanchor: 4 },
    { type: "rect", y0: 13.5, y1: 14.5 }, { type: "path", yanchor: 14 }]);
  for (const step of [0, 2, null]) {
    tellStep(step);
    equal(stepMarks(follow), []);
  }
  tellStep(1, "b-stepper");  // another run's step
  equal([stepMarks(follow), stepMarks(follow, "b-map").length], [[], 4]);
  tellStep(null, "b-stepper");
});

test("colours are swapped wherever they stand, and long data are left alone", () => {
  const data = Array.from({ length: 100 }, (_, place) => place);
  const found = recolour({ line: { color: "#111111" }, list: ["#111111", "red"], data }, { "#111111": "#eeeeee" });
  equal([found.line.color, found.list, found.data === data], ["#eeeeee", ["#eeeeee", "red"], true]);
});
