// @ts-check
// What a chart draws as a table, out of the figure that Python sent.
//
// A map is one row a cell, any other chart one row a mark. Columns are named by the axes. A figure for which that
// does not fit says its table itself: `layout.meta.table = {columns, rows}`, in plain text and numbers. A trace whose
// hover ends in a reason in italics holds the places that have no number. Traces that only draw a mark, or only catch
// the mouse, are no data: they have neither hover nor name, or no colour. The table of a map of maps is Python's.

import { say } from "../common/i18n.js";
import { decoded, rawText, shortest } from "./numbers.js";
import { TRANSPARENT } from "./paint.js";

/** @import { Cell } from "../common/save.js" */
/** @import { Figure, Layout, Table, Trace } from "./types.js" */

/** @typedef {{ titles: string[], at: (place: any) => Cell[] }} Columns */

/** @param {Trace} trace */
function isData(trace) {
  const unnamed = trace.hoverinfo === "skip" && !trace.name;
  return !unnamed && trace.visible !== false && trace.marker?.color !== TRANSPARENT;
}

/**
 * Why the places of a trace are closed; undefined for a trace with numbers.
 * @param {Trace} trace
 */
function reasonOf(trace) {
  const template = typeof trace.hovertemplate === "string" ? trace.hovertemplate : "";
  const found = template.match(/<i>([^<%]*)<\/i>(<extra><\/extra>)?$/);
  return found ? rawText(found[1]) : undefined;
}

/**
 * Whether labels only count, like positions: then they are numbers, and need no other number beside them.
 * @param {string[]} labels
 */
function counts(labels) {
  return labels.every((label, place) => label === String(place + Number(labels[0])));
}

/**
 * What an axis calls a place: its number and piece, or the value itself.
 * @param {Layout} layout
 * @param {string} id
 * @param {ArrayLike<any>} shown the places of the data
 * @returns {Columns}
 */
function axisColumns(layout, id, shown) {
  const name = `${id[0]}axis${id.slice(1)}`;
  const axis = layout[name] ?? {};
  const ticks = layout.meta?.ticks?.[name];
  const title = rawText(ticks?.title ?? axis.title?.text) || id[0];
  if (ticks) {
    /** @type {string[]} */
    const labels = ticks.labels;
    const pieces = labels.map((label, place) => rawText(ticks.whole?.[place] ?? label));
    if (counts(pieces)) return { titles: [title], at: (place) => [Number(pieces[place])] };
    return { titles: [say("{title} number", { title }), title], at: (place) => [place + 1, pieces[place]] };
  }
  const named = new Map(Array.from(decoded(axis.tickvals), (place, index) => [place, axis.ticktext?.[index]]));
  if (axis.ticktext && Array.from(shown).every((place) => named.has(place))) {
    return { titles: [say("{title} place", { title }), title], at: (place) => [place, rawText(named.get(place))] };
  }
  return { titles: [title], at: (value) => [typeof value === "string" ? rawText(value) : value] };
}

/** @type {(one: Trace, other: Trace) => boolean} */
const sameAxes = (one, other) =>
  (one.xaxis ?? "x") === (other.xaxis ?? "x") && (one.yaxis ?? "y") === (other.yaxis ?? "y");

/**
 * Places along a side of a map.
 * @param {any} given
 * @param {number | undefined} first
 * @param {number | undefined} step
 * @param {number} count
 * @returns {any}
 */
function places(given, first, step, count) {
  const list = decoded(given);
  return list.length ? list : Array.from({ length: count }, (_, place) => (first ?? 0) + place * (step ?? 1));
}

/** @param {Trace} trace @param {Layout} layout @param {Trace[]} closed @returns {Table} */
function mapTable(trace, layout, closed) {
  /** @type {number[][]} */
  const z = decoded(trace.z);
  const reasons = closed.map((other) => ({ cells: decoded(other.z), why: reasonOf(other) }));
  const xs = places(trace.x, trace.x0, trace.dx, z[0]?.length ?? 0);
  const ys = places(trace.y, trace.y0, trace.dy, z.length);
  const x = axisColumns(layout, trace.xaxis ?? "x", xs);
  const y = axisColumns(layout, trace.yaxis ?? "y", ys);
  const value = rawText(trace.name ?? trace.colorbar?.title?.text) || say("value");
  /** @type {Cell[][]} */
  const rows = [];
  z.forEach((line, i) => line.forEach((_, j) => {
    const why = reasons.find(({ cells }) => Number.isFinite(cells[i][j]))?.why;
    rows.push([...y.at(ys[i]), ...x.at(xs[j]), why ? null : shortest(line, j), why ?? ""]);
  }));
  return { columns: [...y.titles, ...x.titles, value, say("note")], rows };
}

