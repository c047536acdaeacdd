// @ts-check
// What is said of a moment next to a picture.

import { make } from "../../../glassformer/components/common/dom.js";
import { makeUnder } from "../../../glassformer/components/common/picture-footer.js";
import { equal, test } from "./harness.js";

/** @import { Said } from "../../../glassformer/components/common/payloads.js" */

/** @param {string} n @returns {Said} */
const said = (n) => ({
  above: `Step <b>${n}</b>`, below: "", pale: false, beside: false,
  table: { columns: ["Piece", "Sum"], rows: [["a", `−${n}.5`], ["1a", ""]], fold: `Step ${n} weighed`, note: "" },
});

/** A picture on the page, and what stands next to it. */
function pictured() {
  const [home, part] = [make("div"), make("p")];
  document.body.append(home);
  const under = makeUnder(home, part, {
    className: "x", name: () => "", changed: () => {}, data: () => {}, picture: () => {},
  });
  const lines = () => Array.from(home.querySelectorAll(".gf-lines"), (line) => line.textContent);
  return { home, part, under, lines };
}

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
  const { home, under } = pictured();
  under.write(said("1"));
  const fold = /** @type {HTMLDetailsElement} */ (home.querySelector("details"));
  fold.open = true;
  fold.querySelector("summary")?.focus();
  under.write(said("2"));
  equal([fold.open, document.activeElement === fold.firstElementChild], [true, true]);
  under.expand.click();
  equal(Array.from(under.dialog.children).filter((child) => child.className.startsWith("gf-lines")).length, 2);
  const closed = new Promise((resolve) => { under.dialog.addEventListener("close", resolve); });
  under.dialog.close();
  await closed;
  equal([fold.open, under.dialog.contains(fold), home.contains(fold)], [true, false, true]);
  home.remove();
});
