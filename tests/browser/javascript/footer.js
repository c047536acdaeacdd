// @ts-check
// What stands next to a picture and under it: what is said of a moment, how to read it, the menu, the large view.

import { make } from "../../../glassformer/components/common/dom.js";
import { makeUnder } from "../../../glassformer/components/common/picture-footer.js";
import { largeType } from "../../../glassformer/components/common/present.js";
import { offerStepper } from "../../../glassformer/components/common/step.js";
import { equal, focused, press, test } from "./harness.js";

/** @import { Said } from "../../../glassformer/components/common/payloads.js" */

/** A picture on the page, what stands under it, and what was done with it. */
function pictured() {
  const [home, part] = [make("div"), make("p")], done = /** @type {string[]} */ ([]);
  document.body.append(home);
  const under = makeUnder(home, part, {
    className: "x", name: () => "map", changed: () => done.push("changed"), data: () => done.push("data"),
    picture: (format) => done.push(format),
  });
  const one = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (home.querySelector(selector));
  const lines = () => Array.from(home.querySelectorAll(".gf-lines"), (line) => line.textContent);
  return { home, part, under, one, lines, done };
}

/** The next event of a kind. @param {EventTarget} of @param {string} kind */
const next = (of, kind) => new Promise((resolve) => { of.addEventListener(kind, resolve, { once: true }); });

/** @param {string} n @returns {Said} */
const said = (n) => ({
  above: `Step <b>${n}</b>`, below: "", pale: false, beside: false,
  table: { columns: ["Piece", "Sum"], rows: [["a", `−${n}.5`], ["1a", ""]], fold: `Step ${n} weighed`, note: "" },
});

test("what is said next to a picture is text, above it and below it, and nothing where nothing is said", () => {
  const { home, part, under, lines } = pictured();
  under.write(said("2"));
  equal(lines(), ["Step <b>2</b>", "Step 2 weighedPieceSuma−2.51a"]);
  equal(part.previousElementSibling?.textContent, "Step <b>2</b>");
  equal(Array.from(home.querySelectorAll(".gf-number"), (cell) => cell.textContent), ["Sum", "−2.5", ""]);
  under.write(null);
  equal(lines(), []);
  under.write({ above: "", table: null, below: "Below", pale: true, beside: true });
  equal([lines(), home.classList.contains("gf-has-beside")], [["Below"], true]);
  home.remove();
});

test("what a reader has unfolded stays so at the next step, and goes with its picture into the large view", async () => {
  const { home, under, one } = pictured();
  under.write(said("1"));
  const fold = /** @type {HTMLDetailsElement} */ (one("details"));
  fold.open = true;
  fold.querySelector("summary")?.focus();
  under.write(said("2"));
  equal([fold.open, focused() === fold.firstElementChild], [true, true]);
  under.expand.click();
  equal(Array.from(under.dialog.children).filter((child) => child.className.startsWith("gf-lines")).length, 2);
  const closed = next(under.dialog, "close");
  under.dialog.close();
  await closed;
  equal([fold.open, under.dialog.contains(fold), home.contains(fold)], [true, false, true]);
  home.remove();
});

test("how to read a picture is one button at rest, and nothing offers it where there is nothing", () => {
  const { home, under, one } = pictured();
  const more = one(".gf-more"), told = one(".gf-told");
  under.tell("Each row is a query. Click it.");
  equal([told.innerText, more.getAttribute("aria-expanded")], ["How to read this", "false"]);
  more.click();
  equal([/Click it\.$/u.test(told.innerText), more.getAttribute("aria-expanded")], [true, "true"]);
  more.click();
  under.tell("", true);
  equal([told.innerText, told.hidden], ["How to read this", false]);
  under.tell("");
  equal(told.hidden, true);
  home.remove();
});

test("a menu opens on its first entry, moves by arrows, and closes with what was chosen", async () => {
  const { home, under, one, done } = pictured();
  const menu = one(".gf-menu"), entries = Array.from(menu.querySelectorAll("button"), (entry) => entry.textContent);
  equal([under.button.getAttribute("aria-label"), menu.matches(":popover-open")], ["Chart: expand, download…", false]);
  let toggled = next(menu, "toggle");
  under.button.click();
  await toggled;
  const at = ["", "ArrowUp", "ArrowDown", "ArrowDown"].map((key) => (key && press(key), focused().textContent));
  equal(at, [0, 3, 0, 1].map((n) => entries[n]));
  toggled = next(menu, "toggle");
  focused().click();
  await toggled;
  equal([done, menu.matches(":popover-open"), focused() === under.button], [["data"], false, true]);
  home.remove();
});

test("a picture and its foot move into the large view, which says the step in large letters, and come back with the focus", async () => {
  const { home, part, under: { dialog, foot, button, expand, isLarge }, done } = pictured();
  const gone = new AbortController();
  offerStepper({ name: () => "stepper", said: make("p", "", "Step 4 of 9"), move: () => {} }, gone.signal);
  expand.click();
  equal([isLarge(), part.parentElement === dialog, foot.parentElement === dialog, expand.hidden], [true, true, true, true]);
  equal(dialog.querySelector(".gf-status")?.textContent, "Step 4 of 9");
  equal(dialog.style.getPropertyValue("--gf-rem"), `${largeType(innerWidth, innerHeight)}px`);
  const closed = next(dialog, "close");
  dialog.close();
  await closed;
  equal([part, foot, dialog].map((child) => Array.from(home.children).indexOf(child)), [0, 1, 2]);
  equal([isLarge(), done, home.style.height, expand.hidden], [false, ["changed", "changed"], "", false]);
  equal(focused() === button, true);
  gone.abort();
  home.remove();
});
