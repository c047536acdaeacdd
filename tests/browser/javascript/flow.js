// @ts-check
// The flow view as Streamlit calls it, and the numbers, places and picture of its lines.

import { KEPT } from "../../../glassformer/components/flow/choices.js";
import { placeRows, laneOf, rowCentre, scene } from "../../../glassformer/components/flow/places.js";
import {
  chooseLines, decode, formatWeight, isOpen, meansOf, MOST_LINES, weightOf,
} from "../../../glassformer/components/flow/weights.js";
import { component as flow } from "../../../glassformer/components/flow/view.js";
import { tellStep } from "../../../glassformer/components/common/step.js";
import { bitsOf, unpackSteps } from "../../../glassformer/components/common/unpack.js";
import { base64, close, equal, focused, placed, press, saving, test } from "./harness.js";

/** @import { FlowPayload } from "../../../glassformer/components/common/payloads.js" */
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
  const about = scene({ ...seen, focus: { side: "query", index: 1 } }, 400, rows);
  equal(about.blocks.length, 4);  // two open keys, two heads
  equal(about.lines.every((line) => line.x0 === 5 && line.x1 < 395), true);
});

// ---------------------------------------------------------------- the whole view

const HEADS = [0, 1, 2, 3], QUERIES = [0, 1, 2, 3, 4], KEYS = [0, 1, 2, 3, 4, 5];
const HOSTILE = ["<img src=x onerror=alert(1)>", "<b>x</b>", "</s>", "$x^2$", "\u202eevil", "=1+1"];
const CELLS = HEADS.flatMap((head) => QUERIES.flatMap((query) => KEYS.map((key) => ({ head, query, key }))))
  .filter(({ query, key }) => key <= query + 1)
  .map((cell) => ({ ...cell, step: (83 * cell.head + 47 * cell.query + 29 * cell.key * cell.key) % 256 }));
const OPEN = QUERIES.flatMap((query) => KEYS.map((key) => Number(key <= query + 1)));
/** @type {FlowPayload} */
const LINES = {
  sentence: "s", kind: "Kind", layer: "layer 1", queries: QUERIES.map((n) => `q${n}`), keys: HOSTILE, query_axis: "Q",
  key_axis: "K", query_side: "target", key_side: "source", row_of_step: QUERIES, heads: HEADS.length, open: base64(
    Uint8Array.from({ length: 4 }, (_, byte) => parseInt(OPEN.slice(8 * byte, 8 * byte + 8).join("").padEnd(8, "0"), 2))),
  weights: { levels: 255, count: CELLS.length, filled: null, steps: base64(Uint8Array.from(CELLS, ({ step }) => step)) },
  colours: [["#111111", "#eeeeee"]], together: false, group: 1, output: { query: null, key: null }, shown: [],
  following: false, pin: null, reports: true, heard: null, name: "flow", file: "flow", table: "", alt: "Lines.", caption: "",
};

/** How many lines there are. @param {{ heads?: number[], query?: number, key?: number, cut?: number }} [of] */
const count = ({ heads = HEADS, query, key, cut = 0.05 } = {}) => CELLS.filter((cell) => heads.includes(cell.head)
  && (query ?? cell.query) === cell.query && (key ?? cell.key) === cell.key && cell.step > 0 && cell.step >= 255 * cut).length;

/** The view, its tokens, and what it shows; what was chosen before is forgotten. */
function stage(background = "#ffffff") {
  Object.assign(KEPT, { threshold: 0.05, hidden: [], shown: "" });
  tellStep(null);
  const made = placed(flow, LINES, background);
  const token = (/** @type {string} */ side, /** @type {number} */ at) => made.all(`.gf-flow-${side} .gf-flow-token`)[at];
  const point = (/** @type {string} */ side, /** @type {number} */ at) => token(side, at).dispatchEvent(
    new PointerEvent("pointerover", { pointerType: "mouse", bubbles: true, composed: true }));
  const away = (/** @type {string} */ side) => made.one(`.gf-flow-${side}`).dispatchEvent(new PointerEvent("pointerleave"));
  const slide = (/** @type {number} */ cut) => {
    made.one(".gf-flow-slider").value = String(cut);
    made.one(".gf-flow-slider").dispatchEvent(new Event("input"));
  };
  const { dataset } = made.one(".gf-flow");
  const seen = () => [dataset.focus, dataset.pinned, dataset.heads, Number(dataset.lines)];
  const said = () => made.texts(".gf-flow-readout")[0];
  return { ...made, token, point, away, slide, seen, said };
}
const EVERY = "1 2 3 4";