/** @param {Trace} trace @param {Layout} layout @param {Trace[]} closed @returns {Table} */
function markTable(trace, layout, closed) {
  const [given, across] = [decoded(trace.x), decoded(trace.y)];
  const count = Math.max(given.length, across.length);
  /** @type {any[]} */
  const [xs, ys] = [given, across].map((list) => (list.length ? list : Array.from({ length: count }, (_, i) => i)));
  const x = axisColumns(layout, trace.xaxis ?? "x", xs);
  const y = axisColumns(layout, trace.yaxis ?? "y", ys);
  const flat = trace.orientation === "h";
  const reasons = new Map(closed.flatMap((other) =>
    Array.from(decoded(flat ? other.y : other.x), (place) => [place, reasonOf(other)])));
  const texts = [trace.hovertext ?? trace.text ?? []].flat().map(rawText);
  const rows = Array.from({ length: count }, (_, i) => {
    const why = reasons.get((flat ? ys : xs)[i]);
    const [left, right] = [x.at(shortest(xs, i)), y.at(shortest(ys, i))];
    return [...left, ...(why ? right.map(() => null) : right), texts[i] ?? "", why ?? ""];
  });
  return { columns: [...x.titles, ...y.titles, say("text"), say("note")], rows };
}

/**
 * One table out of several: their columns side by side, and which trace a row is from.
 * @param {Table[]} tables @param {string[]} names @returns {Table}
 */
function joined(tables, names) {
  const series = say("series");
  const columns = [...new Set([series, ...tables.flatMap((table) => table.columns)])];
  const rows = tables.flatMap((table, index) => table.rows.map((row) => {
    const cells = new Map(table.columns.map((column, place) => [column, row[place]]));
    return columns.map((column) => (column === series ? names[index] : cells.get(column)));
  }));
  return { columns, rows };
}

/**
 * Drop a column of remarks that says nothing, or only repeats the piece beside it.
 * @param {Table} table @returns {Table}
 */
function tidied({ columns, rows }) {
  const remarks = [say("text"), say("note")];
  /** @type {(row: Cell[], place: number) => boolean} */
  const says = (row, place) => Boolean(row[place]) && !row.some((cell, at) => at !== place
    && typeof cell === "string" && cell === String(row[place]).replace(/^\d+: /, ""));
  const kept = columns.map((_, place) => place).filter((place) =>
    !remarks.includes(columns[place]) || rows.some((row) => says(row, place)));
  return { columns: kept.map((place) => columns[place]), rows: rows.map((row) => kept.map((place) => row[place])) };
}

/** @param {string[]} columns */
export function numbered(columns) {
  return columns.map((name, place) => {
    const before = columns.slice(0, place).filter((other) => other === name).length;
    return before ? `${name} ${before + 1}` : name;
  });
}

/**
 * The table of a figure as Python sent it.
 * @param {Figure} figure @returns {Table}
 */
export function tableOf({ data, layout }) {
  if (layout.meta?.table) return layout.meta.table;
  const drawn = data.filter(isData);
  const traces = drawn.filter((trace) => reasonOf(trace) === undefined);
  const tables = traces.map((trace) => {
    const closed = drawn.filter((other) => reasonOf(other) !== undefined && sameAxes(trace, other));
    const table = trace.z ? mapTable(trace, layout, closed) : markTable(trace, layout, closed);
    return { columns: numbered(table.columns), rows: table.rows };
  });
  const names = traces.map((trace, index) => rawText(trace.name) || say("series {n}", { n: index + 1 }));
  return tidied(tables.length === 1 ? tables[0] : joined(tables, names));
}
