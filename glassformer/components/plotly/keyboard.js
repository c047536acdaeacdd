// @ts-check
// A map by keyboard: it takes the focus as a grid, arrows move over its rows and columns, and a live region says the
// cell. Enter looks at the cell, as a click does; Escape leaves.
//
// Only the cell at hand is in the grid: its row and column are numbered, as ARIA allows for a grid of which a part is
// in the document. The keys reach the stepper only where they mean nothing here.

import { clamped, make, set } from "../common/dom.js";
import { say } from "../common/i18n.js";
import { pixelsOf } from "./edges.js";
import { decoded, rawText } from "./numbers.js";

/** @import { Plot, Trace, View } from "./types.js" */
/** @typedef {{ row: number, column: number }} Place */

/**
 * Where the next key leads from a cell; null for a key that means nothing.
 * @param {string} key
 * @param {boolean} far whether Control is held: Home and End then go to the corners
 * @param {Place} at
 * @param {{ rows: number, columns: number }} of
 */
export function moved(key, far, { row, column }, { rows, columns }) {
  const last = { row: rows - 1, column: columns - 1 };
  const there = {
    ArrowUp: { row: row - 1, column }, ArrowDown: { row: row + 1, column },
    ArrowLeft: { row, column: column - 1 }, ArrowRight: { row, column: column + 1 },
    Home: { row: far ? 0 : row, column: 0 }, End: { row: far ? last.row : row, column: last.column },
  }[key];
  if (!there) return null;
  return { row: clamped(there.row, rows), column: clamped(there.column, columns) };
}

/**
 * The number of a cell as it is drawn, with the trace that draws it; a cell that is closed has a trace and no number.
 * @param {Trace[]} traces @param {number} row @param {number} column
 */
export function cellOf(traces, row, column) {
  for (const [curve, trace] of traces.entries()) {
    if (trace.meta !== "cells") continue;
    const drawn = decoded(trace.z)?.[row]?.[column];
    if (drawn === null || drawn === undefined || !Number.isFinite(drawn)) continue;
    const open = trace.colorbar !== undefined;
    const sent = trace.customdata?.[row]?.[column]?.[2];
    return { curve, value: open ? Number(sent ?? drawn) : null };
  }
  return null;
}

/**
 * What is said of a cell; one without a number is closed in a map of weights, and elsewhere speaks for itself.
 * @param {{ rows: string[], columns: string[], weights?: boolean }} cells
 * @param {Place} at
 * @param {number | null} value
 */
export function sentenceOf(cells, { row, column }, value) {
  const [query, key] = [rawText(cells.rows[row]), rawText(cells.columns[column])];
  if (value === null) {
    if (cells.weights) return say("Query {query} cannot read key {key}", { query, key });
    return say("Row {query}, column {key}", { query, key });
  }
  const number = Math.abs(value) < 0.005 && value !== 0 ? value.toExponential(1) : value.toFixed(2);
  if (cells.weights) return say("Query {query} reads key {key}: {value}", { query, key, value: number });
  return say("Row {query}, column {key}: {value}", { query, key, value: number });
}

/**
 * Give a chart its grid, which shows itself once the figure is a map.
 * @param {View} view
 * @param {(event: object) => void} click
 * @returns {() => void} to be called after each drawing
 */
export function makeKeyboard(view, click) {
  const grid = make("div", "gf-grid", "", { role: "grid", tabindex: 0, hidden: "" });
  const row = make("div", "gf-grid-row", "", { role: "row" });
  const cell = make("div", "gf-grid-cell", "", { role: "gridcell" });
  const live = make("div", "gf-grid-said", "", { "aria-live": "polite" });
  row.append(cell);
  grid.append(row);
  view.sheet.append(grid, live);
  const at = { row: 0, column: 0 };
  const look = () => {
    const cells = cellsOf(view);
    if (!cells) return;
    Object.assign(at, { row: clamped(at.row, cells.rows.length), column: clamped(at.column, cells.columns.length) });
    const said = sentenceOf(cells, at, cellOf(view.plot.data, at.row, at.column)?.value ?? null);
    set(row, { "aria-rowindex": at.row + 1 });
    set(cell, { "aria-colindex": at.column + 1, "aria-label": said });
    live.textContent = grid.matches(":focus") ? said : "";
    frame(view.plot, cell, at);
  };
  grid.addEventListener("focus", look);
  grid.addEventListener("blur", () => { live.textContent = ""; });
  grid.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return grid.blur();
    if (event.key === "Enter") clickOn(view, at, click);
    const cells = cellsOf(view);
    if (!cells || event.altKey || event.metaKey) return;
    const there = moved(event.key, event.ctrlKey, at, { rows: cells.rows.length, columns: cells.columns.length });
    if (!there) return;
    event.preventDefault();
    Object.assign(at, there);
    look();
  });
  return () => {
    const cells = cellsOf(view);
    grid.hidden = !cells;
    if (!cells) return;
    const { rows, columns } = cells;
    set(grid, { "aria-label": view.data.alt, "aria-rowcount": rows.length, "aria-colcount": columns.length });
    look();
  };
}

/** The names of a map's rows and columns; null where the figure is none. @param {View} view */
function cellsOf({ plot }) {
  return plot.data?.some((trace) => trace.meta === "cells") ? plot.layout?.meta?.cells ?? null : null;
}

/**
 * What a click on a cell does.
 * @param {View} view @param {Place} at @param {(event: object) => void} click
 */
function clickOn({ plot }, { row, column }, click) {
  const found = cellOf(plot.data, row, column);
  if (!found) return;
  const data = plot.data[found.curve];
  click({ points: [{ curveNumber: found.curve, pointNumber: [row, column], customdata: null, data }] });
}

/**
 * Put the frame of a cell where Plotly draws it.
 * @param {Plot} plot @param {HTMLElement} cell @param {Place} at
 */
function frame(plot, cell, { row, column }) {
  const pixels = pixelsOf(plot);
  if (!pixels) return;
  const [left, right] = [column - 0.5, column + 0.5].map(pixels.x).sort((a, b) => a - b);
  const [top, bottom] = [row - 0.5, row + 0.5].map(pixels.y).sort((a, b) => a - b);
  const [width, height] = [right - left, bottom - top];
  Object.assign(cell.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
}
