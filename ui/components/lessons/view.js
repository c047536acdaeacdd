// @ts-check
// What this browser remembers of answers in lessons, and what a step points at. Nothing is drawn; nothing of it is
// kept by the server.

import { mount } from "../common/mount.js";
import { lookAt } from "./looking.js";
import { merged, readRows } from "./rows.js";

/** @import { LessonMemoryPayload } from "../common/payloads.js" */

const KEY = "glassformer-lessons";

/** @typedef {{ forgotten: number | null }} View */

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

/**
 * @param {View} view
 * @param {import("../common/payloads.js").Component<LessonMemoryPayload>} component
 */
function show(view, { data: { payload: { rows, forgotten, open, look } }, setStateValue }) {
  lookAt(open, look);
  const isFirst = view.forgotten === null;
  if (!isFirst && view.forgotten !== forgotten) store(null);
  view.forgotten = forgotten;
  const before = stored();
  if (rows.length) store(JSON.stringify(merged(readRows(before), rows)));
  if (isFirst && before) setStateValue("answers", before);
}

/** @type {import("../common/mount.js").Part<View, LessonMemoryPayload>} */
const PART = {
  styles: "lessons", className: "gf-lesson-memory", create: () => ({ forgotten: null }), show,
  watched: () => [], resized: () => {},
};

export const component = mount(PART);
