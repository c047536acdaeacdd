// @ts-check
// The stepper as Streamlit calls it: what is drawn at a step, what keys and clicks do, what Python is told.

import { make } from "../../../glassformer/components/common/dom.js";
import {
  byStep, commonStart, filler, formatProbability, saidProbability, unpacked,
} from "../../../glassformer/components/stepper/numbers.js";
import { component as rest, SETTLE_MS } from "../../../glassformer/components/stepper/settled-step.js";
import { component as stepper } from "../../../glassformer/components/stepper/view.js";
import { base64, comesTo, equal, focused, placed, press, test, wait } from "./harness.js";

/** @import { RestPayload, SentRun, StepperPayload } from "../../../glassformer/components/common/payloads.js" */

const ALL = 12, LAST = ALL - 1;

/**
 * A run of some pieces, whose every step looks at its own source piece alone.
 * @param {string[]} pieces
 * @returns {SentRun}
 */
function runOf(pieces, id = "r") {
  const whole = pieces.map((_, n) => pieces.slice(0, n + 1).join(" "));
  const looks = Uint8Array.from({ length: pieces.length ** 2 }, (_, at) => 255 * Number(at % (pieces.length + 1) === 0));
  return {
    run_id: id, source: pieces.map((piece, n) => ({ piece: `▁${piece}`, id: n })), start_piece: "<s>",
    target: pieces.map((piece, n) => ({ piece: `▁${piece}`, id: n, probability: 0.83 })),
    texts: whole.map((text, n) => [whole[n - 1]?.length ?? 0, text.slice(whole[n - 1]?.length ?? 0)]),
    shading: { levels: 255, count: looks.length, filled: null, steps: base64(looks) },
    shading_label: "", stop_reason: "It ended.", cut: false, still: false,
  };
}

/** @type {StepperPayload} */
const PAYLOAD = {
  name: "stepper", step: 0, step_revision: 4, covered: false, revealed_step: null, compact: false, led: false,
  foretold: true, large: false, chosen: null, choosable: false, asks: true, moves: "",
  run: runOf(Array.from({ length: ALL }, (_, n) => `w${n}`)),
};
const IDENTITY = Array.from({ length: ALL }, (_, n) => n);

/** @param {Partial<StepperPayload>} [change] */
function stage(change = {}) {
  const made = placed(stepper, { ...PAYLOAD, ...change });
  const root = made.one(".gf-stepper");
  root.focus();
  const weights = (/** @type {string} */ side) =>
    made.all(`${side} .gf-chip:not(.gf-start)`).map((chip) => Number(chip.style.getPropertyValue("--weight")));
  const reached = () => made.texts(".gf-text > :not(.gf-coming)").join("");
  return { ...made, root, weights, reached, step: () => Number(root.dataset.step), said: () => made.texts(".gf-caption")[0] };
}

/** @param {HTMLElement} element as a mouse does it, which leaves the focus there */
function click(element) {
  element.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, composed: true }));
  element.focus();
  element.click();
}

test("keys, buttons, slider, words and pieces move it at once, and Python is told once of the step where they rest", async () => {
  const { told, all, one, step, leave } = stage();
  const slide = (/** @type {number} */ to) => {
    one(".gf-slider").value = to;
    one(".gf-slider").dispatchEvent(new Event("input"));
  };
  const word = (/** @type {string} */ text) => all(".gf-word").find((made) => made.textContent.trim() === text).click();
  const moves = /** @type {[() => void, number][]} */ ([
    [() => press("ArrowRight"), 1], [() => press("End"), LAST], [() => press("ArrowRight"), LAST],
    [() => press("ArrowLeft"), LAST - 1], [() => press("Home"), 0], [() => one(".gf-last").click(), LAST],
    [() => one(".gf-back").click(), LAST - 1], [() => one(".gf-first").click(), 0], [() => one(".gf-next").click(), 1],
    [() => slide(3), 2], [() => word("w10"), 10], [() => word("w0"), 0],
    [() => all(".gf-target .gf-chip")[8].click(), 7],  // the first chip is the start piece
  ]);
  equal(moves.map(([act]) => [act(), step()][1]), moves.map(([, there]) => there));
  equal(told, []);
  await comesTo(() => told.length, 1);
  const [[name, { when, ...report }]] = told;
  equal([name, report, when > 0], ["step", { run_id: "r", step_revision: 4, step: 7 }, true]);
  await wait(300);
  equal(told.length, 1);
  await leave();
});

