// @ts-check
// What stands under a picture: one button with all that can be done with it, and one that says how to read it; and what
// is said of a moment: a line above it, and a table and a line below it, or beside it.
//
// In the large view both move into a dialog as large as the window, and come back. Its letters are large, and it says
// what the step reads and predicts, since arrow keys go on stepping; the stepper is behind it.

import { make, makeButton, set } from "./dom.js";
import { largeHere } from "./present.js";
import { followStatus } from "./step.js";
import { say } from "./i18n.js";

/** @import { Said } from "./payloads.js" */

/**
 * @typedef {object} Foot
 * @property {HTMLElement} foot
 * @property {HTMLElement} tools the buttons; hidden as long as there is no picture
 * @property {HTMLButtonElement} button opens the menu
 * @property {HTMLButtonElement} expand its first entry
 * @property {HTMLButtonElement} table its second
 * @property {(text: string, more?: boolean) => void} tell how to read the picture, and whether more is said of it
 */

/**
 * @typedef {Foot & {
 *   dialog: HTMLDialogElement, isLarge: () => boolean, write: Lines["tell"]
 * }} Under
 */

const HEIGHT = 190;  // of the menu, at most

/** @param {{ open: () => void, data: () => void, picture: (format: "svg" | "png") => void }} acts @returns {Foot} */
export function makeFoot({ open, data, picture }) {
  const [foot, tools] = [make("div", "gf-foot"), make("div", "gf-tools", "", { role: "group" })];
  const title = say("Chart: expand, download…");
  const list = make("div", "gf-menu", "", { role: "menu", "aria-label": title });
  const button = makeButton("gf-tool gf-menu-button", "⋯", title, () => {},
    { "aria-label": title, "aria-haspopup": "menu" });
  /** @type {(label: string, act: () => void) => HTMLButtonElement} */
  const entry = (label, act) => {
    const made = makeButton("gf-menu-entry", label, "", () => {
      list.hidePopover();
      button.focus({ preventScroll: true });
      act();
    }, { role: "menuitem" });
    list.append(made);
    return made;
  };
  const expand = entry(say("Show this chart large"), open);
  const table = entry(say("Download the data as CSV"), data);
  entry(say("Download the picture as SVG"), () => picture("svg"));
  entry(say("Download the picture as PNG"), () => picture("png"));
  opens(button, list);
  const [told, tell] = makeTold();
  tools.append(button, list);
  foot.append(tools, told);
  return { foot, tools, button, expand, table, tell };
}

/**
 * Have a button open a list, and the keyboard move in it.
 * @param {HTMLButtonElement} button @param {HTMLElement} list
 */
function opens(button, list) {
  list.popover = "auto";
  button.popoverTargetElement = list;
  const entries = () => Array.from(list.querySelectorAll("button")).filter((entry) => !entry.hidden);
  let stood = 0;  // where the button was when the list came: a scroll of before, or of another box, moves nothing
  const away = () => {
    if (list.isConnected && Math.abs(button.getBoundingClientRect().top - stood) > 1) list.hidePopover();
  };
  list.addEventListener("beforetoggle", (event) => {
    const isOpen = /** @type {ToggleEvent} */ (event).newState === "open";
    set(button, { "aria-expanded": isOpen });
    window[isOpen ? "addEventListener" : "removeEventListener"]("scroll", away, true);
    // The browser gives the focus to the first that is not hidden; else they ask for it nowhere, as in the large view.
    for (const entry of entries()) entry.autofocus = isOpen;
    if (!isOpen) return;
    const { right, top, bottom } = button.getBoundingClientRect();
    stood = top;
    const above = bottom + HEIGHT > innerHeight;
    Object.assign(list.style, {
      right: `${document.documentElement.clientWidth - right}px`,
      top: above ? "auto" : `${bottom}px`, bottom: above ? `${innerHeight - top}px` : "auto",
    });
  });
  list.addEventListener("keydown", (event) => {
    event.stopPropagation();  // Escape closes this, and nothing around it
    const all = entries();
    const at = all.findIndex((entry) => entry.matches(":focus"));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all.at(to % all.length)?.focus();
  });
}

/**
 * How to read a picture, behind one button, with what else is said of the moment: the picture comes first.
 * @returns {[told: HTMLElement, tell: (text: string, more?: boolean) => void]}
 */
function makeTold() {
  const [told, text] = [make("div", "gf-told"), make("p")];
  const button = makeButton("gf-more", say("How to read this"), "", () => fold(!text.hidden));
  /** @param {boolean} isFolded */
  const fold = (isFolded) => {
    text.hidden = isFolded;
    told.closest(".gf-has-foot")?.classList.toggle("gf-folded", isFolded);
    set(button, { "aria-expanded": !isFolded });
  };
  fold(true);
  told.append(button, text);
  return [told, (said, more = false) => {
    text.textContent = said;
    told.hidden = !said && !more;
  }];
}

