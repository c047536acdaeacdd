// @ts-check
// Answers as rows: the step, the run, the choice, whether it was right, the question's fingerprint.

/** @import { LessonRow } from "../common/payloads.js" */

const MOST = 400;

/**
 * The rows that a text holds; none if it is something else.
 * @param {string} text
 * @returns {LessonRow[]}
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
 * @param {LessonRow[]} older
 * @param {LessonRow[]} newer
 */
export function merged(older, newer) {
  const known = new Map([...older, ...newer].map((row) => [`${row[0]} ${row[1]}`, row]));
  return [...known.values()].slice(-MOST);
}
