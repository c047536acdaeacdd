// @ts-check
// What stands on every page: the button and the key that begin and end the presentation, links and
// folds of the menu, and the way past it to the sentence.

import { make, makeButton } from "../common/dom.js";
import { keepFolds } from "../common/folds.js";
import { followLinks } from "../common/links.js";
import { mount } from "../common/mount.js";
import { isPresenting, present, speakInAddress } from "../common/present.js";
import { say } from "../common/words.js";
import { endsIt, togglesIt } from "./keys.js";

/** @import { PresenterPayload } from "../common/payloads.js" */

/** @typedef {{ button: HTMLButtonElement, skip: HTMLAnchorElement, onKey: (event: KeyboardEvent) => void, end: (() => void)[] }} View */

const SENTENCE = ".st-key-source input";
const SVG = "http://www.w3.org/2000/svg";
const SCREEN = "M3 4h18M5 4v10.5h14V4M12 14.5v3M8 21l4-3.5 4 3.5";  // on a stand

function sign() {
  const [svg, path] = [document.createElementNS(SVG, "svg"), document.createElementNS(SVG, "path")];
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", SCREEN);
  svg.append(path);
  return svg;
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

/** @param {HTMLElement} root */
function create(root) {
  const button = makeButton("gf-present-button", "", "", () => present(!isPresenting()));
  button.setAttribute("aria-keyshortcuts", "P");
  button.append(sign(), make("kbd", "gf-present-key", "P"));
  root.append(button);
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (togglesIt(event)) present(!isPresenting());
    else if (isPresenting() && endsIt(event)) present(false);
  };
  // After all others were asked: whoever has used the key says so.
  window.addEventListener("keydown", onKey);
  return { button, skip: skipLink(), onKey, end: [followLinks(), keepFolds()] };
}

/**
 * @param {View} view
 * @param {import("../common/payloads.js").Component<PresenterPayload>} component
 */
function shown(view, { data: { payload } }) {
  if (payload.spoken) speakInAddress(payload.spoken);
  show(view);
}

/** @param {View} view */
function show({ button, skip }) {
  skip.textContent = say("Skip to the sentence");
  const presented = isPresenting();
  button.title = presented
    ? say("End the presentation: the usual size, with the sidebar (P or Escape)")
    : say("Present: everything in large type, without the sidebar (P)");
  button.setAttribute("aria-label", say("Presentation"));
  button.setAttribute("aria-pressed", String(presented));
}

/** @type {import("../common/mount.js").Part<View, PresenterPayload>} */
const PART = {
  styles: "present", className: "gf-presenter", create, show: shown, scaled: show, watched: () => [], resized: () => {},
  close: ({ skip, onKey, end }) => {
    skip.remove();
    window.removeEventListener("keydown", onKey);
    for (const one of end) one();
  },
};

export const component = mount(PART);
