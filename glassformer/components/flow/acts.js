// @ts-check
// What the reader does: pointing, pinning, hiding heads. Python is told what an address keeps.

import { everyHead, KEPT, pinned, same, shownHeads } from "./choices.js";
import { update } from "./drawing.js";

/** @import { Pin, Side } from "../common/payloads.js" */
/** @import { View } from "./view.js" */

/** @param {View} view @param {number[]} heads */
export function hide(view, heads) {
  KEPT.hidden = heads;
  chosen(view);
}

/** @param {View} view @param {number} head @param {boolean} alone */
export function toggleHead(view, head, alone) {
  if (alone) return hide(view, everyHead(view).filter((other) => other !== head));
  const hidden = new Set(KEPT.hidden);
  if (!hidden.delete(head)) hidden.add(head);
  hide(view, [...hidden]);
}

/**
 * What is pointed at, by mouse or by keyboard; nothing in one of the columns leaves what is pointed at in the other.
 * @param {View} view @param {Side} side @param {Pin | null} place
 */
export function point(view, side, place) {
  if (!place && view.pointed?.side !== side) return;
  if (same(view.pointed, place)) return;
  view.pointed = place;
  update(view);
}

/** @param {View} view @param {Pin} place */
export function togglePin(view, place) {
  const letsGo = same(pinned(view), place);
  if (letsGo) view.pointed = null;
  chosen(view, { following: false, pin: letsGo ? null : place });
}

/** @param {View} view */
export function letGo(view) {
  chosen(view, { following: false, pin: null });
}

/** @param {View} view */
export function toggleFollowing(view) {
  chosen(view, { following: !view.following, pin: view.following ? view.pin : null });
}

/**
 * Draw what is chosen, and tell Python, which says in the next data what it has heard. No head at all is said as all
 * of them: an address that shows nothing would help nobody.
 * @param {View} view @param {Partial<View>} [choice]
 */
function chosen(view, choice = {}) {
  Object.assign(view, choice);
  update(view);
  const shown = shownHeads(view);
  const some = shown.length < view.model.heads && !view.data.together ? shown : [];
  if (!view.data.together) KEPT.shown = some.join(" ");
  if (!view.data.reports) return;
  view.sent += 1;
  view.stamp = `${view.mount} ${view.sent}`;
  const { side = null, index = null } = view.pin ?? {};
  view.setStateValue("pin", { side, index, shown: some, following: view.following, stamp: view.stamp });
}
