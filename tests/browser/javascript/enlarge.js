// @ts-check

import { enlarge } from "../../../glassformer/components/plotly/enlarge.js";
import { fitTicks, fitTitle } from "../../../glassformer/components/plotly/fit.js";
import { base64, equal, test } from "./harness.js";

/** @returns {{ data: Record<string, any>[], layout: Record<string, any> }} */
const figure = () => ({
  data: [{
    type: "bar", x: [1, 2], width: 0.9, name: "size",
    marker: { size: { dtype: "i1", bdata: base64(Int8Array.of(13, 7)) }, line: { width: [2, 0] } },
    textfont: { size: 11 }, line: { width: 2 }, colorbar: { thickness: 10, xpad: 4, len: 1 },
  }],
  layout: {
    font: { size: 13 }, title: { text: "T", font: { size: 17 }, pad: { t: 10, l: 8 }, x: 0, y: 1 },
    margin: { l: 8, r: 64, t: 46, b: 8 },
    xaxis: { title: { standoff: 8 }, domain: [0, 0.5], range: [0, 9], tickvals: [1, 2], tickfont: { size: 11 } },
    annotations: [{ x: 3, y: 4, xshift: 60, ax: 20, ay: 5, axref: "x" }],
    shapes: [{ type: "rect", x0: 1, line: { width: 2 } }],
    meta: { ticks: { xaxis: { title: "x", labels: [] } }, follow: { rows: [0], starts: [0], marks: [{ line: { width: 1 } }] } },
    legend: { x: 0, y: 1 },
  },
});

test("letters, margins, marks and lines grow, and nothing that is a number of the data", () => {
  const { data: [trace], layout } = figure();
  enlarge({ data: [trace], layout }, 2);
  equal([trace.x, trace.width, trace.colorbar], [[1, 2], 0.9, { thickness: 20, xpad: 8, len: 1 }]);
  equal([trace.marker.size, trace.marker.line.width, trace.line.width], [[26, 14], [4, 0], 4]);
  equal([trace.textfont.size, layout.font.size, layout.title.font.size, layout.xaxis.tickfont.size], [22, 26, 34, 26]);
  equal([layout.margin, layout.title.pad], [{ l: 16, r: 128, t: 92, b: 16 }, { t: 20, l: 16 }]);
  equal([layout.title.y, layout.xaxis.domain, layout.xaxis.range, layout.xaxis.tickvals], [1, [0, 0.5], [0, 9], [1, 2]]);
  equal(layout.annotations[0], { x: 3, y: 4, xshift: 120, ax: 20, ay: 10, axref: "x" });
  equal([layout.shapes[0], layout.meta.follow.marks[0].line.width], [{ type: "rect", x0: 1, line: { width: 4 } }, 2]);
});

test("a figure of the usual size is left as it is", () => {
  const drawn = figure();
  enlarge(drawn, 1);
  equal(drawn, figure());
});

test("larger letters name fewer places, and the axis says which", () => {
  const ticks = { title: "Key", labels: Array.from({ length: 20 }, (_, n) => String(n)) };
  const [plain, large] = [{}, {}];
  equal([fitTicks(plain, ticks, 300, undefined), fitTicks(large, ticks, 300, undefined, 24 / 13)], [1, 2]);
  equal(/** @type {any} */ (large).title.text, "Key (every 2nd labelled)");
});

test("a larger title makes a larger room", () => {
  const [plain, large] = [17, 34].map((size) => ({ title: { text: "A title", font: { size } } }));
  fitTitle(plain, 900, false);
  fitTitle(large, 900, false, 2);
  const top = (/** @type {any} */ layout) => layout.margin.t;
  equal(top(large), 2 * top(plain));
});
