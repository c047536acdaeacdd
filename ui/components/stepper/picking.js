// @ts-check
// Has the source answer to clicks and keys: a piece is picked, to see who looks at it.

import { render } from "./drawing.js";
import { isLeftOver } from "./keys.js";
import { canPick } from "./picked.js";

/** @import { View } from "./types.js" */

/**
 * Pick a piece; the one that was picked already is let go. Where Python does something with the choice, it is told.
 * @param {View} view
 * @param {number | null} index
 */
function pick(view, index) {
  if (view.data.choosable) {
    if (index !== null) view.setTriggerValue("chosen", index);
    return;
  }
  view.picked = index === view.picked ? null : index;
  render(view);
}

/**
 * Have the source answer to clicks and keys. It is one stop of the Tab key; arrows go from piece to piece there, but
 * after a click, which leaves the focus behind, they are meant for the steps.
 * @param {View} view
 */
export function watchSource(view) {
  const list = view.sourceList;
  list.setAttribute("role", "group");
  list.addEventListener("click", (event) => {
    const index = placeOf(view, event);
    if (index >= 0 && canPick(view)) pick(view, index);
  });
  list.addEventListener("keydown", (event) => {
    const index = placeOf(view, event);
    if (index < 0 || !canPick(view)) return;
    const end = view.sourceChips.length - 1;
    const moves = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: end };
    if (event.key in moves && !isLeftOver(event)) {
      view.sourceChips[Math.max(0, Math.min(end, moves[/** @type {keyof typeof moves} */ (event.key)]))].focus();
    } else if (event.key === "Enter" || event.key === " ") pick(view, index);
    else if (event.key === "Escape" && view.picked !== null) pick(view, null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/**
 * @param {View} view
 * @param {Event} event
 */
function placeOf(view, event) {
  return view.sourceChips.findIndex((chip) => event.composedPath().includes(chip));
}