test("each press puts off the report of the one before", async () => {
  const { told, leave } = stage();
  const { setTimeout: later, clearTimeout: never } = window, waiting = /** @type {Map<number, () => void>} */ (new Map());
  Object.assign(window, {
    setTimeout: (/** @type {() => void} */ act, /** @type {number} */ ms) =>
      (ms === SETTLE_MS ? (waiting.set(waiting.size + 1000, act), waiting.size + 999) : later(act, ms)),
    clearTimeout: (/** @type {number} */ timer) => waiting.delete(timer) || never(timer),
  });
  for (const key of ["ArrowRight", "ArrowRight", "ArrowRight"]) press(key);
  Object.assign(window, { setTimeout: later, clearTimeout: never });
  equal(waiting.size, 1);
  for (const act of waiting.values()) act();
  equal(told.map(([, { step }]) => step), [3]);
  await leave();
});

test("a step shows its text, its piece, what it looks at and what it says", async () => {
  const { texts, weights, reached, said, leave } = stage();
  press("ArrowRight");
  equal([reached(), texts(".gf-new"), texts(".gf-now .gf-piece")], ["w0 w1", [" w1"], ["▁w1"]]);
  equal(weights(".gf-source"), IDENTITY.map((n) => Number(n === 1)));
  equal(said(), `Step 2 of ${ALL}: reads ‘▁w0’, predicts ‘▁w1’ (p = 0.83)`);
  press("End");
  equal(said()?.endsWith(". It ended."), true);
  await leave();
});

test("a source piece that is picked says who looks at it, and keys go from piece to piece there", async () => {
  const { all, texts, weights, step, leave } = stage();
  const note = () => texts(".gf-note")[0] ?? "", chips = all(".gf-source .gf-chip");
  click(chips[3]);
  equal(note(), "The output is shaded by its attention to ‘▁w3’, which is strongest at step 4 (1.00)");
  equal(weights(".gf-target"), IDENTITY.map((n) => Number(n === 3)));
  press("ArrowRight");  // a click leaves the focus there, but the arrows are meant for the steps
  equal(step(), 1);
  click(chips[3]);
  equal(note(), "");
  press("Tab");
  focused().blur();
  chips[5].focus();  // by keyboard
  for (const key of ["Home", "ArrowRight", "ArrowRight", "Enter"]) press(key);
  equal([texts(".gf-source .gf-picked"), step()], [["▁w2"], 1]);
  press("Escape");
  equal(texts(".gf-source .gf-picked"), []);
  await leave();
});

test("a guess gives nothing away, and play waits for it", async () => {
  const { all, one, texts, weights, reached, said, step, show, leave } = stage({ covered: true, foretold: false });
  for (const key of ["ArrowRight", "ArrowRight", "ArrowRight"]) press(key);
  const shown = [".gf-target", ".gf-caption"].map((part) => one(part).textContent).join(" ");
  equal([/w3/u.test(shown), shown.includes("w2"), reached()], [false, true, "w0 w1 w2?"]);
  equal(one(".gf-now").textContent.includes("0.83"), false);
  click(all(".gf-source .gf-chip")[10]);
  equal([/\(0\.00\)/u.test(texts(".gf-note")[0] ?? ""), weights(".gf-target")], [true, IDENTITY.map(() => 0)]);
  one(".gf-play").click();
  equal([said()?.endsWith("Playback waits for your guess."), one(".gf-play").ariaLabel], [true, "Play"]);
  show({ covered: true, foretold: false, revealed_step: 3 });
  one(".gf-speed").value = "4";
  one(".gf-speed").dispatchEvent(new Event("change"));
  one(".gf-play").click();
  equal(one(".gf-play").ariaLabel, "Pause");
  await comesTo(() => one(".gf-play").ariaLabel, "Play");
  equal([step(), said()?.endsWith("Playback waits for your guess.")], [4, true]);
  await leave();
});

