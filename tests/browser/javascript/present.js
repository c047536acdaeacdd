// @ts-check

import { make } from "../../../glassformer/components/common/dom.js";
import { isPresenting, largeType, present, presentedAddress, typeScale } from "../../../glassformer/components/common/present.js";
import { followStatus, moveStep, offerStepper } from "../../../glassformer/components/common/step.js";
import { endsIt, togglesIt } from "../../../glassformer/extensions/rooms/components/present/view.js";
import { close, equal, test, wait } from "./harness.js";

/**
 * What a rule says of a key pressed in an element.
 * @param {HTMLElement} at
 * @param {string} key
 * @param {(event: KeyboardEvent) => boolean} rule
 * @param {KeyboardEventInit} [more]
 */
function pressed(at, key, rule, more = {}) {
  let said = false;
  const listen = (/** @type {Event} */ event) => { said = rule(/** @type {KeyboardEvent} */ (event)); };
  document.body.append(at);
  window.addEventListener("keydown", listen);
  at.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true, ...more }));
  window.removeEventListener("keydown", listen);
  at.remove();
  return said;
}

/** @param {string} type */
const input = (type) => Object.assign(make("input"), { type });

test("large letters have 24 pixels at 1920 × 1080 and are never smaller than the usual", () => {
  equal([largeType(1920, 1080), largeType(1920, 950), largeType(3840, 2160)], [24, 24, 48]);
  for (const width of [390, 800, 1024, 1280, 1600]) equal(largeType(width, 720) > 13, true);
  equal(largeType(1280, 720), 18);
});

test("the address says that the app is presented, and keeps all else", () => {
  const address = "http://127.0.0.1/attention?model=en-fr&src=a+b&lang=zh&step=3";
  const presented = presentedAddress(address, true);
  equal(presented, `${address}&present=1`);
  equal([presentedAddress(presented, true), presentedAddress(presented, false)], [presented, address]);
  equal(presentedAddress(address, false), address);
});

test("a presentation sets larger letters, says so and ends without a trace", () => {
  const before = location.href;
  present(true);
  equal([isPresenting(), location.search, document.documentElement.style.fontSize !== ""], [true, "?present=1", true]);
  close(typeScale(false), typeScale(true));
  present(false);
  equal([isPresenting(), location.href, document.documentElement.style.fontSize], [false, before, ""]);
  equal([typeScale(false), typeScale(true) > 1], [1, true]);
});

test("the key is free on a page, a button or a choice, and not where letters are typed", () => {
  for (const at of [make("div"), make("button"), input("radio"), input("range"), input("checkbox")]) {
    equal([pressed(at, "p", togglesIt), pressed(at, "P", togglesIt)], [true, true]);
  }
  const editable = make("div");
  editable.contentEditable = "true";
  for (const at of [input("text"), input("number"), input("search"), make("textarea"), make("select"), editable]) {
    equal([pressed(at, "p", togglesIt), pressed(at, "Escape", endsIt)], [false, false]);
  }
});

test("the key is not taken from a browser's shortcut, an input method or a key held down", () => {
  for (const more of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }, { isComposing: true }, { repeat: true }]) {
    equal(pressed(make("div"), "p", togglesIt, more), false);
  }
  equal(pressed(make("div"), "q", togglesIt), false);
});

test("escape ends it only where nothing is open that it would close", () => {
  equal(pressed(make("div"), "Escape", endsIt), true);
  equal(pressed(make("dialog"), "Escape", endsIt), false);
  const open = make("div", "", "open");
  open.setAttribute("role", "dialog");
  document.body.append(open);
  equal(pressed(make("div"), "Escape", endsIt), false);
  open.remove();
});

test("what a stepper says is shown where it is followed, as it changes, until it is not", async () => {
  const [said, other, shown] = [make("p", "", "Step 1"), make("p", "", "of b"), make("p")];
  const gone = new AbortController();
  offerStepper({ name: () => "stepper", said, move: () => {} }, gone.signal);
  offerStepper({ name: () => "b-stepper", said: other, move: () => {} }, gone.signal);
  const end = followStatus("map", shown);
  equal(shown.textContent, "Step 1");
  said.replaceChildren(make("b", "", "Step 2"), " reads");
  await wait();
  equal([shown.textContent, shown.querySelector("b")?.textContent], ["Step 2 reads", "Step 2"]);
  followStatus("b-map", shown)();
  equal(shown.textContent, "of b");
  end();
  gone.abort();
  followStatus("map", shown)();
  equal(shown.textContent, "");
});

test("only the page's own stepper is moved from outside, and none that is gone", () => {
  /** @type {unknown[]} */
  const moves = [];
  const gone = new AbortController();
  for (const name of ["stepper", "b-stepper"]) {
    offerStepper({ name: () => name, said: make("p"), move: (...told) => moves.push([name, ...told]) }, gone.signal);
  }
  equal([moveStep(3, 50), moves], [true, [["stepper", 3, 50, false]]]);
  gone.abort();
  equal([moveStep(4, 0), moves.length], [false, 1]);
});
