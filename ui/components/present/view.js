// @ts-check
// What stands on every page: the button and the key that begin and end the presentation, links and
// folds of the menu, and the way past it to the sentence.

import { icon, make, makeButton, set } from "../common/dom.js";
import { keepFolds } from "../common/folds.js";
import { isPlain } from "../common/keys.js";
import { followLinks } from "../common/links.js";
import { mount } from "../common/mount.js";
import { isPresenting, present, speakInAddress } from "../common/present.js";
import { say } from "../common/words.js";

/** @import { Create, PresenterPayload, Show } from "../common/payloads.js" */

/** @typedef {{ button: HTMLButtonElement, skip: HTMLAnchorElement }} View */

const SENTENCE = ".st-key-source input";
const SCREEN = "M3 4h18M5 4v10.5h14V4M12 14.5v3M8 21l4-3.5 4 3.5";  // on a stand
const WRITTEN = "textarea, select, [contenteditable]:not([contenteditable='false']), [role='textbox'], [role='combobox']";
/** Inputs that take no letters. */
const CHOSEN = new Set(["button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"]);
const OPEN = "[role='dialog'], [role='menu'], [role='listbox'][data-testid], [data-baseweb='popover']";

/** @param {EventTarget | undefined} at */
function takesLetters(at) {
  if (at instanceof HTMLInputElement) return !CHOSEN.has(at.type);
  return at instanceof Element && at.closest(WRITTEN) !== null;
}

/** @param {KeyboardEvent} event */
function isFree(event) {
  return !event.defaultPrevented && !event.isComposing && !event.repeat && isPlain(event)
    && !takesLetters(event.composedPath()[0]);
}

/**
 * Whether a key begins or ends the presentation.
 * @param {KeyboardEvent} event
 */
export function togglesIt(event) {
  return event.key.toLowerCase() === "p" && isFree(event);
}

/**
 * Whether a key ends it: Escape, where nothing is open that it would close.
 * @param {KeyboardEvent} event
 */
export function endsIt(event) {
  if (event.key !== "Escape" || !isFree(event)) return false;
  if (event.composedPath().some((node) => node instanceof HTMLDialogElement)) return false;
  return !Array.from(document.querySelectorAll(OPEN)).some((element) => element.getClientRects().length > 0);
}

/** What the keyboard comes to first: a link past all of the menu. */
function skipLink() {
  const link = make("a", "gf-skip");
  link.href = "#";
  link.addEventListener("click", (event) => {
    event.preventDefault();
    const box = document.querySelector(SENTENCE);
    if (box instanceof HTMLInputElement) box.focus();
  });
  document.body.prepend(link);
  return link;
}

/** @type {Create<View>} */
function create(root, signal) {
  const toggle = () => present(!isPresenting());
  const button = makeButton("gf-present-button", "", "", toggle, { "aria-keyshortcuts": "P" });
  button.append(icon(SCREEN), make("kbd", "gf-present-key", "P"));
  root.append(button);
  // After all others were asked: whoever has used the key says so.
  window.addEventListener("keydown", (event) => {
    if (togglesIt(event)) toggle();
    else if (isPresenting() && endsIt(event)) present(false);
  }, { signal });
  followLinks(signal);
  keepFolds(signal);
  return { button, skip: skipLink() };
}

/** @type {Show<View, PresenterPayload>} */
function shown(view, { data: { payload } }) {
  if (payload.spoken) speakInAddress(payload.spoken);
  show(view);
}

/** @param {View} view */
function show({ button, skip }) {
  skip.textContent = say("Skip to the sentence");
  const presented = isPresenting();
  button.title = presented
    ? say("End the presentation: back to the usual size, with the sidebar (P or Escape)")
    : say("Present: everything in large type, without the sidebar (P)");
  set(button, { "aria-label": say("Presentation"), "aria-pressed": presented });
}

export const component = mount({
  styles: "present", className: "gf-presenter", create, show: shown, scaled: show, close: ({ skip }) => skip.remove(),
});
