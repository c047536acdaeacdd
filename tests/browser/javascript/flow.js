// @ts-check

import { placeRows, laneOf, rowCentre, scene } from "../../../glassformer/components/flow/places.js";
import { svgPicture } from "../../../glassformer/components/flow/svg.js";
import {
  chooseLines, decode, formatWeight, isOpen, meansOf, MOST_LINES, weightOf,
} from "../../../glassformer/components/flow/weights.js";
import { bitsOf, unpackSteps } from "../../../glassformer/components/common/unpack.js";
import { base64, close, equal, test } from "./harness.js";

/** @import { Model } from "../../../glassformer/components/flow/types.js" */

/** Two heads over two queries and three keys; the second query may not look at the third key. */
const MODEL = decode({
  queries: ["a", "b"], keys: ["x", "y", "z"], heads: 2,
  weights: { levels: 65535, count: 10, filled: null,
    steps: base64(Uint16Array.of(65535, 0, 0, 32768, 32767, 13107, 26214, 26214, 0, 65535)) },
  open: base64(Uint8Array.of(0b11111000)),
});

const pair = (/** @type {number} */ query, /** @type {number} */ key) => ({ query, key });

// ---------------------------------------------------------------- weights

test("steps left out are 0", () => {
  const filled = base64(Uint8Array.of(0b01000001, 0b10000000));
  const packed = { levels: 255, count: 9, steps: base64(Uint8Array.of(7, 8, 9)), filled };
  equal(unpackSteps(packed), [0, 7, 0, 0, 0, 0, 0, 8, 9]);
  equal(unpackSteps({ levels: 65535, count: 2, steps: base64(Uint16Array.of(1, 65535)), filled: null }), [1, 65535]);
});

test("without bits every place passes", () => {
  equal([bitsOf(null)(5), bitsOf("")(5), bitsOf(base64(Uint8Array.of(4)))(5), bitsOf(base64(Uint8Array.of(4)))(4)],
    [true, true, true, false]);
});

test("weights stand where they are open", () => {
  equal([isOpen(MODEL, pair(0, 2)), isOpen(MODEL, pair(1, 2))], [true, false]);
  equal([weightOf(MODEL, 0, pair(0, 0)), weightOf(MODEL, 1, pair(1, 1)), weightOf(MODEL, 0, pair(1, 2))], [1, 1, 0]);
  close(weightOf(MODEL, 1, pair(0, 1)), 0.4, 1e-5);
});

test("a weight is never written as 0.00, nor as 1.00 when it is less", () => {
  equal([1, 0.9999, 0.25, 0.004, 0].map(formatWeight), ["1.00", ">0.99", "0.25", "<0.01", "<0.01"]);
});

test("lines above the threshold are drawn, the weakest first", () => {
  const { lines, all, crowded, cut, share } = chooseLines(MODEL, [0, 1], 0.3, null);
  equal(lines.map(({ head, query, key }) => [head, query, key]),
    [[1, 0, 1], [1, 0, 2], [0, 1, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]]);
  equal([all, crowded, cut], [10, false, 0.3]);
  close(share, 1 - 0.2 / 4, 1e-4);
});

test("a weight that was sent as 0 has no line", () => {
  equal(chooseLines(MODEL, [0], 0, null).lines.length, 3);
});

test("of one piece only its lines are drawn", () => {
  const found = chooseLines(MODEL, [0, 1], 0, { side: "key", index: 1 });
  equal([found.all, found.lines.every((line) => line.key === 1)], [4, true]);
  equal(chooseLines(MODEL, [0, 1], 0, { side: "query", index: 1 }).all, 4);
  equal(chooseLines(MODEL, [], 0, null).lines, []);
});

test("where too many pass, the strongest are drawn", () => {
  const side = 100;
  const steps = Uint16Array.from({ length: side * side }, (_, place) => 1 + place);
  /** @type {Model} */
  const many = { queries: side, keys: side, heads: 1, cells: side * side, levels: 65535, steps,
    open: new Uint8Array(side * side).fill(1) };
  const { lines, crowded, cut } = chooseLines(many, [0], 0, null);
  equal([lines.length, crowded], [MOST_LINES, true]);
  close(cut, lines[0].weight);
});

test("means are over the shown heads, and none where a piece is masked", () => {
  const found = meansOf(MODEL, [0, 1], { side: "query", index: 1 });
  close(found[1] ?? NaN, (32767 / 65535 + 1) / 2, 1e-6);
  equal([found[2], meansOf(MODEL, [], { side: "query", index: 0 })], [null, [null, null, null]]);
});

// ---------------------------------------------------------------- places

test("the longer column fills the height, the shorter stands in its middle", () => {
  const rows = placeRows(MODEL, 90, 40);
  equal([rows.pitch, rows.height], [30, 90]);
  equal([rowCentre(rows, "key", 0), rowCentre(rows, "key", 2)], [15, 75]);
  equal([rowCentre(rows, "query", 0) + rowCentre(rows, "query", 1), rows.query.pitch], [90, 45]);
  equal([placeRows(MODEL, 9000, 40).pitch, placeRows(MODEL, 1, 40).pitch], [40, 15]);
});

test("heads have lanes of their own, one head has the middle", () => {
  equal(laneOf(0, 1, 30), 0);
  close(laneOf(0, 4, 30), -laneOf(3, 4, 30));
});

test("lines reach the pieces, and blocks stand beside what is looked at", () => {
  const rows = placeRows(MODEL, 90, 40);
  const chosen = chooseLines(MODEL, [0, 1], 0.05, null);
  const seen = { model: MODEL, shown: [0, 1], chosen, focus: null, pair: null };
  const whole = scene(seen, 400, rows);
  equal([whole.blocks.length, whole.lines.every((line) => line.x0 === 5 && line.x1 === 395)], [0, true]);
  const focused = scene({ ...seen, focus: { side: "query", index: 1 } }, 400, rows);
  equal(focused.blocks.length, 4);  // two open keys, two heads
  equal(focused.lines.every((line) => line.x0 === 5 && line.x1 < 395), true);
});

// ---------------------------------------------------------------- a picture

test("a picture holds its lines, and its texts as text", () => {
  const rows = placeRows(MODEL, 90, 40);
  const chosen = chooseLines(MODEL, [0, 1], 0.3, null);
  const look = { colours: ["#111111", "#222222"], faint: "#333333", background: "#ffffff", text: "#000000",
    query: "#000001", key: "#000002", line: 1.6, size: 14 };
  const seen = { model: MODEL, shown: [0, 1], chosen, focus: null, pair: null };
  const svg = svgPicture({
    title: "<b>Title</b>", note: "A note.", axes: { query: "Q", key: "K" },
    texts: { query: ["<s>", "b"], key: ["x", "y", "z"] }, spans: { left: 50, middle: 300, right: 50 }, rows,
    scene: scene(seen, 300, rows), shown: [0, 1], focus: null, look,
  });
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
  equal([parsed.querySelectorAll("path").length, parsed.querySelectorAll("b, s").length], [6, 0]);
  const texts = Array.from(parsed.querySelectorAll("text"), (node) => node.textContent);
  equal(texts, ["<b>Title</b>", "head 1", "head 2", "Q", "K", "<s>", "b", "x", "y", "z", "A note."]);
});