test("lines are those of the piece that is pointed at, of what is pinned and heavy enough; pointing tells nobody", async () => {
  const { told, one, token, point, away, slide, seen, said, leave } = stage();
  equal(seen(), ["", "", EVERY, count()]);
  equal(one(".gf-flow-count").textContent.startsWith(`${count()} of ${CELLS.length} lines are drawn`), true);
  const canvas = one("canvas"), pixels = () => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  equal(pixels().some(Boolean), true);
  point("key", 3);
  equal(seen(), ["key 3", "", EVERY, count({ key: 3 })]);
  point("query", 4);
  const best = CELLS.filter(({ query }) => query === 4).reduce((most, cell) => (cell.step > most.step ? cell : most));
  equal(said()?.startsWith(`q4 looks most athead ${best.head + 1}${HOSTILE[best.key]}${(best.step / 255).toFixed(3)}`), true);
  away("query");
  equal([seen(), told], [["", "", EVERY, count()], []]);
  slide(0.3);
  equal(seen()[3], count({ cut: 0.3 }));
  token("query", 2).click();
  equal(seen(), ["query 2", "query 2", EVERY, count({ query: 2, cut: 0.3 })]);
  token("query", 2).click();
  equal(seen(), ["", "", EVERY, count({ cut: 0.3 })]);
  equal(told.map(([, { side, index }]) => [side, index]), [["query", 2], [null, null]]);
  one(".gf-flow-none").click();
  equal([seen()[3], pixels().some(Boolean)], [0, false]);
  await leave();
});

test("of more lines than can be told apart the strongest are drawn, and the view says so", async () => {
  const { show, one, texts, leave } = stage(), side = Array.from({ length: 100 }, String);
  const steps = base64(Uint16Array.from({ length: 10_000 }, (_, place) => 1 + place));
  show({ queries: side, keys: side, heads: 1, open: null, weights: { levels: 65535, count: 10_000, filled: null, steps } });
  one(".gf-flow-slider").value = "0";
  one(".gf-flow-slider").dispatchEvent(new Event("input"));
  equal(one(".gf-flow").dataset.lines, String(MOST_LINES));
  equal(texts(".gf-flow-count")[0]?.includes("More than 6,000 lines cannot be distinguished"), true);
  const { scrollHeight, clientHeight } = one(".gf-flow-scroll");
  equal([scrollHeight > clientHeight, one("canvas").height < 2000], [true, true]);
  await leave();
});

test("heads are hidden, shown alone, all or none, and Python is told of some", async () => {
  const { told, all, one, seen, leave } = stage();
  const chips = all(".gf-flow-chip"), doubled = new MouseEvent("dblclick", { bubbles: true });
  const acts = /** @type {[() => void, string, number[]][]} */ ([
    [() => chips[1].click(), "1 3 4", [0, 2, 3]], [() => chips[2].dispatchEvent(doubled), "3", [2]],
    [() => chips[0].dispatchEvent(new MouseEvent("click", { shiftKey: true })), "1", [0]],
    [() => one(".gf-flow-none").click(), "", []], [() => one(".gf-flow-all").click(), EVERY, []],
  ]);
  for (const [act, heads, some] of acts) {
    act();
    const shown = HEADS.filter((head) => heads.includes(String(head + 1)));
    equal([seen(), told.at(-1)?.[1].shown], [["", "", heads, count({ heads: shown })], some]);
  }
  await leave();
});