test("space plays it to its end", async () => {
  const { one, step, leave } = stage({ step: LAST - 2 });
  one(".gf-speed").value = "4";
  one(".gf-speed").dispatchEvent(new Event("change"));
  press(" ");
  equal(one(".gf-play").ariaLabel, "Pause");
  await comesTo(() => [step(), one(".gf-play").ariaLabel], [LAST, "Play"]);
  await leave();
});

test("keys that belong to something else are left alone", async () => {
  const { root, step, leave } = stage();
  const [input, open] = [make("input"), make("dialog")];
  const [slider, grid] = ["slider", "grid"].map((role) => make("div", "", "", { role, tabindex: 0 }));
  const choice = make("input", "", "", { type: "radio" }), group = make("div", "", "", { role: "radiogroup" });
  group.append(choice);
  document.body.append(input, slider, grid, group, open);
  press("Tab");
  for (const at of [input, slider, grid, choice]) {
    at.focus();
    for (const key of ["End", "ArrowRight"]) press(key);
    equal(step(), 0);
  }
  choice.blur();
  click(choice);
  press("ArrowRight");  // a choice that was clicked keeps the focus, but the arrows are meant for the steps
  equal(step(), 1);
  root.focus();
  open.showModal();
  press("ArrowRight");
  press("ArrowRight", { ctrlKey: true });
  equal(step(), 1);
  for (const made of [input, slider, grid, group, open]) made.remove();
  await leave();
});

test("Python's step is taken where it is news, another run begins where Python says, and one without steps says why", async () => {
  const { told, show, texts, step, said, all, leave } = stage();
  const next = all(".gf-next")[0];
  next.focus();
  press("ArrowRight");
  show();
  equal([step(), focused() === next], [1, true]);
  show({ step: 5, step_revision: 5 });
  equal(step(), 5);
  show({ run: runOf(["<b>one</b>", "</s>"], "other") });
  equal([step(), texts(".gf-source bdi"), all("bdi b, bdi s").length], [0, ["▁<b>one</b>", "▁</s>"], 0]);
  show({ run: runOf([], "none") });
  equal([said(), told], ["It ended.", []]);
  press("ArrowRight");
  await leave();
});

test("the source piece that is looked at is in view", async () => {
  const { host, one, step, leave } = stage({ run: runOf(Array.from({ length: 40 }, (_, n) => `rather-long-piece-${n}`)) });
  host.style.cssText += "; display: block; width: 500px";
  const scrolled = [];
  do {
    press("ArrowRight");
    await new Promise(requestAnimationFrame);
    await wait();
    const list = one(".gf-source .gf-pieces"), [frame, place] = [list, list.children[step()]].map((made) => made.getBoundingClientRect());
    equal([step(), place.top >= frame.top - 1 && place.bottom <= frame.bottom + 1], [step(), true]);
    scrolled.push(list.scrollTop + list.scrollLeft);
  } while (step() < 39);
  equal(Math.max(...scrolled) > 0, true);  // else every piece had room
  await leave();
});

test("a step that was left for another address is not told", async () => {
  const { told, leave } = stage();
  press("ArrowRight");
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
  await wait(300);
  equal(told, []);
  await leave();
});

/** Who hears of steps where nothing asks for them. @param {string} name */
const hears = (name) => placed(rest, /** @type {RestPayload} */ ({ name }));

