// @ts-check
// What is said of a moment next to a picture: a line above it, and a table and a line below it, or beside it.

import { make } from "./dom.js";

/** @import { Said } from "./payloads.js" */

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
