// @ts-check
// What the reader chose, as it stands.

import { rowOfStep } from "../common/step.js";

/** @import { Pin } from "../common/payloads.js" */
/** @import { View } from "./view.js" */

/**
 * On this browser page, also while another page of the app is shown.
 * `shown` is what Python was last told of the heads, or told us.
 * @type {{ threshold: number, hidden: number[], shown: string }}
 */
export const KEPT = { threshold: 0.05, hidden: [], shown: "" };

/** @type {{ query: "key", key: "query" }} */
export const OTHER = { query: "key", key: "query" };

/** @param {Pick<View, "model">} view */
export function everyHead({ model }) {
  return Array.from({ length: model.heads }, (_, head) => head);
}

/**
 * The heads whose lines are drawn; a mean of heads is always one.
 * @param {Pick<View, "model" | "data">} view
 */
export function shownHeads({ model, data }) {
  return everyHead({ model }).filter((head) => data.together || !KEPT.hidden.includes(head));
}

/**
 * The row of the current step; null where rows are no steps, or if it is hidden.
 * @param {View} view
 */
export function stepRow(view) {
  return rowOfStep(view.data.row_of_step, view.data.name);
}

/** @param {View} view @returns {Pin | null} */
export function pinned(view) {
  const now = stepRow(view);
  if (view.following && now !== null) return { side: "query", index: now };
  return view.pin;
}

/** @type {(one: Pin | null, other: Pin | null) => boolean} */
export const same = (one, other) => one?.side === other?.side && one?.index === other?.index;
