// @ts-check

import { makeFoot, shortened } from "../../../glassformer/components/common/picture-footer.js";
import { equal, test } from "./harness.js";

const LONG = "Each row is a query and shares out a weight of 1 over the keys: the stronger a cell, the more it takes.";

test("a sentence stands, and what follows it is for who asks", () => {
  equal(shortened(`${LONG} Click a cell to follow it.`), [LONG, " Click a cell to follow it."]);
  equal(shortened("Short. Also short."), ["Short. Also short.", ""]);
  equal(shortened(LONG), [LONG, ""]);
  equal(shortened(""), ["", ""]);
});

test("a point inside a sentence ends none", () => {
  const cited = "It is 0.5 of what softmax(q·k / √d_head) gives, as Vaswani et al. (2017), section 3.2.1, have it for one head.";
  equal(shortened(`${cited} “So” it is.`), [cited, " “So” it is."]);
});

test("Chinese sentences end without a space", () => {
  const [first, rest] = ["每一行是一个查询，它把总和为 1 的权重分给各个键；一个格子颜色越深，表示这个查询从该键的值里取得越多，也就越看重它的内容。", "点一个格子可以跟着它走。"];
  equal(shortened(first + rest), [first, rest]);
  equal(shortened("短句。也短。"), ["短句。也短。", ""]);
});

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

test("the rest is shown and hidden again, and nothing offers it where there is none", () => {
  const { foot, more, told } = footed();
  foot.tell(`${LONG} Click it.`);
  equal([told.innerText, more.getAttribute("aria-expanded")], [`${LONG} More`, "false"]);
  more.click();
  equal([told.innerText, more.getAttribute("aria-expanded")], [`${LONG} Click it. Less`, "true"]);
  foot.tell("Short.");
  equal([told.hidden, more.hidden], [false, true]);
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
