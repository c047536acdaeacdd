// @ts-check
// What this browser remembers of answers in lessons, and what a step points at. Nothing is drawn; nothing of it is
// kept by the server.

import { mount } from "../../../../components/common/mount.js";
import { lookAt } from "./scroll-into-view.js";

/** @import { LessonMemoryPayload, LessonRow, Show } from "../../../../components/common/payloads.js" */

const KEY = "glassformer-lessons";
const MOST = 400;

/** @typedef {{ forgotten: number | null }} View */

/**
 * The rows that a text holds; none if it is something else.
 * @param {string} text @returns {LessonRow[]}
 */
export function readRows(text) {
  try {
    const rows = JSON.parse(text || "[]");
    return Array.isArray(rows) ? rows.filter((row) => Array.isArray(row) && row.length === 5) : [];
  } catch {
    return [];
  }
}

/**
 * Both, the newer for a step and a run that both have, and of too many the last ones.
 * @param {LessonRow[]} older @param {LessonRow[]} newer
 */
export function merged(older, newer) {
  const known = new Map([...older, ...newer].map((row) => [`${row[0]} ${row[1]}`, row]));
  return [...known.values()].slice(-MOST);
}

/** What is remembered; nothing where the browser lets us remember nothing. */
function stored() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** @param {string | null} text null: forget it */
function store(text) {
  try {
    if (text === null) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, text);
  } catch {
    // A full or a closed store: then a reload begins anew.
  }
}

/** @type {Show<View, LessonMemoryPayload>} */
function show(view, { data: { payload: { rows, forgotten, open, look } }, setStateValue }) {
  lookAt(open, look);
  const isFirst = view.forgotten === null;
  if (!isFirst && view.forgotten !== forgotten) store(null);
  view.forgotten = forgotten;
  const before = stored();
  if (rows.length) store(JSON.stringify(merged(readRows(before), rows)));
  if (isFirst && before) setStateValue("answers", before);
}

/** @returns {View} */
const create = () => ({ forgotten: null });

export const component = mount({ styles: "lessons", className: "gf-lesson-memory", create, show });