test("a masked piece says so, and pieces are shown letter by letter", async () => {
  const { told, texts, token, point, said, one, leave } = stage();
  equal(texts(".gf-flow-key .gf-flow-piece"), HOSTILE.map((piece) => piece.replace("\u202e", "⟨U+202E⟩")));
  equal(one(".gf-flow").querySelectorAll("img, b, s, script").length, 0);
  point("query", 2);
  const closed = KEYS.map((key) => token("key", key).lastElementChild.textContent === "masked");
  equal([closed, token("key", 0).title], [KEYS.map((key) => key > 3), HOSTILE[0]]);
  token("query", 2).click();
  point("key", 5);
  equal([said(), told.length], ["q2 cannot look at =1+1It is masked.", 1]);
  await leave();
});

test("a choice outlives a step and new data, and Python may make another", async () => {
  const { told, show, all, token, one, seen, texts, leave } = stage();
  tellStep(1);
  token("query", 3).click();
  all(".gf-flow-chip")[1].click();
  const chosen = [seen(), texts(".gf-flow-now bdi")];
  tellStep(4);
  equal(texts(".gf-flow-now bdi"), ["q4"]);
  show({ queries: LINES.queries.slice(), heard: null });
  equal([seen(), texts(".gf-flow-now bdi")], [chosen[0], ["q4"]]);
  const heard = () => told.at(-1)?.[1].stamp;
  show({ pin: { side: "key", index: 2 }, shown: [0, 2, 3], heard: heard() });
  equal(seen().slice(1, 3), ["key 2", "1 3 4"]);
  show({ pin: { side: "key", index: 2 }, shown: [2], heard: heard() });
  equal(seen().slice(1, 3), ["key 2", "3"]);
  one(".gf-flow-follow").click();
  equal([seen()[1], told.at(-1)?.[1].following], ["query 4", true]);
  tellStep(2);
  equal(seen()[1], "query 2");
  tellStep(null);
  await leave();
});

test("keys move over the pieces and pin one, and the piece that is pointed at keeps the focus in new data", async () => {
  const { told, show, token, leave } = stage();
  const at = () => focused().querySelector("bdi").textContent;
  token("query", 0).focus();
  const moved = ["ArrowDown", "ArrowRight", "Home", "End", "ArrowLeft", "ArrowUp"].map((key) => [press(key), at()][1]);
  equal([moved, told], [["q1", "<b>x</b>", HOSTILE[0], "=1+1", "q4", "q3"], []]);
  press("Enter");
  equal(told.map(([name, { side, index, following }]) => [name, side, index, following]), [["pin", "query", 3, false]]);
  press("Escape");
  equal([told.length, told[1][1].side], [2, null]);
  show({ queries: ["a", "b", "c", "new", "e"] });
  equal(at(), "new");
  await leave();
});

test("a picture is saved with the lines that are drawn, and it has the colours of the theme", async () => {
  for (const [background, theme, colour] of [["#ffffff", "light", "#111111"], ["#101418", "dark", "#eeeeee"]]) {
    const { one, all, token, leave } = stage(background);
    equal([one(".gf-root").dataset.theme, one(".gf-flow-chip").style.getPropertyValue("--head")], [theme, colour]);
    token("query", 2).click();
    const entries = all(".gf-menu-entry"), svg = await (await saving(() => entries[2].click())).text();
    const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
    equal([parsed.querySelectorAll("path").length, parsed.querySelectorAll("img, b, s, script").length], [count({ query: 2 }), 0]);
    const written = Array.from(parsed.querySelectorAll("text"), (text) => text.textContent).slice(0, -1);  // the last is the note
    const heads = HEADS.map((head) => `head ${head + 1}`), keys = HOSTILE.map((piece) => piece.replace("\u202e", "⟨U+202E⟩"));
    equal(written, ["Kind, layer 1", ...heads, "Q", "K", ...LINES.queries, ...keys]);
    const png = await saving(() => entries[3].click());
    equal([png.type, png.size > 5000], ["image/png", true]);
    await leave();
  }
});
