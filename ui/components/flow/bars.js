// @ts-check
// What stands above the lines: heads, the threshold, and following the step.

import { make, makeButton } from "../common/dom.js";
import { say } from "../common/words.js";
import { hide, toggleFollowing, toggleHead } from "./acts.js";
import { everyHead, KEPT } from "./choices.js";
import { update } from "./drawing.js";

/** @import { View } from "./types.js" */

/**
 * @param {string} className
 * @param {string} text
 * @param {string} title
 * @param {() => void} act
 */
function button(className, text, title, act) {
  return makeButton(`gf-flow-button ${className}`, text, title, act);
}

/** @param {View} view */
export function makeHeads(view) {
  const bar = make("div", "gf-flow-heads");
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", say("Heads shown"));
  view.heads = bar;
  view.chips = make("div", "gf-flow-chips");
  const all = button("gf-flow-all", say("All"), say("Show all heads"), () => hide(view, []));
  const none = button("gf-flow-none", say("None"), say("Hide all heads"), () => hide(view, everyHead(view)));
  bar.append(make("span", "gf-flow-label", say("Heads")), view.chips, all, none);
  return bar;
}

/** @param {View} view */
export function fillHeads(view) {
  const { group } = view.data;
  if (view.chips.childElementCount === view.model.heads && view.chips.dataset.group === String(group)) return;
  view.chips.dataset.group = String(group);
  view.chips.replaceChildren(...everyHead(view).map((head) => {
    const values = { n: head + 1, group: Math.floor(head / group) + 1 };
    const chip = make("button", "gf-flow-chip");
    chip.type = "button";
    chip.title = group === 1
      ? say("Head {n}: click to hide or show it, double-click (or Shift+Enter) to see it alone", values)
      : say("Head {n}, keys and values {group}: click to hide or show it, double-click (or Shift+Enter) to see it alone",
        values);
    chip.classList.toggle("gf-flow-next-group", group > 1 && head > 0 && head % group === 0);
    chip.append(make("span", "gf-flow-swatch"), make("span", "", String(head + 1)));
    chip.addEventListener("click", (event) => toggleHead(view, head, event.shiftKey));
    chip.addEventListener("dblclick", () => toggleHead(view, head, true));
    return chip;
  }));
}

/** @param {View} view */
export function makeThreshold(view) {
  const label = make("label", "gf-flow-threshold");
  view.slider = make("input", "gf-flow-slider");
  Object.assign(view.slider, { type: "range", min: "0", max: "0.5", step: "0.01" });
  view.slider.setAttribute("aria-label", say("Hide lines below this weight"));
  view.cutText = make("span", "gf-flow-cut");
  view.slider.addEventListener("input", () => {
    KEPT.threshold = Number(view.slider.value);
    update(view);
  });
  label.append(make("span", "gf-flow-label", say("Hide below")), view.slider, view.cutText);
  return label;
}

/** @param {View} view */
export function makeFollow(view) {
  const following = say("Pin the row of the current step, at every step");
  view.follow = button("gf-flow-follow", say("Follow the step"), following, () => toggleFollowing(view));
  return view.follow;
}