test("where nothing asks for a step, who hears of it draws nothing, and the menu leads there", async () => {
  const menu = make("nav", "st-key-menu");
  menu.append(make("a", "", "", { href: "masks?src=a+b" }), make("a", "", "", { href: "step?step=9" }));
  document.body.append(menu);
  const quiet = hears("stepper"), { told, leave } = stage({ asks: false });
  press("ArrowRight");
  await comesTo(() => quiet.told.length, 1);
  const [[, { when, ...report }]] = quiet.told;
  equal([report, told, when > 0], [{ run_id: "r", step_revision: 4, step: 1 }, [], true]);
  const links = Array.from(menu.querySelectorAll("a"), (link) => link.getAttribute("href"));
  equal(links, ["masks?src=a+b&step=2", "step?step=2"]);
  menu.remove();
  await leave();
  await quiet.leave();
});

test("two steppers go together, the shorter stands at its end, and Python hears of both or moves the other", async () => {
  for (const asks of [false, true]) {
    const [short, long] = [["x", "y", 3], ["y", "x", 6]].map(([name, other, count]) => placed(stepper, {
      ...PAYLOAD, name: `${name}-stepper`, moves: `${other}-stepper`, asks, run: runOf(IDENTITY.slice(0, Number(count)).map(String)),
    }));
    const rests = ["x-stepper", "y-stepper"].map(hears);
    long.one(".gf-last").click();
    equal([short, long].map(({ one }) => one(".gf-stepper").dataset.step), ["2", "5"]);
    const told = () => [...rests, short, long].map((made) => made.told.map(([, { step }]) => step));
    await comesTo(told, asks ? [[], [], [], [5]] : [[2], [5], [], []]);
    for (const made of [short, long, ...rests]) await made.leave();
  }
});

// ---------------------------------------------------------------- numbers and texts

test("a probability is never written as 0.00 or 1.00 when it is neither", () => {
  const texts = [0, 1, 0.0004, 0.004, 0.25, 0.9999].map(formatProbability);
  equal(texts, ["0.00", "1.00", "<0.001", "0.004", "0.25", ">0.99"]);
  equal([0.25, 0.9999, 0.0004].map(saidProbability), ["p = 0.25", "p > 0.99", "p < 0.001"]);
});

test("a filler is as wide as its piece and does not give it away", () => {
  equal([filler("a b"), filler("汤姆"), filler("")], ["n n", "国国", ""]);
});

test("texts are put together from what each step changed, whole letters only, with shading or without", () => {
  const starts = [["ab", "abc"], ["🙂", "🙃"], ["", "x"], ["abc", "ab"]].map(([one, other]) => commonStart(one, other));
  equal(starts, ["ab", "", "", "ab"]);
  const sent = { ...PAYLOAD.run, texts: /** @type {[number, string][]} */ ([[0, "🙂"], [2, " b"], [0, "c"]]) };
  const run = unpacked({ ...sent, shading: { levels: 255, count: 3, filled: null, steps: base64(Uint8Array.of(0, 255, 51)) } });
  equal([run.texts, run.shading?.steps, run.shading?.levels], [["🙂", "🙂 b", "c"], [0, 255, 51], 255]);
  equal(unpacked({ ...sent, shading: null }).shading, null);
});

test("a part of the text is cut into what each step wrote of it", () => {
  const starts = [0, 1, 2, 6, 10];  // the last step writes nothing
  equal(byStep("J'aime", 0, starts.slice(0, 3)), [[0, "J"], [1, "'"], [2, "aime"]]);
  equal(byStep("e thé", 5, starts), [[2, "e"], [3, " thé"]]);
  equal(byStep("abc", 0, [0, 2, 1]), [[0, "a"], [2, "bc"]]);
  equal([byStep("", 3, starts), byStep("abc", 0, [])], [[], []]);
});
