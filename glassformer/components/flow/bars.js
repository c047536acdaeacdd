// @ts-check
// What stands above the lines: heads, the threshold, and following the step.

import { make, makeButton } from "../common/dom.js";
import { say } from "../common/i18n.js";
import { hide, toggleHead } from "./acts.js";
import { everyHead, KEPT } from "./choices.js";
import { update } from "./drawing.js";

/** @import { View } from "./view.js" */

/** @param {View} view */
export function makeBars(view) {
  view.heads.append(make("span", "gf-flow-label", say("Heads")), view.chips,
    makeButton("gf-flow-button gf-flow-all", say("All"), say("Show all heads"), () => hide(view, [])),
    makeButton("gf-flow-button gf-flow-none", say("None"), say("Hide all heads"), () => hide(view, everyHead(view))));
  view.slider.addEventListener("input", () => {
    KEPT.threshold = Number(view.slider.value);
    update(view);
  });
  const threshold = make("label", "gf-flow-threshold");
  threshold.append(make("span", "gf-flow-label", say("Hide below")), view.slider, view.cutText);
  const bars = make("div", "gf-flow-tools");
  bars.append(view.heads, threshold, view.follow);
  return bars;
}

/** @param {View} view */
export function fillHeads(view) {
  const { group } = view.data;
  if (view.chips.childElementCount === view.model.heads && view.chips.dataset.group === String(group)) return;
  view.chips.dataset.group = String(group);
  view.chips.replaceChildren(...everyHead(view).map((head) => {
    const values = { n: head + 1, group: Math.floor(head / group) + 1 };
    const title = group === 1
      ? say("Head {n}: click to hide or show it, double-click (or Shift+Enter) to show only this head", values)
      : say("Head {n}, key-value head {group}: click to hide or show it, double-click (or Shift+Enter) to show only this head",
        values);
    const chip = makeButton("gf-flow-chip", "", title, (event) => toggleHead(view, head, event.shiftKey));
    chip.classList.toggle("gf-flow-next-group", group > 1 && head > 0 && head % group === 0);
    chip.append(make("span", "gf-flow-swatch"), make("span", "", String(head + 1)));
    chip.addEventListener("dblclick", () => toggleHead(view, head, true));
    return chip;
  }));
}
