// @ts-check

import { makeFoot } from "../../../glassformer/components/common/picture-footer.js";
import { equal, test } from "./harness.js";

/** A foot on the page, what was done, and its parts. */
function footed() {
  /** @type {string[]} */
  const done = [];
  const foot = makeFoot({
    open: () => done.push("open"), data: () => done.push("data"), picture: (format) => done.push(format),
  });
  document.body.append(foot.foot);
  const [more] = foot.foot.querySelectorAll(".gf-more"), [told] = foot.foot.querySelectorAll(".gf-told");
  if (!(more instanceof HTMLButtonElement) || !(told instanceof HTMLElement)) throw new Error("no text");
  return { done, foot, more, told, menu: /** @type {HTMLElement} */ (foot.foot.querySelector(".gf-menu")) };
}

test("how to read a picture is one button at rest, and nothing offers it where there is nothing", () => {
  const { foot, more, told } = footed();
  foot.tell("Each row is a query. Click it.");
  equal([told.innerText, more.getAttribute("aria-expanded")], ["How to read this", "false"]);
  more.click();
  equal([/Click it\.$/u.test(told.innerText), more.getAttribute("aria-expanded")], [true, "true"]);
  more.click();
  foot.tell("", true);
  equal([told.innerText, told.hidden], ["How to read this", false]);
  foot.tell("");
  equal(told.hidden, true);
  foot.foot.remove();
});

/** @param {HTMLElement} menu */
function toggled(menu) {
  return new Promise((resolve) => { menu.addEventListener("toggle", resolve, { once: true }); });
}

test("a menu opens on its first entry, moves by arrows, and closes with what was chosen", async () => {
  const { foot, menu, done } = footed();
  equal([foot.button.getAttribute("aria-label"), menu.matches(":popover-open")], ["Chart: expand, download…", false]);
  let opened = toggled(menu);
  foot.button.click();
  await opened;
  const entries = Array.from(menu.querySelectorAll("button"), (entry) => entry.textContent);
  equal(document.activeElement?.textContent, entries[0]);
  /** @param {string} key */
  const press = (key) => document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  press("ArrowUp");
  equal(document.activeElement?.textContent, entries[3]);
  press("ArrowDown");
  press("ArrowDown");
  equal(document.activeElement?.textContent, entries[1]);
  opened = toggled(menu);
  if (document.activeElement instanceof HTMLElement) document.activeElement.click();
  await opened;
  equal([done, menu.matches(":popover-open"), document.activeElement === foot.button], [["data"], false, true]);
  foot.foot.remove();
});
