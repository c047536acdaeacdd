// @ts-check
// What stands on every page: the button and the key that begin and end the presentation, links of
// the menu, and the way past it to the sentence.

import { icon, isPlain, make, makeButton, set } from "../../../../components/common/dom.js";
import { mount } from "../../../../components/common/mount.js";
import { isPresenting, present, speakInAddress } from "../../../../components/common/present.js";
import { followLinks, PAGE } from "../../../../components/common/streamlit-page.js";
import { say } from "../../../../components/common/i18n.js";

/** @import { Create, PresenterPayload, Show } from "../../../../components/common/payloads.js" */

/** @typedef {{ button: HTMLButtonElement, menu: HTMLButtonElement, next: HTMLButtonElement, skip: HTMLAnchorElement }} View */

const SENTENCE = ".st-key-source input", TRANSLATE = ".st-key-translate button";
const PARTS = "[class*='controls_bar'] > :first-child [role='radio']";
const PAGES = ".st-key-menu a", TABS = ".st-key-tabs a", MENU = "gf-menu-open";
const SCREEN = "M3 4h18M5 4v10.5h14V4M12 14.5v3M8 21l4-3.5 4 3.5";  // on a stand
const LINES = "M4 6h16M4 12h16M4 18h16", ARROW = "M4 12h15M13 6l6 6-6 6";
const WRITTEN = "textarea, select, [contenteditable]:not([contenteditable='false']), [role='textbox'], [role='combobox']";
/** @type {Readonly<Record<string, number>>} the keys of what a speaker holds; arrows are the stepper's */
const BESIDE = { PageUp: -1, PageDown: 1 };
/** Inputs that take no letters. */
const CHOSEN = new Set(["button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"]);
const OPEN = `[role='dialog'], [role='menu'], ${PAGE.list}`;

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
 * Whether a key is pressed that the app has: P begins or ends the presentation.
 * @param {KeyboardEvent} event
 */
export function togglesIt(event, letter = "p") {
  return event.key.toLowerCase() === letter && isFree(event);
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

/** Lay the menu over what is presented, or take it away; gives back whether it was there. */
function layMenu(open = false, { classList } = document.documentElement, was = classList.contains(MENU)) {
  classList.toggle(MENU, open);
  if (open) pages().find((page) => page.ariaCurrent)?.focus();
  return was;
}

/** Whether a key says that the sentence is typed. @param {KeyboardEvent} event */
function isTyped({ key, isComposing, target }) {
  return key === "Enter" && !isComposing && target instanceof Element && target.matches(SENTENCE);
}

/** The links to pages, in the menu's order. */
const pages = () => /** @type {HTMLElement[]} */ (Array.from(document.querySelectorAll(PAGES)));

/**
 * Go to the part before or after the chosen one, else to such a tab, else to such an entry of the menu.
 * @param {number} by -1 or 1
 */
function goBeside(by) {
  for (const all of [PARTS, TABS, PAGES].map((found) => Array.from(document.querySelectorAll(found)))) {
    const at = all.findIndex((one) => one.ariaChecked === "true" || one.ariaCurrent);
    const next = at < 0 ? undefined : all[at + by];
    if (next instanceof HTMLElement) return next.click();
  }
}

/** @type {(path: string, letter: string, act: () => void) => HTMLButtonElement} */
function keyed(path, letter, act) {
  const button = makeButton("gf-present-button", "", "", act, { "aria-keyshortcuts": letter });
  button.append(icon(path), make("kbd", "gf-present-key", letter));
  return button;
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
  const unfold = () => layMenu() || layMenu(true);
  const follow = () => pages()[(pages().findIndex((page) => page.ariaCurrent) + 1) % pages().length]?.click();
  const button = keyed(SCREEN, "P", toggle), menu = keyed(LINES, "M", unfold), next = keyed(ARROW, "N", follow);
  root.append(button, menu, next);
  // After all others were asked: whoever has used the key says so.
  window.addEventListener("keydown", (event) => {
    if (togglesIt(event)) toggle();
    else if (!isPresenting()) return;
    else if (isTyped(event)) layMenu();
    else if (togglesIt(event, "m")) unfold();
    else if (togglesIt(event, "n")) follow();
    else if (BESIDE[event.key] && isFree(event)) goBeside(BESIDE[event.key]);
    else if (endsIt(event) && !layMenu()) present(false);
  }, { signal });
  document.addEventListener("click", ({ target }) => target instanceof Element && target.closest(`${PAGES}, ${TRANSLATE}`) && layMenu(), { signal });
  followLinks(signal);
  return { button, menu, next, skip: skipLink() };
}

/** @type {Show<View, PresenterPayload>} */
function shown(view, { data: { payload } }) {
  if (payload.spoken) speakInAddress(payload.spoken);
  show(view);
}

/** @param {View} view */
function show({ button, menu, next, skip }) {
  skip.textContent = say("Skip to the sentence");
  const presented = isPresenting();
  button.title = presented
    ? say("End the presentation: back to the usual size, with the sidebar (P or Escape)")
    : say("Present: everything in large type, without the sidebar (P)");
  set(button, { "aria-label": say("Presentation"), "aria-pressed": presented });
  if (!presented) layMenu();
  menu.hidden = next.hidden = !presented;
  set(menu, { "aria-label": say("Menu"), title: say("The menu and the sentence (M or Escape closes them)") });
  set(next, { "aria-label": say("Next page"), title: say("The next page of the menu (N)") });
}

export const component = mount({
  styles: "present", className: "gf-presenter", create, show: shown, scaled: show, close: ({ skip }) => skip.remove(),
});
