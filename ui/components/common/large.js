// @ts-check
// The large view: parts of a component move into a dialog as large as the window, and come back. Its letters are large,
// and it says what the step reads and predicts, since arrow keys go on stepping; the stepper is behind it.

import { make, makeButton } from "./dom.js";
import { largeHere } from "./present.js";
import { followStatus } from "./step.js";
import { say } from "./words.js";

/**
 * @typedef {object} Large
 * @property {HTMLDialogElement} dialog
 * @property {() => boolean} isOpen
 * @property {() => void} open
 * @property {() => void} close
 */

/**
 * Make the dialog, at the end of what it belongs to.
 * @param {HTMLElement} home where the parts stand on the page, before all else
 * @param {HTMLElement[]} parts
 * @param {{ className: string, name: () => string, opener: () => HTMLElement, changed: () => void }} options `name` is
 *   the component's, which says its run; `changed` is called once the parts have moved; `opener` is the button that
 *   leads there, which gets the focus back
 * @returns {Large}
 */
export function makeLarge(home, parts, { className, name, opener, changed }) {
  const dialog = make("dialog", className);
  const status = make("p", "gf-status");
  status.setAttribute("aria-live", "polite");
  const cross = makeButton("gf-close", "✕", say("Close (Esc)"), () => dialog.close());
  cross.setAttribute("aria-label", say("Close"));
  dialog.append(status, cross);
  let unfollow = () => {};
  const setType = () => dialog.style.setProperty("--gf-rem", `${largeHere()}px`);
  home.append(dialog);
  dialog.addEventListener("click", (event) => event.target === dialog && isBeside(dialog, event) && dialog.close());
  // For Escape, the button and a click beside the dialog alike.
  dialog.addEventListener("close", () => {
    unfollow();
    window.removeEventListener("resize", setType);
    home.prepend(...parts);
    home.style.height = "";
    changed();
    opener().focus();
  });
  const open = () => {
    if (dialog.open) return;
    home.style.height = `${home.offsetHeight}px`;  // the page behind keeps its place
    setType();
    window.addEventListener("resize", setType);
    unfollow = followStatus(name(), status);
    dialog.append(...parts);
    dialog.showModal();
    changed();
  };
  return { dialog, isOpen: () => dialog.open, open, close: () => dialog.close() };
}

/**
 * @param {HTMLElement} dialog
 * @param {MouseEvent} event
 */
function isBeside(dialog, { clientX: x, clientY: y }) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return x < left || x > right || y < top || y > bottom;
}