/**
 * Give a picture what stands under it, and its large view.
 * @param {HTMLElement} home where both stand on the page, before all else
 * @param {HTMLElement} shown
 * @param {{
 *   className: string, name: () => string, changed: () => void,
 *   data: () => void, picture: (format: "svg" | "png") => void,
 * }} options `className` is the dialog's, `name` the component's, which says its run; `changed` is called once the
 *   picture has moved
 * @returns {Under}
 */
export function makeUnder(home, shown, { className, name, changed, data, picture }) {
  const [dialog, status] = [make("dialog", className), make("p", "gf-status", "", { "aria-live": "polite" })];
  let unfollow = () => {};
  const setType = () => dialog.style.setProperty("--gf-rem", `${largeHere()}px`);
  const open = () => {
    if (dialog.open) return;
    home.style.height = `${home.offsetHeight}px`;  // the page behind keeps its place
    setType();
    window.addEventListener("resize", setType);
    unfollow = followStatus(name(), status);
    dialog.append(shown, foot.foot);
    lines.place();
    dialog.showModal();
    moved();
  };
  const foot = makeFoot({ open, data, picture });
  const lines = makeLines(shown, foot.foot);
  const moved = () => {
    foot.expand.hidden = dialog.open;
    changed();
  };
  const close = () => dialog.close();
  dialog.append(status, makeButton("gf-close", "✕", say("Close (Esc)"), close, { "aria-label": say("Close") }));
  home.append(shown, foot.foot, dialog);
  home.classList.add("gf-has-foot", "gf-folded");
  dialog.addEventListener("click", (event) => event.target === dialog && isBeside(dialog, event) && close());
  // For Escape, the button and a click beside the dialog alike.
  dialog.addEventListener("close", () => {
    unfollow();
    window.removeEventListener("resize", setType);
    home.prepend(shown, foot.foot);
    lines.place();
    home.style.height = "";
    moved();
    foot.button.focus();
  });
  return { ...foot, dialog, isLarge: () => dialog.open, write: lines.tell };
}

/** @param {HTMLElement} dialog @param {MouseEvent} event */
function isBeside(dialog, { clientX: x, clientY: y }) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return x < left || x > right || y < top || y > bottom;
}

const NUMBER = /^[−+-]?[\d.,]*%?$/;

/**
 * @typedef {object} Lines
 * @property {(said: Said | null) => void} tell
 * @property {() => void} place next to the picture and its foot, wherever these are now
 */

/** @param {HTMLElement} shown @param {HTMLElement} foot @returns {Lines} */
export function makeLines(shown, foot) {
  const [above, under, below] = [make("p", "gf-lines"), make("div", "gf-lines gf-lines-under"), make("p")];
  const [fold, summary, box] = [make("details"), make("summary"), make("div")];
  fold.append(summary);
  under.append(below);
  /** @type {Said | null} */
  let now = null;
  const place = () => {
    if (!now?.above) above.remove();
    else if (above.nextSibling !== shown) shown.before(above);
    if (!now?.table && !now?.below) under.remove();
    else if (foot.nextSibling !== under) foot.after(under);
    foot.parentElement?.classList.toggle("gf-has-beside", Boolean(now?.beside));
  };
  /** @param {Said | null} said */
  const tell = (said) => {
    now = said;
    above.textContent = said?.above ?? "";
    below.textContent = said?.below ?? "";
    below.hidden = !said?.below;
    below.className = said?.pale ? "gf-pale" : "";
    box.replaceChildren(...(said?.table ? tableOf(said.table) : []));
    summary.textContent = said?.table?.fold ?? "";
    if (!summary.textContent) fold.replaceWith(box);
    else if (box.parentElement !== fold) fold.append(box);
    if (under.firstChild === below) under.prepend(summary.textContent ? fold : box);
    place();
  };
  return { tell, place };
}

/** @param {NonNullable<Said["table"]>} said @returns {HTMLElement[]} */
function tableOf({ columns, rows, note }) {
  const table = make("table");
  table.createTHead().insertRow().append(...columns.map((name) => make("th", "", name, { scope: "col" })));
  const body = table.createTBody();
  for (const row of rows) body.insertRow().append(...row.map((text) => make("td", "", text)));
  const numbers = columns.map((_, place) => rows.every((row) => NUMBER.test(row[place])));
  for (const { cells } of table.rows) {
    for (const cell of cells) cell.classList.toggle("gf-number", numbers[cell.cellIndex]);
  }
  return note ? [table, make("p", "gf-pale", note)] : [table];
}
